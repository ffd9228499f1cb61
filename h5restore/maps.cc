#include "h5restore/maps.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/paths.h"

namespace h5mirror::restore {
namespace {

using hdf5::Handle;
using hdf5::Own;

Lead To(Handle object) {
  Lead lead;
  lead.to = Lead::To::kObject;
  lead.object = std::move(object);
  return lead;
}

Lead Simply(Lead::To to) {
  Lead lead;
  lead.to = to;
  return lead;
}

const char* WhyOf(Absence absence) {
  switch (absence) {
    case Absence::kNone:
      return "";
    case Absence::kMissing:
      return "missing";
    case Absence::kOtherFile:
      return "other_file";
    case Absence::kOtherKind:
      return "other_kind";
  }
  return "missing";
}

// Sees to the region.
Place Fitting(const Referenced& from, Place place) {
  if (!place.object.valid()) return place;
  if (from.region_is_lost) return {Handle(), "no_region"};
  if (from.region >= 0 && !Fits(from.region, place.object.get())) return {Handle(), "too_small"};
  return place;
}

}  // namespace

absl::StatusOr<const LinkGraph*> PathsOfFile::Graph() {
  if (!graph_) {
    H5M_ASSIGN_OR_RETURN(graph_, LinkGraph::Of(file_, "the file"));
  }
  return &*graph_;
}

absl::StatusOr<std::vector<std::string>> PathsOfFile::Find(const std::string& token) {
  H5M_ASSIGN_OR_RETURN(const LinkGraph* graph, Graph());
  std::vector<std::string> paths = graph->Paths(graph->root(), token, kPathsMax);
  for (std::string& path : paths) path = Below("/", path);
  return paths;
}

absl::StatusOr<Place> TargetView::Find(const Referenced& from, const std::string& path) const {
  H5M_ASSIGN_OR_RETURN(Place place, FindObject(path, from.kind));
  return Fitting(from, std::move(place));
}

absl::StatusOr<Place> TargetView::FindObject(const std::string& path, H5I_type_t kind) const {
  if (!plan_) return FindNow(path, kind);
  if (IsOfCopy(path)) return FindInCopy(path, kind);
  Place place = FindNow(path, kind);
  if (!place.object.valid()) return place;
  H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(place.object.get(), path));
  if (plan_->gone->contains(TokenOf(info))) return Place{Handle(), "missing"};
  return place;
}

// A link in the copy may lead out of it: then it leads to the object of that path in the target.
absl::StatusOr<Place> TargetView::FindInCopy(const std::string& path, H5I_type_t kind) const {
  const std::string there = StrCat(plan_->source_path, path.substr(plan_->as.size()));
  Absence absence = Absence::kNone;
  Handle object = OpenHere(plan_->source, there, kind, &absence);
  if (!object.valid()) return Place{Handle(), WhyOf(absence)};
  H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(object.get(), there));
  const std::string token = TokenOf(info);
  if (plan_->copied->contains(token)) return Place{std::move(object), ""};
  H5M_ASSIGN_OR_RETURN(const auto outside, plan_->source_paths->Find(token));
  for (const std::string& each : outside) {
    if (IsOfCopy(each)) continue;
    H5M_ASSIGN_OR_RETURN(Place place, FindObject(each, kind));
    if (place.object.valid()) return place;
  }
  return Place{Handle(), "missing"};
}

absl::StatusOr<bool> TargetView::KeepsObjectAt(const std::string& path) const {
  if (plan_ && IsOfCopy(path)) return false;
  H5M_ASSIGN_OR_RETURN(const Place place, FindObject(path, H5I_BADID));
  return place.object.valid();
}

Place TargetView::FindNow(const std::string& path, H5I_type_t kind) const {
  Absence absence = Absence::kNone;
  Handle object = OpenHere(target_, path, kind, &absence);
  return {std::move(object), WhyOf(absence)};
}

bool TargetView::IsOfCopy(const std::string& path) const { return IsAtOrBelow(path, plan_->as); }

Lead Losses::Add(std::string leads_to, std::string why) {
  ++counts_[{object_, std::move(leads_to), std::move(why)}];
  return Simply(Lead::To::kNowhere);
}

Lead Losses::AddObject(const Referenced& from, std::string leads_to, std::string why) {
  // Another region may fit.
  const bool has_region = from.region >= 0 || from.region_is_lost;
  if (!has_region) known_.try_emplace(TokenOf(from.info), leads_to, why);
  return Add(std::move(leads_to), std::move(why));
}

bool Losses::AddKnown(const std::string& token) {
  const auto known = known_.find(token);
  if (known == known_.end()) return false;
  Add(known->second.first, known->second.second);
  return true;
}

void Losses::AppendTo(bool removed, std::vector<tools::LostReferences>* all) const {
  for (const auto& [key, count] : counts_) {
    const auto& [object, leads_to, why] = key;
    all->push_back({object, leads_to, count, why, removed});
  }
}

absl::StatusOr<Lead> CopyMap::Inside(const Referenced& from, const std::string& below) const {
  if (dry_run_) {
    H5M_ASSIGN_OR_RETURN(Handle same, Own(H5Oopen(from.object, ".", H5P_DEFAULT), below));
    return To(std::move(same));
  }
  const std::string path = Below(copy_path_, below);
  H5M_ASSIGN_OR_RETURN(Handle object, Own(H5Oopen(target_, path.c_str(), H5P_DEFAULT), path));
  return To(std::move(object));
}

absl::StatusOr<Lead> CopyMap::Find(const Referenced& from) {
  if (from.object < 0) return Simply(Lead::To::kNowhere);  // It led nowhere there either.
  const std::string token = TokenOf(from.info);
  if (const auto inside = inside_.find(token); inside != inside_.end()) {
    if (from.region_is_lost) return losses_.Add(Below(copy_path_, inside->second), "no_region");
    return Inside(from, inside->second);
  }
  if (losses_.AddKnown(token)) return Simply(Lead::To::kNowhere);
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> paths, source_.Find(token));
  if (paths.empty()) return losses_.AddObject(from, "an object without a name", "no_name");
  std::string why;  // of the first path, which is told
  for (const std::string& path : paths) {
    H5M_ASSIGN_OR_RETURN(Place place, view_.Find(from, path));
    if (place.object.valid()) return To(std::move(place.object));
    if (why.empty()) why = std::move(place.why);
  }
  return losses_.AddObject(from, paths[0], why);
}

absl::StatusOr<Lead> ReplacedMap::Find(const Referenced& from) {
  if (from.object < 0) return Simply(Lead::To::kSame);
  const std::string token = TokenOf(from.info);
  if (!gone_.contains(token)) return Simply(Lead::To::kSame);
  ++changes_;
  if (losses_.AddKnown(token)) return Simply(Lead::To::kNowhere);
  std::vector<std::string> paths = graph_.Paths(old_, token, kPathsMax);
  if (paths.empty()) return losses_.Add(StrCat("an object below ", path_), "missing");
  std::string why;
  for (std::string& path : paths) {
    path = Below(path_, path);
    H5M_ASSIGN_OR_RETURN(Place place, view_.Find(from, path));
    if (place.object.valid()) return To(std::move(place.object));
    if (why.empty()) why = std::move(place.why);
  }
  return losses_.AddObject(from, paths[0], why);
}

}  // namespace h5mirror::restore
