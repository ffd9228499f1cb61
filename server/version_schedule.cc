#include "server/version_schedule.h"

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

void VersionSchedule::Apply(absl::Time now, bool closes, store::CutRequest& request) const {
  const bool is_commit = request.kind == store::BarrierKind::kCommit;
  const absl::Duration age = now - time_;
  // Nobody knows how old it is where the clock was set back: then a version is due.
  const bool is_from_the_future = age < absl::ZeroDuration();
  if (!is_commit) {
    // The first version is that of the first flush after `every_`: there is nothing to count from.
    if ((age >= every_ || is_from_the_future) && every_ != absl::InfiniteDuration()) {
      request.kind = store::BarrierKind::kCommit;
    }
    return;
  }
  // A commit that the program asked for by name is kept in any case.
  if (!closes || version_ == 0 || age >= interval_min_ || is_from_the_future) return;
  request.kind = store::BarrierKind::kSync;
  request.keep_at = time_ + interval_min_;
}

}  // namespace h5mirror::server
