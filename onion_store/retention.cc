#include "onion_store/retention.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

std::string Period(const char* format, absl::Time time) {
  return absl::FormatTime(format, time, absl::UTCTimeZone());
}

// Members of one group cut have one client time, and server times that differ by milliseconds: all
// of them must fall into the same hour. A wrong clock has no effect.
absl::Time TimeOf(const VersionInfo& version) {
  constexpr absl::Duration kSkewMax = absl::Minutes(1);
  const absl::Time client = version.provenance.client_time;
  const bool is_near = version.group && client != absl::InfinitePast() &&
                       absl::AbsDuration(client - version.server_time) <= kSkewMax;
  return is_near ? client : version.server_time;
}

}  // namespace

bool GroupGuard::Keeps(const VersionInfo& version) {
  if (is_done_ || !version.group) return false;
  const GroupCut& group = *version.group;
  if (!newest_ || newest_->id != group.id) {
    is_done_ = newest_ && newest_->whole_number > 0;
    if (is_done_) return false;
    newest_ = group;
  }
  is_done_ = group.number <= newest_->whole_number;
  return group.number >= newest_->whole_number;
}

bool RetentionPolicy::empty() const {
  return keep_last == 0 && keep_hourly == 0 && keep_daily == 0 && keep_weekly == 0 &&
         keep_monthly == 0 && keep_yearly == 0 && keep_within == absl::ZeroDuration() &&
         keep_tags.empty();
}

absl::Status CheckPolicy(const RetentionPolicy& policy) {
  if (policy.empty()) {
    return absl::InvalidArgumentError(
        "the policy is empty and would drop all versions but the newest: say what to keep "
        "(keep_last, keep_hourly, keep_daily, keep_weekly, keep_monthly, keep_yearly, keep_within, "
        "keep_tag); keep_last = 1 keeps the newest alone");
  }
  const std::pair<const char*, int64_t> counts[] = {
      {"keep_last", policy.keep_last},       {"keep_hourly", policy.keep_hourly},
      {"keep_daily", policy.keep_daily},     {"keep_weekly", policy.keep_weekly},
      {"keep_monthly", policy.keep_monthly}, {"keep_yearly", policy.keep_yearly}};
  for (const auto& [name, count] : counts) {
    if (count >= 0) continue;
    return absl::InvalidArgumentError(StrCat(name, " is ", count, ", and must not be negative"));
  }
  if (policy.keep_within < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("keep_within must not be negative");
  }
  constexpr size_t kKeepTagsMax = 1000;  // each is looked for among the tags of each version
  if (policy.keep_tags.size() > kKeepTagsMax) {
    return absl::InvalidArgumentError(StrCat("keep_tag names ", policy.keep_tags.size(),
                                             " tags; at most ", kKeepTagsMax, " are allowed"));
  }
  for (const std::string& tag : policy.keep_tags) H5M_RETURN_IF_ERROR(CheckTag(tag));
  return absl::OkStatus();
}

Retention::Retention(RetentionPolicy policy)
    : policy_(std::move(policy)),
      last_left_(policy_.keep_last),
      buckets_({{{"hourly", policy_.keep_hourly,
                  [](absl::Time time) { return Period("%Y-%m-%d %H", time); }, ""},
                 {"daily", policy_.keep_daily,
                  [](absl::Time time) { return Period("%Y-%m-%d", time); }, ""},
                 {"weekly", policy_.keep_weekly,
                  [](absl::Time time) { return Period("%G-W%V", time); }, ""},
                 {"monthly", policy_.keep_monthly,
                  [](absl::Time time) { return Period("%Y-%m", time); }, ""},
                 {"yearly", policy_.keep_yearly, [](absl::Time time) { return Period("%Y", time); },
                  ""}}}) {}

std::vector<std::string> Retention::ReasonsToKeep(const VersionInfo& version) {
  const absl::Time time = TimeOf(version);
  std::vector<std::string> reasons;
  if (!newest_) {
    newest_ = time;
    reasons.push_back("newest");
  }
  if (last_left_ > 0) {
    --last_left_;
    reasons.push_back("last");
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.left == 0) continue;
    std::string period = bucket.period_of(time);
    if (period == bucket.last) continue;
    bucket.last = std::move(period);
    --bucket.left;
    reasons.push_back(bucket.reason);
  }
  if (policy_.keep_within > absl::ZeroDuration() && time >= *newest_ - policy_.keep_within) {
    reasons.push_back("within");
  }
  for (const std::string& tag : version.tags) {
    if (std::find(policy_.keep_tags.begin(), policy_.keep_tags.end(), tag) !=
        policy_.keep_tags.end()) {
      reasons.push_back(StrCat("tag ", tag));
    }
  }
  if (group_guard_.Keeps(version)) reasons.emplace_back("group");
  return reasons;
}

}  // namespace h5mirror::store
