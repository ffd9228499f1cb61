// One line on a terminal that shows how far a long run has come.
#ifndef H5MIRROR_H5PERF_SERIAL_PROGRESS_LINE_H_
#define H5MIRROR_H5PERF_SERIAL_PROGRESS_LINE_H_

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace h5mirror::perf {

// Nothing in the first half second. Not thread-safe. (cli/output/progress.h does the same for the
// CLI, whose libraries a measurement should not carry.)
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, std::string label, uint64_t total);
  // Wipes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Looks at the time and no more, mostly.
  void Update(uint64_t done) {
    if (Clock::now() >= next_) Print(done);
  }

 private:
  using Clock = std::chrono::steady_clock;
  void Print(uint64_t done);

  std::ostream& out_;
  const std::string label_;
  const uint64_t total_;
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_PROGRESS_LINE_H_
