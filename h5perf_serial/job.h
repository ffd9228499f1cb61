// What both backends need of one iteration, and what they do with it.
#ifndef H5MIRROR_H5PERF_SERIAL_JOB_H_
#define H5MIRROR_H5PERF_SERIAL_JOB_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/strings.h"
#include "cli/process/stop_signal.h"
#include "h5perf_serial/options.h"
#include "h5perf_serial/page_buffer.h"
#include "h5perf_serial/phase_clock.h"

namespace h5mirror::perf {

// What the transfer buffer holds: byte k is k mod 128, or noise that is the same at each run.
void FillBuffer(Contents contents, Bytes& buffer);

// Compares a buffer that was read from `offset` with what was written there. kDataLoss names the
// first byte that differs, by its place in the dataset.
absl::Status VerifyBuffer(const Shape& shape, const Sizes& offset, const Bytes& wanted,
                          const Bytes& read, const std::string& file);

struct Job {
  const Options& options;
  const Walk& walk;
  const std::string base;  // of data files
  PhaseClock& clock;
  // Called after each buffer with the number that are done; may be empty.
  const std::function<void(uint64_t)>& progress;
  const tools::StopSignal* stop;  // null: nothing stops it

  // After each buffer. kCancelled where the program is to end.
  absl::Status NoteDone(uint64_t count) const {
    if (progress) progress(count);
    if (stop == nullptr || stop->number() == 0) return absl::OkStatus();
    return absl::CancelledError(ToAbsl(StrCat("stopped by signal ", stop->number())));
  }
};

// One way to write and read a dataset. Files stay until Remove().
class Backend {
 public:
  virtual ~Backend() = default;
  // Creates the file, writes all buffers, closes it.
  virtual absl::Status Write(const Job& job) = 0;
  // Opens it, reads all buffers, closes it; with -D v each one is compared, outside of the times.
  virtual absl::Status Read(const Job& job) = 0;
  // As the file is called in reports.
  virtual std::string FileName(const std::string& base) const = 0;
  // Those that are there.
  virtual std::vector<std::string> Files(const std::string& base) const = 0;
  virtual void Remove(const std::string& base) const = 0;
  // Why the last Write() is not what it was asked to be, though it succeeded; mostly empty.
  virtual std::string complaint() const { return ""; }
};

std::unique_ptr<Backend> MakePosixBackend();
std::unique_ptr<Backend> MakeHdf5Backend(const Driver& driver);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_JOB_H_
