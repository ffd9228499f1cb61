// SIGINT, SIGTERM and SIGHUP, for verbs that run until a signal, or that must clean up before the
// process ends.
#ifndef H5MIRROR_CLI_PROCESS_STOP_SIGNAL_H_
#define H5MIRROR_CLI_PROCESS_STOP_SIGNAL_H_

#include <signal.h>

#include <array>

#include "absl/time/time.h"

namespace h5mirror::tools {

// While it lives, the first of these signals is only noted, and a second one ends the program. An
// ignored signal (under nohup) stays ignored. One at a time in a process.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;

  bool came() const { return number() != 0; }
  // The signal that came; 0: none.
  int number() const;
  // Returns at once where one came; else when one comes (true), or after `timeout` (false).
  bool Wait(absl::Duration timeout) const;

 private:
  std::array<struct sigaction, 3> before_{};
};

// Work that may be interrupted at any point. While this lives, the first of StopSignal's signals
// gives the work `seconds` more. Then the program prints `last_words` to standard error and ends by
// that signal. A second signal ends it at once. One at a time.
class BreakableWork {
 public:
  // `last_words` must outlive it.
  BreakableWork(unsigned seconds, const char* last_words);
  ~BreakableWork();
  BreakableWork(const BreakableWork&) = delete;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROCESS_STOP_SIGNAL_H_
