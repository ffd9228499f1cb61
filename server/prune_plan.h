// Which versions of a file a policy drops.
#ifndef H5MIRROR_SERVER_PRUNE_PLAN_H_
#define H5MIRROR_SERVER_PRUNE_PLAN_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "h5mirror/v1/versions.pb.h"
#include "onion_store/file.h"
#include "onion_store/retention.h"

namespace h5mirror::server {

// kInvalidArgument as store::CheckPolicy().
absl::StatusOr<store::RetentionPolicy> FromProto(const v1::RetentionPolicy& policy);

// One version, and why it is kept; no reasons: it goes.
struct PlannedVersion {
  store::VersionInfo version;
  std::vector<std::string> kept_by;
};

// Calls `sink` for every version of `file`, newest first, and returns those to drop. A failed sink
// ends it. What the head does not hold yet is kept for now.
absl::StatusOr<std::vector<store::VersionNumber>> PlanPrune(
    store::File& file, const store::RetentionPolicy& policy,
    absl::FunctionRef<absl::Status(const PlannedVersion&)> sink);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_PRUNE_PLAN_H_
