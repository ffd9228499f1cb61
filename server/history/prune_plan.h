// The versions of a file that a policy drops.
#ifndef H5MIRROR_SERVER_HISTORY_PRUNE_PLAN_H_
#define H5MIRROR_SERVER_HISTORY_PRUNE_PLAN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "h5mirror/v1/versions.pb.h"
#include "onion_store/file.h"
#include "onion_store/retention.h"

namespace h5mirror::server {

// kInvalidArgument as store::CheckPolicy().
absl::StatusOr<store::RetentionPolicy> FromProto(const v1::RetentionPolicy& policy);

// One version, and why it is retained; no reasons: it is dropped.
struct PlannedVersion {
  store::VersionInfo version;
  std::vector<std::string> kept_by;
};

// The plan of a file, some versions at a time. Not thread-safe. `file` must outlive it.
class PrunePlanner {
 public:
  PrunePlanner(store::File& file, const store::RetentionPolicy& policy)
      : file_(file), retention_(policy) {}

  // The next versions, newest first, at most `count`; none: there are no more. Versions that the
  // head does not hold yet are retained for now.
  absl::StatusOr<std::vector<PlannedVersion>> Next(size_t count);
  // The versions to drop among those that Next() gave.
  std::vector<store::VersionNumber> TakeDoomed() { return std::move(doomed_); }

 private:
  store::File& file_;
  store::Retention retention_;
  store::VersionRange range_;
  std::optional<store::VersionNumber> needed_;
  std::vector<store::VersionNumber> doomed_;
};

// The versions of `file` to drop. Calls `pause` now and then; an error of it ends the work.
absl::StatusOr<std::vector<store::VersionNumber>> PlanPrune(
    store::File& file, const store::RetentionPolicy& policy,
    absl::FunctionRef<absl::Status()> pause);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HISTORY_PRUNE_PLAN_H_
