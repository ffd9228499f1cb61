#include "onion_store/index/dropped_versions.h"

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {

absl::Status DroppedVersions::Pruned(VersionNumber version) const {
  return absl::OutOfRangeError(StrCat(name_, "@", version, " was pruned"));
}

absl::Status DroppedVersions::CheckNotDropped(VersionIndex& index, VersionNumber version,
                                              uint64_t epoch) const {
  if (epoch == this->epoch()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const bool there, index.HasVersion(version));
  return there ? absl::OkStatus() : Pruned(version);
}

}  // namespace h5mirror::store
