#include <optional>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/filters.h"
#include "h5restore/maps.h"
#include "h5restore/paths.h"
#include "h5restore/replaced.h"
#include "h5restore/restore.h"
#include "h5restore/scales.h"
#include "h5restore/splits.h"
#include "h5restore/survey.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;
using tools::RestoreJob;
using tools::RestoreResult;

// Datasets that are named; the rest is counted.
constexpr size_t kNamesMax = 16;

std::string KindOfLink(H5L_type_t type) {
  return type == H5L_TYPE_SOFT ? "soft link" : type == H5L_TYPE_EXTERNAL ? "external link" : "link";
}

// Types are only looked for where the copy was told to: a search of the whole target would find one
// that is equal by chance, and leave out the attributes of the type that is copied.
H5O_mcdt_search_ret_t NoSearch(void*) { return H5O_MCDT_SEARCH_STOP; }

class ObjectRestore {
 public:
  ObjectRestore(const Ends& ends, const RestoreJob& job, Left* left)
      : ends_(ends), job_(job), left_(*left), source_paths_(ends.source), view_(ends.target) {
    left_ = Left::kUntouched;
    const std::string mark = StrCat("/.h5mirror-restore-", HexOf(RandomBytes16()));
    hidden_ = mark;
    hidden_old_ = mark + "-old";
  }

  absl::StatusOr<RestoreResult> Run() {
    H5M_RETURN_IF_ERROR(LookAtSource());
    H5M_RETURN_IF_ERROR(LookAtTarget());
    SetPlan();
    // Does the steps that can fail before any change.
    if (old_) H5M_RETURN_IF_ERROR(old_->Try(view_, &result_));
    H5M_RETURN_IF_ERROR(NoteSplits());
    if (!result_.replaced) H5M_RETURN_IF_ERROR(NoteScales());
    map_.emplace(source_paths_, survey_.paths, job_.as, ends_.target, view_, job_.dry_run);
    if (job_.dry_run) {
      H5M_RETURN_IF_ERROR(LeadReferences());
    } else {
      const absl::Status done = Change();
      if (!done.ok()) {
        TakeBack();
        return done;
      }
    }
    map_->losses().AppendTo(/*removed=*/false, &result_.lost);
    if (old_) result_.lost.insert(result_.lost.end(), old_->lost().begin(), old_->lost().end());
    return result_;
  }

 private:
  bool is_link() const { return link_.type != H5L_TYPE_HARD; }

  absl::Status LookAtSource() {
    H5M_ASSIGN_OR_RETURN(const PathState state,
                         LookAtPath(ends_.source, job_.path, ends_.source_said));
    if (!state.is_there) {
      return absl::NotFoundError(
          StrCat(ends_.source_said, " has no ", job_.path,
                 state.no_group.empty()
                     ? ""
                     : StrCat(" of its own: ", state.no_group, " is no group of that file")));
    }
    link_ = state.link;
    if (is_link()) {
      result_.kind = KindOfLink(link_.type);
      result_.links = 1;
      return absl::OkStatus();
    }
    const std::string said = StrCat(ends_.source_said, ":", job_.path);
    object_ = OpenHere(ends_.source, job_.path, H5I_BADID);
    if (!object_.valid()) return absl::InternalError(StrCat(said, " cannot be opened"));
    H5M_ASSIGN_OR_RETURN(survey_, TakeSurvey(object_.get(), said));
    for (const Surveyed& each : survey_.objects) {
      if (each.missing_filter.empty()) continue;
      return FilterIsMissing(Below(said, each.path), each.missing_filter);
    }
    result_.kind = KindOfObject(object_.get());
    result_.objects = survey_.objects.size();
    result_.links = survey_.links;
    result_.attributes = survey_.attributes;
    result_.bytes = survey_.bytes;
    return absl::OkStatus();
  }

  absl::Status LookAtTarget() {
    H5M_ASSIGN_OR_RETURN(const PathState state,
                         LookAtPath(ends_.target, job_.as, ends_.target_said));
    if (!state.no_group.empty()) {
      return absl::FailedPreconditionError(
          StrCat(ends_.target_said, ": ", state.no_group,
                 " is no group of this file, so there is no place for ", job_.as));
    }
    result_.made_groups = state.makes;
    result_.replaced = state.is_there;
    old_link_ = state.link;
    if (!state.is_there) return absl::OkStatus();
    if (!job_.replaces) {
      return absl::AlreadyExistsError(StrCat(ends_.target_said, " has ", job_.as,
                                             " already, and nothing was changed: --replace "
                                             "replaces it, --as /OTHER/PATH restores beside it"));
    }
    if (old_link_.type != H5L_TYPE_HARD) {
      result_.old_kind = KindOfLink(old_link_.type);
      return absl::OkStatus();
    }
    old_.emplace(ends_.target, ends_.target_said, job_.as);
    return old_->Look(&result_);
  }

  void SetPlan() {
    TargetView::Plan plan;
    plan.source = ends_.source;
    plan.source_path = job_.path;
    plan.as = job_.as;
    plan.source_paths = &source_paths_;
    plan.copied = &survey_.paths;
    plan.gone = old_ ? &old_->gone() : &nothing_;
    view_.SetPlan(std::move(plan));
  }

  absl::Status NoteSplits() {
    if (is_link()) return absl::OkStatus();
    Splits splits(view_, job_.as, &result_);
    if (old_) H5M_RETURN_IF_ERROR(splits.AddOfTarget(old_->KeptBelow(), object_.get()));
    if (!splits.IsNeeded(survey_)) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const LinkGraph* graph, source_paths_.Graph());
    H5M_ASSIGN_OR_RETURN(const HardLink own, LinkAt(ends_.source, job_.path));
    return splits.AddOfSource(survey_, *graph, own);
  }

  // A scale's list of datasets is led over with the rest, where there was an old object.
  absl::Status NoteScales() {
    for (const Surveyed& each : survey_.objects) {
      if (each.attributes_with_references.empty()) continue;
      std::string path = Below(job_.as, each.path);
      H5M_ASSIGN_OR_RETURN(const Handle object,
                           Own(H5Oopen(object_.get(), each.path.c_str(), H5P_DEFAULT), path));
      H5M_ASSIGN_OR_RETURN(const bool has_scales,
                           HasScalesOutside(object.get(), each, survey_.paths, path));
      if (!has_scales) continue;
      ++result_.scaled_count;
      if (result_.scaled.size() < kNamesMax) result_.scaled.push_back(std::move(path));
    }
    return absl::OkStatus();
  }

  absl::Status Change() {
    left_ = Left::kTakenBack;
    H5M_ASSIGN_OR_RETURN(const Handle links, LinkProperties(link_.cset));
    H5M_RETURN_IF_ERROR(Copy(links.get()));
    copied_ = true;
    if (result_.replaced) {
      H5M_RETURN_IF_ERROR(Move(job_.as, hidden_old_, old_link_.cset));
      moved_old_ = true;
    }
    H5M_RETURN_IF_ERROR(Move(hidden_, job_.as, link_.cset));
    moved_new_ = true;
    view_.SetDone();
    H5M_RETURN_IF_ERROR(LeadReferences());
    if (!result_.replaced) return absl::OkStatus();
    left_ = Left::kTorn;
    if (old_) H5M_RETURN_IF_ERROR(old_->LeadOver(view_, &result_));
    return Check(H5Ldelete(ends_.target, hidden_old_.c_str(), H5P_DEFAULT),
                 StrCat(ends_.target_said, ": remove the old ", job_.as));
  }

  absl::Status Copy(hid_t links) {
    const std::string what =
        StrCat("copy ", job_.path, " of ", ends_.source_said, " into ", ends_.target_said);
    if (is_link()) {
      return Check(H5Lcopy(ends_.source, job_.path.c_str(), ends_.target, hidden_.c_str(), links,
                           H5P_DEFAULT),
                   what);
    }
    H5M_ASSIGN_OR_RETURN(const Handle how, Own(H5Pcreate(H5P_OBJECT_COPY), what));
    H5M_RETURN_IF_ERROR(TakeTypes(how.get()));
    return Check(
        H5Ocopy(ends_.source, job_.path.c_str(), ends_.target, hidden_.c_str(), how.get(), links),
        what);
  }

  // A committed type outside of the copied object may exist by the same path in the target. Then
  // the copy uses the target's type.
  absl::Status TakeTypes(hid_t how) {
    bool takes = false;
    for (const std::string& token : survey_.types) {
      H5M_ASSIGN_OR_RETURN(const std::vector<std::string> paths, source_paths_.Find(token));
      if (paths.empty() || IsAlsoInside(paths[0])) continue;
      for (const std::string& path : paths) {
        H5M_RETURN_IF_ERROR(Check(H5Padd_merge_committed_dtype_path(how, path.c_str()), path));
      }
      takes = true;
    }
    if (!takes) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(Check(H5Pset_mcdt_search_cb(how, NoSearch, nullptr), "set a search"));
    return Check(H5Pset_copy_object(how, H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG), "set a flag");
  }

  // An equal type below the object would become that other one, without its own attributes.
  bool IsAlsoInside(const std::string& path) const {
    const Handle type(H5Topen2(ends_.source, path.c_str(), H5P_DEFAULT));
    for (const Surveyed& each : survey_.objects) {
      if (each.type != H5O_TYPE_NAMED_DATATYPE) continue;
      const Handle inside(H5Oopen(object_.get(), each.path.c_str(), H5P_DEFAULT));
      if (H5Tequal(type.get(), inside.get()) != 0) return true;
    }
    return false;
  }

  absl::Status Move(const std::string& from, const std::string& to, H5T_cset_t character_set) {
    H5M_ASSIGN_OR_RETURN(const Handle links, LinkProperties(character_set));
    return Check(
        H5Lmove(ends_.target, from.c_str(), ends_.target, to.c_str(), links.get(), H5P_DEFAULT),
        StrCat(ends_.target_said, ": move ", from, " to ", to));
  }

  absl::Status LeadReferences() {
    for (const Surveyed& each : survey_.objects) {
      if (!each.has_references()) continue;
      const std::string path = Below(job_.as, each.path);
      H5M_ASSIGN_OR_RETURN(const Handle from,
                           Own(H5Oopen(object_.get(), each.path.c_str(), H5P_DEFAULT), path));
      Handle to;
      if (!job_.dry_run) {
        H5M_ASSIGN_OR_RETURN(to, Own(H5Oopen(ends_.target, path.c_str(), H5P_DEFAULT), path));
      }
      map_->losses().set_object(path);
      H5M_ASSIGN_OR_RETURN(const uint64_t led,
                           RewriteReferences(from.get(), to.get(), each, path, *map_));
      result_.references += led;
    }
    return absl::OkStatus();
  }

  void TakeBack() {
    if (left_ != Left::kTakenBack) return;
    bool went_well = true;
    const auto remove = [&](const std::string& path) {
      went_well = H5Ldelete(ends_.target, path.c_str(), H5P_DEFAULT) >= 0 && went_well;
    };
    if (copied_) remove(moved_new_ ? job_.as : hidden_);
    // A move that fails may have made some of them.
    for (auto made = result_.made_groups.rbegin(); made != result_.made_groups.rend(); ++made) {
      if (H5Lexists(ends_.target, made->c_str(), H5P_DEFAULT) > 0) remove(*made);
    }
    if (moved_old_) went_well = Move(hidden_old_, job_.as, old_link_.cset).ok() && went_well;
    H5Eclear2(H5E_DEFAULT);
    if (!went_well) left_ = Left::kTorn;
  }

  const Ends& ends_;
  const RestoreJob& job_;
  Left& left_;
  PathsOfFile source_paths_;
  std::string hidden_, hidden_old_;
  H5L_info2_t link_{}, old_link_{};
  Handle object_;  // of the source; invalid for a link
  Survey survey_;  // of it
  TargetView view_;
  std::optional<Replaced> old_;  // of a hard link that is replaced
  const absl::flat_hash_set<std::string> nothing_{};
  std::optional<CopyMap> map_;
  bool copied_ = false, moved_old_ = false, moved_new_ = false;
  RestoreResult result_;
};

}  // namespace

absl::StatusOr<RestoreResult> RestoreObject(const Ends& ends, const RestoreJob& job, Left* left) {
  return ObjectRestore(ends, job, left).Run();
}

}  // namespace h5mirror::restore
