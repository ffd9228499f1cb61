#include "cli/process/stop_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/time/clock.h"

namespace h5mirror::tools {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t stop_came = 0;  // the signal's number
volatile sig_atomic_t is_noted[kSignals.size()] = {};
int stop_pipe[2] = {-1, -1};  // its reading end is readable once a signal came

// Of the work that may be broken off. 0: there is none.
volatile sig_atomic_t seconds_left = 0;
const char* volatile words = "";

// Its calls are async-signal-safe: signal-safety(7).
void NoteStop(int number) {
  const int error = errno;
  stop_came = number;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (is_noted[i] != 0) signal(kSignals[i], SIG_DFL);
  }
  // The pipe is empty: one byte fits, and should it not, `stop_came` says it too.
  if (write(stop_pipe[1], "", 1) < 0) stop_came = number;
  if (seconds_left != 0) alarm(static_cast<unsigned>(seconds_left));
  errno = error;
}

// The signal that came has its default action by now.
void BreakOff(int) {
  const char* const text = words;
  if (write(STDERR_FILENO, text, strlen(text)) < 0) raise(stop_came);
  raise(stop_came);
}

}  // namespace

StopSignal::StopSignal() {
  stop_came = 0;
  if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0) stop_pipe[0] = stop_pipe[1] = -1;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    is_noted[i] = before_[i].sa_handler != SIG_IGN;
    if (is_noted[i] == 0) continue;
    struct sigaction action = {};
    action.sa_handler = NoteStop;
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  for (int& end : stop_pipe) {
    if (end >= 0) close(end);
    end = -1;
  }
}

int StopSignal::number() const { return stop_came; }

bool StopSignal::Wait(absl::Duration timeout) const {
  const absl::Time deadline = absl::Now() + timeout;
  while (!came()) {
    // In pieces that fit poll(), and so that a clock that jumps is noticed.
    const absl::Duration left = std::min(deadline - absl::Now(), absl::Minutes(1));
    if (left <= absl::ZeroDuration()) return false;
    pollfd readable{stop_pipe[0], POLLIN, 0};
    poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
  return true;
}

BreakableWork::BreakableWork(unsigned seconds, const char* last_words) {
  words = last_words;
  struct sigaction action {};
  action.sa_handler = BreakOff;
  sigaction(SIGALRM, &action, nullptr);
  seconds_left = static_cast<sig_atomic_t>(seconds);
  if (stop_came != 0) alarm(seconds);  // It came a moment ago.
}

BreakableWork::~BreakableWork() {
  seconds_left = 0;
  alarm(0);
}

}  // namespace h5mirror::tools
