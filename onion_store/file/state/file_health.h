// Whether a file's store still works, and whether its cuts get into the head.
//
//   works -- Die(): a sync failed, the disk is full and no retry helps, the store closed --> dead
//     |
//     +-- NoteApplied(error): cuts stay beside the head --> NoteApplied(OK)
//     |
//     +-- PutOff(): the disk has no room to make cuts durable --> TryNow(), or the time came
//
// After a failed sync the content of the disk is unknown: a dead file must be opened again. Nothing
// durable is lost. If the work can be retried, a full disk does not make the file dead: readers may
// still read it.
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace h5mirror::store {

// Not thread-safe: the file's state lock guards it.
class FileHealth {
 public:
  // OK, or the error of every call from now on: kUnavailable, or kResourceExhausted for a full
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
  // True: it is an error, and differs from the error of the last apply.
  bool NoteApplied(const absl::Status& status) {
    return status != std::exchange(apply_error_, status) && !status.ok();
  }

  // There was no room to make cuts durable. No call retries that before `until`.
  void PutOff(const absl::Status& status, absl::Time until) {
    durable_error_ = status;
    durable_from_ = until;
  }
  // The last try found room, or the next try need not wait.
  void TryNow() { PutOff(absl::OkStatus(), absl::InfinitePast()); }
  // The error of PutOff(), until the next try succeeds.
  const absl::Status& durable_error() const { return durable_error_; }
  // Cuts may become durable from this time on.
  absl::Time durable_from() const { return durable_from_; }

 private:
  absl::Status dead_;
  absl::Status apply_error_;
  absl::Status durable_error_;
  absl::Time durable_from_ = absl::InfinitePast();
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_FILE_HEALTH_H_
