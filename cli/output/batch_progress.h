// One progress line on a terminal for long work on many files, some of them in parallel.
#ifndef H5MIRROR_CLI_OUTPUT_BATCH_PROGRESS_H_
#define H5MIRROR_CLI_OUTPUT_BATCH_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/output/streams.h"

namespace h5mirror::tools {

// Prints nothing where errors of `streams` do not go to a terminal, or in the first half second.
// Thread-safe. `streams` must outlive it, and is written to by nobody else but in Tell().
class BatchProgress {
 public:
  BatchProgress(Streams& streams, size_t file_count, uint64_t total_bytes);
  // Wipes the line.
  ~BatchProgress();
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  // `bytes` more of a file in hand are done. Back() takes back the bytes of a file that is given
  // up. `label`: the name on the line.
  void Advance(const std::string& label, uint64_t bytes);
  void Back(uint64_t bytes);
  // A file of `size_bytes` is finished, with or without success. Call Back() for its parts before.
  void FileDone(uint64_t size_bytes);
  // Wipes the line, and calls `tell`, which may write to the streams.
  void Tell(absl::FunctionRef<void()> tell);

 private:
  std::string Line(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wipe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Streams& streams_;
  const size_t file_count_;
  const uint64_t total_bytes_;
  const absl::Time start_;
  absl::Mutex mutex_;
  std::string label_ ABSL_GUARDED_BY(mutex_);  // of the file that advanced last
  size_t files_done_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // of files that are done
  uint64_t in_hand_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // done of the others
  absl::Time next_ ABSL_GUARDED_BY(mutex_);
  bool shown_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_BATCH_PROGRESS_H_
