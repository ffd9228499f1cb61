// The versions of a file, newest first, for verbs that look into one after the other.
#ifndef H5MIRROR_H5DIFF_VERSION_WALK_H_
#define H5MIRROR_H5DIFF_VERSION_WALK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "rpc/client.h"

namespace h5mirror::tools {

enum class WalkEnd {
  kOldest,   // there is no older version
  kSince,    // the last version is older than the time that was asked for
  kStopped,  // `take` had enough
};

// Calls `take` with each version of `request`'s time, and with the one before: the changes of
// the first one is known by that alone. `take` returns false to stop. `request.page_size`: how many
// versions one call of the server gives, for a walk that is known to stop early; 0: 500.
// Errors: those of ListVersions and of `take`; kNotFound also: there is no version of that time.
absl::StatusOr<WalkEnd> ForEachVersion(
    rpc::Client& client, v1::ListVersionsRequest request,
    absl::FunctionRef<absl::StatusOr<bool>(const v1::Version&)> take);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_VERSION_WALK_H_
