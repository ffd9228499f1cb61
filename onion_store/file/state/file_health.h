// Whether a file's store still works, and whether its cuts get into the head.
//
//   works -- Die(): a sync failed, the disk is full where no try helps, the store closed --> dead
//     |
//     +-- NoteApplied(error): cuts stay beside the head --> NoteApplied(OK)
//
// After a failed sync nobody knows what the disk holds: a dead file must be opened again. Nothing
// that was durable is lost.
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace h5mirror::store {

// Not thread-safe: the file's state lock guards it.
class FileHealth {
 public:
  // OK, or what every call returns from now on: kUnavailable, or kResourceExhausted for a full
  // disk.
  const absl::Status& dead() const { return dead_; }
  // The file `name` failed with `status`. False: it was dead before, for another reason.
  bool Die(const std::string& name, const absl::Status& status);
  // The same without a failure: calls return `why` itself.
  void Leave(const absl::Status& why) {
    if (dead_.ok()) dead_ = why;
  }

  // The result of the last apply.
  const absl::Status& apply_error() const { return apply_error_; }
  // True: it is an error, and another one than that of the apply before.
  bool NoteApplied(const absl::Status& status) {
    return status != std::exchange(apply_error_, status) && !status.ok();
  }

 private:
  absl::Status dead_;
  absl::Status apply_error_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_
