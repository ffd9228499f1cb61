#include "server/mirror/version_schedule.h"

#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr int64_t kSecondsMax = 366 * 86400;

absl::StatusOr<absl::Duration> DurationOf(const google::protobuf::Duration& duration,
                                          std::string_view field) {
  if (duration.seconds() < 0 || duration.seconds() > kSecondsMax || duration.nanos() < 0 ||
      duration.nanos() > 999'999'999) {
    return absl::InvalidArgumentError(StrCat("open.", field, " ", duration.seconds(),
                                             " s is not in the range from 0 to 366 days"));
  }
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

// Nobody knows how long ago it was where the clock was set back: then it is long enough.
bool HasPassed(absl::Duration duration, absl::Time since, absl::Time now) {
  return now - since >= duration || now < since;
}

}  // namespace

absl::StatusOr<VersionSchedule> VersionSchedule::Make(const v1::OpenSession& open) {
  VersionSchedule schedule;
  if (open.has_version_every()) {
    const auto every = DurationOf(open.version_every(), "version_every");
    if (!every.ok()) return every.status();
    if (*every > absl::ZeroDuration()) schedule.every_ = *every;
  }
  if (open.has_version_min_interval()) {
    const auto interval = DurationOf(open.version_min_interval(), "version_min_interval");
    if (!interval.ok()) return interval.status();
    schedule.interval_min_ = *interval;
  }
  return schedule;
}

void VersionSchedule::Apply(absl::Time now, bool closes, store::CutRequest& request) {
  if (request.group) {
    // A member whose cut of the group is not kept would leave the others without it.
    request.kind = store::BarrierKind::kCommit;
  } else if (request.kind != store::BarrierKind::kCommit) {
    if (every_ == absl::InfiniteDuration() || !HasPassed(every_, counts_from_, now)) return;
    request.kind = store::BarrierKind::kCommit;
  } else if (closes && version_ != 0 && !HasPassed(interval_min_, time_, now)) {
    // Not so a commit that the program asked for by name: it is kept in any case.
    request.kind = store::BarrierKind::kSync;
    request.version_at = time_ + interval_min_;
    return;
  }
  Commits(now);
}

}  // namespace h5mirror::server
