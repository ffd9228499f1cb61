#include "server/history/prune_plan.h"

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kVersionsAtOnce = 1000;
constexpr std::string_view kNotApplied = "not in the head yet";

}  // namespace

absl::StatusOr<store::RetentionPolicy> FromProto(const v1::RetentionPolicy& policy) {
  store::RetentionPolicy wanted;
  wanted.keep_last = policy.keep_last();
  wanted.keep_hourly = policy.keep_hourly();
  wanted.keep_daily = policy.keep_daily();
  wanted.keep_weekly = policy.keep_weekly();
  wanted.keep_monthly = policy.keep_monthly();
  wanted.keep_yearly = policy.keep_yearly();
  wanted.keep_within = absl::Seconds(policy.keep_within().seconds()) +
                       absl::Nanoseconds(policy.keep_within().nanos());
  wanted.keep_tags.assign(policy.keep_tags().begin(), policy.keep_tags().end());
  H5M_RETURN_IF_ERROR(store::CheckPolicy(wanted));
  return wanted;
}

absl::StatusOr<std::vector<PlannedVersion>> PrunePlanner::Next(size_t count) {
  if (!needed_) {
    H5M_ASSIGN_OR_RETURN(needed_, file_.OldestNeeded());
  }
  H5M_ASSIGN_OR_RETURN(auto versions, file_.ListVersions(range_, count));
  std::vector<PlannedVersion> plan;
  plan.reserve(versions.size());
  for (store::VersionInfo& version : versions) {
    range_.before = version.version;
    PlannedVersion& planned = plan.emplace_back(PlannedVersion{std::move(version), {}});
    planned.kept_by = retention_.ReasonsToKeep(planned.version);
    if (planned.kept_by.empty() && planned.version.version >= *needed_) {
      planned.kept_by.emplace_back(kNotApplied);
    }
    if (planned.kept_by.empty()) doomed_.push_back(planned.version.version);
  }
  return plan;
}

absl::StatusOr<std::vector<store::VersionNumber>> PlanPrune(
    store::File& file, const store::RetentionPolicy& policy,
    absl::FunctionRef<absl::Status()> pause) {
  PrunePlanner planner(file, policy);
  for (;;) {
    H5M_RETURN_IF_ERROR(pause());
    H5M_ASSIGN_OR_RETURN(const auto versions, planner.Next(kVersionsAtOnce));
    if (versions.empty()) return planner.TakeDoomed();
  }
}

}  // namespace h5mirror::server
