#include "tools/stop_signals.h"

#include <signal.h>

#include <iterator>

namespace h5mirror::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t came = 0;
volatile sig_atomic_t is_noted[std::size(kSignals)] = {};

// signal() is async-signal-safe: signal-safety(7). What was ignored stays so.
extern "C" void NoteSignal(int number) {
  came = number;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (is_noted[i] != 0) signal(kSignals[i], SIG_DFL);
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

}  // namespace h5mirror::tools
