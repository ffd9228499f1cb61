// One line on a terminal that shows how far long work has come.
#ifndef H5MIRROR_CLI_OUTPUT_PROGRESS_H_
#define H5MIRROR_CLI_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "cli/output/streams.h"

namespace h5mirror::tools {

// Prints a line such as "run.h5  1 GiB of 4 GiB (25 %)  80 MiB/s  38 s left". Prints nothing where
// errors do not go to a terminal, or where the work takes less than half a second. For a file of a
// Streams::batch the line is that of the batch. Not thread-safe. `streams` must outlive it.
class Progress {
 public:
  Progress(Streams& streams, std::string label, uint64_t total_bytes);
  // Counts `unit`s ("versions") instead of bytes.
  Progress(Streams& streams, std::string label, uint64_t total, std::string unit);
  // Wipes the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The work has come to `done_bytes`.
  void Update(uint64_t done_bytes);
  // Wipes the line until the next update, for a result that is printed meanwhile.
  void Wipe();
  // Once it is known.
  void set_total_bytes(uint64_t total_bytes) { total_bytes_ = total_bytes; }

 private:
  Streams& streams_;
  const std::string label_;
  const std::string unit_;  // empty: bytes
  uint64_t total_bytes_;
  const absl::Time start_;
  absl::Time next_;
  bool shown_ = false;
  uint64_t counted_bytes_ = 0;  // by the batch
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_PROGRESS_H_
