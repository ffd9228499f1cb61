// Decides which versions a policy retains, and why: a pure function of versions and policy.
#ifndef H5MIRROR_ONION_STORE_RETENTION_H_
#define H5MIRROR_ONION_STORE_RETENTION_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// A version is retained if any of the rules retains it. Of the versions of an hour, day, ISO week,
// month or year (UTC) the newest counts. Periods without a version do not count.
struct RetentionPolicy {
  int64_t keep_last = 0;
  int64_t keep_hourly = 0;
  int64_t keep_daily = 0;
  int64_t keep_weekly = 0;
  int64_t keep_monthly = 0;
  int64_t keep_yearly = 0;
  // All versions that are not older than this, counted back from the newest one.
  absl::Duration keep_within = absl::ZeroDuration();
  std::vector<std::string> keep_tags = {};  // versions that have one of these tags

  bool empty() const;
  bool operator==(const RetentionPolicy&) const = default;
};

// kInvalidArgument: the policy is empty, a number is negative, or a tag breaks CheckTag().
absl::Status CheckPolicy(const RetentionPolicy& policy);

// Retains the versions that a group needs for a whole cut. It goes through the opens of the file,
// the newest first. Of each open it retains the versions since the newest cut that was whole by
// then, as the newest version of that open tells. Once an open has such a cut, it retains nothing
// of earlier opens. Asked for each version once, newest first. Not thread-safe.
class GroupGuard {
 public:
  bool Keeps(const VersionInfo& version);

 private:
  std::optional<GroupCut> newest_;  // of the open that is looked at
  bool is_done_ = false;
};

// Asked for each version once, newest first. Not thread-safe.
class Retention {
 public:
  explicit Retention(RetentionPolicy policy);

  // Why `version` is retained, in the order of the policy: "newest", "last", "hourly", ...,
  // "within", "tag NAME"; then "group". Empty: it is not retained.
  std::vector<std::string> ReasonsToKeep(const VersionInfo& version);

 private:
  // One kind of period: how many are left, and the last one that was counted.
  struct Bucket {
    const char* reason;
    int64_t left;
    std::string (*period_of)(absl::Time time);
    std::string last;
  };

  const RetentionPolicy policy_;
  std::optional<absl::Time> newest_;
  int64_t last_left_;
  std::array<Bucket, 5> buckets_;
  GroupGuard group_guard_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_RETENTION_H_
