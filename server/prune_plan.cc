#include "server/prune_plan.h"

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

absl::StatusOr<std::vector<store::VersionNumber>> PlanPrune(
    store::File& file, const store::RetentionPolicy& policy,
    absl::FunctionRef<absl::Status(const PlannedVersion&)> sink) {
  store::Retention retention(policy);
  std::vector<store::VersionNumber> doomed;
  H5M_ASSIGN_OR_RETURN(const store::VersionNumber needed, file.OldestNeeded());
  for (store::VersionRange range;;) {
    H5M_ASSIGN_OR_RETURN(auto versions, file.ListVersions(range, kVersionsAtOnce));
    if (versions.empty()) return doomed;
    range.before = versions.back().version;
    for (store::VersionInfo& version : versions) {
      PlannedVersion planned{std::move(version), {}};
      planned.kept_by = retention.ReasonsToKeep(planned.version);
      if (planned.kept_by.empty() && planned.version.version >= needed) {
        planned.kept_by.emplace_back(kNotApplied);
      }
      if (planned.kept_by.empty()) doomed.push_back(planned.version.version);
      H5M_RETURN_IF_ERROR(sink(planned));
    }
  }
}

}  // namespace h5mirror::server
