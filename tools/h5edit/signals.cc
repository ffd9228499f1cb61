#include "tools/h5edit/signals.h"

#include <signal.h>

namespace h5mirror::edit {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t came = 0;

extern "C" void NoteSignal(int number) {
  came = number;
  for (int other : kSignals) signal(other, SIG_DFL);  // Async-signal-safe: signal-safety(7).
}

}  // namespace

StopSignals::StopSignals() {
  for (int number : kSignals) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = NoteSignal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

int StopSignals::number() const { return came; }

}  // namespace h5mirror::edit
