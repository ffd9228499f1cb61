// The six times that are taken of one iteration.
#ifndef H5MIRROR_H5PERF_SERIAL_PHASE_CLOCK_H_
#define H5MIRROR_H5PERF_SERIAL_PHASE_CLOCK_H_

#include <array>
#include <chrono>
#include <cstddef>

namespace h5mirror::perf {

// In the order of the report.
enum class Phase {
  kRawWrite,        // dataset created, until the last buffer is written
  kWrite,           // file open, until the dataset is closed
  kWriteOpenClose,  // before the file is made, until it is closed
  kRawRead,
  kRead,
  kReadOpenClose,
};
inline constexpr size_t kPhaseCount = 6;

struct PhaseName {
  Phase phase;
  const char* title;  // of the text report
  const char* key;    // of JSON and CSV
};
inline constexpr std::array<PhaseName, kPhaseCount> kPhases = {{
    {Phase::kRawWrite, "Raw Data Write", "raw_write"},
    {Phase::kWrite, "Write", "write"},
    {Phase::kWriteOpenClose, "Write Open-Close", "write_open_close"},
    {Phase::kRawRead, "Raw Data Read", "raw_read"},
    {Phase::kRead, "Read", "read"},
    {Phase::kReadOpenClose, "Read Open-Close", "read_open_close"},
}};

inline bool IsRaw(Phase phase) { return phase == Phase::kRawWrite || phase == Phase::kRawRead; }
inline bool IsRead(Phase phase) { return phase >= Phase::kRawRead; }

// Seconds of each phase of one iteration.
using PhaseTimes = std::array<double, kPhaseCount>;

// Phases may overlap. Wall clock, monotonic.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  void Start(Phase phase) { started_[static_cast<size_t>(phase)] = Clock::now(); }
  // Adds what passed since Start(): a phase may have several parts.
  void Stop(Phase phase) {
    const size_t at = static_cast<size_t>(phase);
    const std::chrono::duration<double> passed = Clock::now() - started_[at];
    times_[at] += passed.count();
  }
  // What was done since `since` belongs to no phase.
  void Exclude(Clock::time_point since) {
    const Clock::duration passed = Clock::now() - since;
    for (Clock::time_point& started : started_) started += passed;
  }
  const PhaseTimes& times() const { return times_; }

 private:
  std::array<Clock::time_point, kPhaseCount> started_ = {};
  PhaseTimes times_ = {};
};

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_PHASE_CLOCK_H_
