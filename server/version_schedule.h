// When a writer's cuts become versions: docs/ARCHITECTURE.md, "What becomes a version".
#ifndef H5MIRROR_SERVER_VERSION_SCHEDULE_H_
#define H5MIRROR_SERVER_VERSION_SCHEDULE_H_

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
    if (version > version_) version_ = version, time_ = time;
  }
  store::VersionNumber newest() const { return version_; }

  // Makes a flush a commit where a version is due, and a close that comes too soon after the newest
  // version a durable cut that becomes one later. `closes`: the barrier is of a close.
  void Apply(absl::Time now, bool closes, store::CutRequest& request) const;

 private:
  absl::Duration every_ =
      absl::InfiniteDuration();  // a version at a flush, this long after the last
  absl::Duration interval_min_ = absl::ZeroDuration();  // of closes that follow each other
  store::VersionNumber version_ = 0;
  absl::Time time_ = absl::InfinitePast();
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_VERSION_SCHEDULE_H_
