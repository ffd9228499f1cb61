#include "h5restore/replaced.h"

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/filters.h"
#include "h5restore/paths.h"

namespace h5mirror::restore {

using hdf5::Handle;
using hdf5::Own;
using tools::RestoreResult;

absl::Status Replaced::Look(RestoreResult* result) {
  H5M_ASSIGN_OR_RETURN(const Handle old, Own(H5Oopen(target_, path_.c_str(), H5P_DEFAULT), path_));
  H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(old.get(), path_));
  H5M_ASSIGN_OR_RETURN(const HardLink own, LinkAt(target_, path_));
  token_ = TokenOf(info);
  H5M_ASSIGN_OR_RETURN(graph_, LinkGraph::Of(target_, said_));
  reached_ = graph_.Reachable(token_, HardLink());
  kept_ = graph_.Reachable(graph_.root(), own);
  for (const std::string& each : reached_) {
    if (!kept_.contains(each)) gone_.insert(each);
  }
  for (const HardLink& link : graph_.LinksTo(token_)) {
    if (link != own && kept_.contains(link.group)) ++result->other_names;
  }
  result->old_kind = KindOfObject(old.get());
  if (gone_.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(all_, TakeSurvey(target_, said_));
  for (const Surveyed& each : all_.objects) {
    if (!gone_.contains(each.token)) continue;
    ++result->old_objects;
    result->old_bytes += each.bytes;
  }
  return absl::OkStatus();
}

ReplacedMap Replaced::MapOf(const TargetView& view) const {
  return ReplacedMap(gone_, graph_, token_, path_, view);
}

absl::Status Replaced::Try(const TargetView& view, RestoreResult* result) {
  ReplacedMap map = MapOf(view);
  result->led_over = 0;
  for (size_t i = 0; i < all_.objects.size(); ++i) {
    const Surveyed& each = all_.objects[i];
    if (!each.has_references() || gone_.contains(each.token)) continue;
    if (each.data_has_references && !each.missing_filter.empty()) {
      return FilterIsMissing(StrCat(said_, ":", NameOf(each)), each.missing_filter);
    }
    const uint64_t before = map.changes();
    H5M_RETURN_IF_ERROR(Visit(each, /*writes=*/false, &map, result));
    if (map.changes() > before) to_change_.push_back(i);
  }
  lost_.clear();
  map.losses().AppendTo(/*removed=*/true, &lost_);
  return absl::OkStatus();
}

absl::Status Replaced::LeadOver(const TargetView& view, RestoreResult* result) {
  ReplacedMap map = MapOf(view);
  result->led_over = 0;
  for (const size_t i : to_change_) {
    H5M_RETURN_IF_ERROR(Visit(all_.objects[i], /*writes=*/true, &map, result));
  }
  lost_.clear();
  map.losses().AppendTo(/*removed=*/true, &lost_);
  return absl::OkStatus();
}

absl::Status Replaced::Visit(const Surveyed& object, bool writes, ReplacedMap* map,
                             RestoreResult* result) const {
  const std::string name = NameOf(object);
  H5M_ASSIGN_OR_RETURN(const Handle opened, OpenToken(target_, object.token, name));
  map->losses().set_object(name);
  H5M_ASSIGN_OR_RETURN(
      const uint64_t led,
      RewriteReferences(opened.get(), writes ? opened.get() : H5I_INVALID_HID, object, name, *map));
  result->led_over += led;
  return absl::OkStatus();
}

// One that it has when the old object has gone.
std::string Replaced::NameOf(const Surveyed& object) const {
  const std::string name = Below("/", object.path);
  if (!IsAtOrBelow(name, path_)) return name;
  for (const std::string& path : graph_.Paths(graph_.root(), object.token, kPathsMax)) {
    const std::string other = Below("/", path);
    if (!IsAtOrBelow(other, path_)) return other;
  }
  return name;
}

std::vector<Replaced::Kept> Replaced::KeptBelow() const {
  std::vector<Kept> kept;
  for (const std::string& object : reached_) {
    if (object == token_ || gone_.contains(object)) continue;
    for (const HardLink& link : graph_.LinksTo(object)) {
      if (reached_.contains(link.group) || !kept_.contains(link.group)) continue;
      const auto below = graph_.Paths(token_, object, 1);
      const auto groups = graph_.Paths(graph_.root(), link.group, 1);
      if (below.empty() || groups.empty()) continue;
      kept.push_back({below[0], Below(Below("/", groups[0]), link.name)});
    }
  }
  return kept;
}

}  // namespace h5mirror::restore
