// When a writer's cuts become versions: docs/design/022-versions-and-retention.md.
#ifndef H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_
#define H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// Of one session. Not thread-safe.
class VersionSchedule {
 public:
  // kInvalidArgument names the field. Both may be unset.
  static absl::StatusOr<VersionSchedule> Make(const v1::OpenSession& open);

  // The newest version of the file, and its server time; version 0: there is none.
  void Newest(store::VersionNumber version, absl::Time time) {
    if (version <= version_) return;
    version_ = version, time_ = time;
    counts_from_ = std::max(counts_from_, time);
  }
  store::VersionNumber newest() const { return version_; }

  // Makes a flush a commit where a version is due, and a close that comes too soon after the newest
  // version a durable cut that becomes one later. `closes`: the barrier is of a close. A commit
  // counts from here on, not from when it is durable: where the disk is slow the flushes until then
  // are none.
  void Apply(absl::Time now, bool closes, store::CutRequest& request);
  // One is made for another reason.
  void Commits(absl::Time now) { counts_from_ = now; }
  // A commit turned out to change nothing: no version was made, so the next flush may be due.
  void Unchanged() { counts_from_ = time_; }

 private:
  absl::Duration every_ =
      absl::InfiniteDuration();  // a version at a flush, this long after the last
  absl::Duration interval_min_ = absl::ZeroDuration();  // of closes that follow each other
  store::VersionNumber version_ = 0;
  absl::Time time_ = absl::InfinitePast();
  absl::Time counts_from_ = absl::InfinitePast();  // the newest version or commit
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_
