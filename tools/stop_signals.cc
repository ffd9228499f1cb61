#include "tools/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

namespace h5mirror::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t came = 0;
volatile sig_atomic_t is_noted[std::size(kSignals)] = {};

// Of the work that may be broken off. 0: there is none.
volatile sig_atomic_t seconds_left = 0;
const char* volatile words = "";

// signal() and alarm() are async-signal-safe: signal-safety(7). What was ignored stays so.
extern "C" void NoteSignal(int number) {
  came = number;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (is_noted[i] != 0) signal(kSignals[i], SIG_DFL);
  if (seconds_left != 0) alarm(static_cast<unsigned>(seconds_left));
}

// The signal that came has its default action by now.
extern "C" void BreakOff(int) {
  const char* const text = words;
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return (void)raise(came);
  raise(came);
}

}  // namespace

StopSignals::StopSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    if (sigaction(kSignals[i], nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    is_noted[i] = 1;
    action = {};
    action.sa_handler = NoteSignal;
    action.sa_flags = SA_RESTART;
    sigaction(kSignals[i], &action, nullptr);
  }
}

int StopSignals::number() const { return came; }

BreakableWork::BreakableWork(unsigned seconds, const char* last_words) {
  words = last_words;
  struct sigaction action {};
  action.sa_handler = BreakOff;
  sigaction(SIGALRM, &action, nullptr);
  seconds_left = static_cast<sig_atomic_t>(seconds);
  if (came != 0) alarm(seconds);  // It came a moment ago.
}

BreakableWork::~BreakableWork() {
  seconds_left = 0;
  alarm(0);
}

}  // namespace h5mirror::tools
