#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/maps.h"
#include "h5restore/paths.h"
#include "h5restore/restore.h"
#include "h5restore/survey.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;
using tools::RestoreJob;
using tools::RestoreResult;

class AttributeRestore {
 public:
  AttributeRestore(const Ends& ends, const RestoreJob& job, Left* left)
      : ends_(ends),
        job_(job),
        left_(*left),
        source_paths_(ends.source),
        mark_(StrCat(".h5mirror-restore-", HexOf(RandomBytes16()), "-")) {
    left_ = Left::kUntouched;
  }

  absl::StatusOr<RestoreResult> Run() {
    H5M_RETURN_IF_ERROR(OpenBoth());
    for (const std::string& name : job_.attributes) H5M_RETURN_IF_ERROR(LookAt(name));
    const TargetView view(ends_.target);
    CopyMap map(source_paths_, inside_, job_.as, ends_.target, view, job_.dry_run);
    map.losses().set_object(job_.as);
    const absl::Status done = job_.dry_run ? Try(map) : Change(map);
    if (!done.ok()) {
      TakeBack();
      return done;
    }
    map.losses().AppendTo(/*removed=*/false, &result_.lost);
    return result_;
  }

 private:
  absl::Status OpenBoth() {
    from_ = OpenHere(ends_.source, job_.path, H5I_BADID);
    if (!from_.valid()) {
      return absl::NotFoundError(StrCat(ends_.source_said, " has no object ", job_.path));
    }
    to_ = OpenHere(ends_.target, job_.as, H5I_BADID);
    if (!to_.valid()) {
      return absl::NotFoundError(StrCat(ends_.target_said, " has no object ", job_.as,
                                        " to give attributes to: restore it without --attribute"));
    }
    const H5I_type_t kind = H5Iget_type(from_.get());
    result_.kind = kind == H5I_DATASET ? "dataset" : kind == H5I_GROUP ? "group" : "datatype";
    H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(from_.get(), job_.path));
    inside_.emplace(TokenOf(info), ".");
    return absl::OkStatus();
  }

  absl::Status LookAt(const std::string& name) {
    if (H5Aexists(from_.get(), name.c_str()) <= 0) {
      return absl::NotFoundError(
          StrCat(ends_.source_said, ":", job_.path, " has no attribute ", name));
    }
    ++result_.attributes;
    if (H5Aexists(to_.get(), name.c_str()) <= 0) return absl::OkStatus();
    if (!job_.replaces) {
      return absl::AlreadyExistsError(StrCat(job_.as, " of ", ends_.target_said,
                                             " has an attribute ", name,
                                             " already, and nothing was changed: --replace "
                                             "replaces it"));
    }
    result_.replaced = true;
    return absl::OkStatus();
  }

  absl::Status Try(CopyMap& map) {
    for (const std::string& name : job_.attributes) {
      H5M_ASSIGN_OR_RETURN(const uint64_t led, CopyAttribute(from_.get(), name, H5I_INVALID_HID,
                                                             name, job_.as, Writes::kAlways, map));
      result_.references += led;
    }
    return absl::OkStatus();
  }

  absl::Status Change(CopyMap& map) {
    left_ = Left::kTakenBack;
    for (const std::string& name : job_.attributes) {
      H5M_RETURN_IF_ERROR(Make(name));
      made_.push_back(mark_ + name);
      H5M_ASSIGN_OR_RETURN(
          const uint64_t led,
          CopyAttribute(from_.get(), name, to_.get(), made_.back(), job_.as, Writes::kAlways, map));
      result_.references += led;
    }
    left_ = Left::kTorn;
    for (const std::string& name : job_.attributes) {
      const std::string what = StrCat(job_.as, ", attribute ", name);
      if (H5Aexists(to_.get(), name.c_str()) > 0) {
        H5M_RETURN_IF_ERROR(Check(H5Adelete(to_.get(), name.c_str()), what));
      }
      H5M_RETURN_IF_ERROR(Check(H5Arename(to_.get(), (mark_ + name).c_str(), name.c_str()), what));
    }
    return absl::OkStatus();
  }

  absl::Status Make(const std::string& name) {
    const std::string what = StrCat(job_.path, ", attribute ", name);
    H5M_ASSIGN_OR_RETURN(const Handle source,
                         Own(H5Aopen(from_.get(), name.c_str(), H5P_DEFAULT), what));
    H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(source.get()), what));
    H5M_ASSIGN_OR_RETURN(const Handle how, Own(H5Aget_create_plist(source.get()), what));
    H5M_ASSIGN_OR_RETURN(const Handle type, TypeOf(source.get(), what));
    const std::string hidden = mark_ + name;
    return Own(H5Acreate2(to_.get(), hidden.c_str(), type.get(), space.get(), how.get(),
                          H5P_DEFAULT),
               what)
        .status();
  }

  // A committed type is that of the same path in the target, if it is equal.
  absl::StatusOr<Handle> TypeOf(hid_t attribute, const std::string& what) {
    H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(attribute), what));
    if (H5Tcommitted(type.get()) > 0) {
      H5M_ASSIGN_OR_RETURN(const H5O_info2_t info, InfoOf(type.get(), what));
      H5M_ASSIGN_OR_RETURN(const auto paths, source_paths_.Find(TokenOf(info)));
      for (const std::string& path : paths) {
        Handle there = OpenHere(ends_.target, path, H5I_DATATYPE);
        if (there.valid() && H5Tequal(there.get(), type.get()) > 0) return there;
      }
    }
    return Own(H5Tcopy(type.get()), what);
  }

  void TakeBack() {
    if (left_ != Left::kTakenBack) return;
    for (const std::string& made : made_) {
      if (H5Adelete(to_.get(), made.c_str()) < 0) left_ = Left::kTorn;
    }
    H5Eclear2(H5E_DEFAULT);
  }

  const Ends& ends_;
  const RestoreJob& job_;
  Left& left_;
  PathsOfFile source_paths_;
  const std::string mark_;
  Handle from_, to_;
  absl::flat_hash_map<std::string, std::string> inside_;
  std::vector<std::string> made_;
  RestoreResult result_;
};

}  // namespace

absl::StatusOr<RestoreResult> RestoreAttributes(const Ends& ends, const RestoreJob& job,
                                                Left* left) {
  return AttributeRestore(ends, job, left).Run();
}

}  // namespace h5mirror::restore
