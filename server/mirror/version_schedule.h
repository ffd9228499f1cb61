// Decides which of a writer's cuts become versions: docs/design/022-versions-and-retention.md.
#ifndef H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_
#define H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// The schedule of one session. Not thread-safe.
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

  // Makes a cut of a group a commit. Makes another flush a commit if a version is due. Makes a
  // close that comes too soon after the newest version a durable cut that becomes a version later.
  // `closes`: the barrier is that of a close. A commit counts from this call on, not from when it
  // is durable, so that a slow disk does not make more flushes due.
  void Apply(absl::Time now, bool closes, store::CutRequest& request);
  // A version is made for another reason.
  void Commits(absl::Time now) { counts_from_ = now; }
  // A commit turned out to change nothing: no version was made, so the next flush may be due.
  void Unchanged() { counts_from_ = time_; }

 private:
  absl::Duration every_ =
      absl::InfiniteDuration();  // a flush makes a version this long after the last one
  absl::Duration interval_min_ = absl::ZeroDuration();  // between versions of two closes
  store::VersionNumber version_ = 0;
  absl::Time time_ = absl::InfinitePast();
  absl::Time counts_from_ = absl::InfinitePast();  // the newest version or commit
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_VERSION_SCHEDULE_H_
