#include "cluster/runner.h"

#include <pthread.h>

namespace h5mirror::cluster {

Runner::Runner(Node& node, Clock& clock, const Timing& timing)
    : node_(node), clock_(clock), every_(timing.beat_every) {
  beats_ = std::thread([this] {
    Run(
        "h5m-beat", [this] { node_.Beat(); },
        [this](absl::Duration elapsed) { return stop_.AwaitSet(every_ - elapsed); });
  });
  steps_ = std::thread([this] {
    Run(
        "h5m-cells", [this] { node_.Step(); },
        [this](absl::Duration elapsed) { return node_.AwaitStep(elapsed); });
  });
}

void Runner::Run(const char* name, const std::function<void()>& turn,
                 const std::function<bool(absl::Duration)>& wait) {
  pthread_setname_np(pthread_self(), name);
  while (true) {
    const absl::Duration begun_at = clock_.Monotonic();
    turn();
    if (node_.phase() == NodePhase::kGone) break;
    // A call that took longer is followed by the next one at once.
    if (wait(clock_.Monotonic() - begun_at)) break;
  }
  // The other thread would learn of the end after its wait.
  EndWaits();
  absl::MutexLock lock(&mutex_);
  --running_;
}

void Runner::EndWaits() {
  stop_.Set();
  node_.EndWaits();
}

void Runner::Stop() {
  EndWaits();
  if (beats_.joinable()) beats_.join();
  if (steps_.joinable()) steps_.join();
}

bool Runner::AwaitGone(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &Runner::HasEnded), timeout);
  return HasEnded() && node_.phase() == NodePhase::kGone;
}

}  // namespace h5mirror::cluster
