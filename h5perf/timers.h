// The times that are taken of one iteration, and what they are in all processes.
#ifndef H5MIRROR_H5PERF_TIMERS_H_
#define H5MIRROR_H5PERF_TIMERS_H_

#include <array>
#include <cstddef>

#include "h5perf_serial/phase_clock.h"

namespace h5mirror::pperf {

using perf::Phase;

// Behind the phases (perf::Phase) of h5perf_serial.
enum Span { kWriteFileOpen, kWriteFileClose, kReadFileOpen, kReadFileClose };
inline constexpr size_t kTimerCount = perf::kPhaseCount + 4;

inline constexpr size_t TimerOf(Phase phase) { return static_cast<size_t>(phase); }
inline constexpr size_t TimerOf(Span span) { return perf::kPhaseCount + span; }

// Seconds, summed over the files and datasets of an iteration.
using Times = std::array<double, kTimerCount>;

// The shortest and the longest of all processes.
struct Spread {
  Times min = {}, max = {};
};

class Timers {
 public:
  // The file is about to be opened: write or read.
  void BeginFile(bool read) {
    clock_.Start(read ? Phase::kReadOpenClose : Phase::kWriteOpenClose);
    began_ = Now();
  }
  // It is open.
  void Opened(bool read) {
    clock_.Start(read ? Phase::kRead : Phase::kWrite);
    Add(read ? kReadFileOpen : kWriteFileOpen);
  }
  void BeginRaw(bool read) { clock_.Start(read ? Phase::kRawRead : Phase::kRawWrite); }
  void EndRaw(bool read) { clock_.Stop(read ? Phase::kRawRead : Phase::kRawWrite); }
  // All datasets are done; the file is about to be closed.
  void BeginClose(bool read) {
    clock_.Stop(read ? Phase::kRead : Phase::kWrite);
    began_ = Now();
  }
  void EndFile(bool read) {
    clock_.Stop(read ? Phase::kReadOpenClose : Phase::kWriteOpenClose);
    Add(read ? kReadFileClose : kWriteFileClose);
  }
  // What was done since `since` belongs to no time.
  void Exclude(perf::PhaseClock::Clock::time_point since) { clock_.Exclude(since); }
  static perf::PhaseClock::Clock::time_point Now() { return perf::PhaseClock::Clock::now(); }

  Times times() const {
    Times all = spans_;
    for (size_t i = 0; i < perf::kPhaseCount; ++i) all[i] = clock_.times()[i];
    return all;
  }

 private:
  void Add(Span span) {
    const std::chrono::duration<double> passed = Now() - began_;
    spans_[TimerOf(span)] += passed.count();
  }

  perf::PhaseClock clock_;
  perf::PhaseClock::Clock::time_point began_;
  Times spans_ = {};
};

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_TIMERS_H_
