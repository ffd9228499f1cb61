// How a node looks at the registry and at others' beats, beside its steps.
#include <algorithm>

#include "cluster/node.h"

namespace h5mirror::cluster {
namespace {

// After so many beats without a look at the registry, its last look says nothing about others.
constexpr int kLooksLateAfter = 3;
// A server's beat that has not changed for so many beats of this one is looked at more often, and
// so is a cell that nobody serves; so often in a beat.
constexpr double kDoubtfulBeats = 2.5;
constexpr int kQuickLooks = 5;

}  // namespace

std::map<std::string, absl::Duration> Node::BeatAges(const ClusterView& view) const {
  const absl::Duration now = clock_.Monotonic();
  absl::MutexLock lock(&mutex_);
  const bool looks = now - looked_at_ <= kLooksLateAfter * timing_.beat_every;
  std::map<std::string, absl::Duration> ages;
  for (const auto& [id, server] : view.servers) {
    const auto seen = beats_seen_.find(id);
    const auto beat = view.beats.find(id);
    if (seen == beats_seen_.end() || beat == view.beats.end()) continue;
    const bool is_same = seen->second.epoch == server.epoch && seen->second.beat == beat->second;
    if (is_same) {
      ages[id] = now - seen->second.at;
    } else if (looks) {
      ages[id] = absl::ZeroDuration();
    }
  }
  return ages;
}

absl::Duration Node::StepEvery() const {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_.Monotonic();
  const auto is_doubtful = [&](const auto& seen) {
    const absl::Duration age = now - seen.second.at;
    // Where the registry cannot be changed, nobody is judged, and this would last.
    return age > kDoubtfulBeats * timing_.beat_every && age < 2 * timing_.silent_for;
  };
  const bool is_in_doubt = now - looked_at_ < 2 * timing_.beat_every &&
                           std::any_of(beats_seen_.begin(), beats_seen_.end(), is_doubtful);
  return is_in_doubt ? timing_.beat_every / kQuickLooks : timing_.beat_every;
}

bool Node::BeginLook() {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_.Monotonic();
  if (looks_for_caller_ || now - caller_look_at_ < timing_.beat_every / kQuickLooks) return false;
  looks_for_caller_ = true;
  caller_look_at_ = now;
  return true;
}

void Node::EndLook() {
  absl::MutexLock lock(&mutex_);
  looks_for_caller_ = false;
}

Route Node::Find(std::string_view cell, uint64_t seen_epoch) {
  Route route = cells_.Resolve(cell, seen_epoch);
  if (route.kind == RouteKind::kWait && BeginLook()) {
    ReadView().IgnoreError();
    EndLook();
    route = cells_.Resolve(cell, seen_epoch);
  }
  if (route.kind != RouteKind::kReadAgain && route.kind != RouteKind::kNoCell) return route;
  if (!ReadView().ok()) return {RouteKind::kWait, 0, "", ""};
  route = cells_.Resolve(cell, seen_epoch);
  if (route.kind == RouteKind::kReadAgain) route.kind = RouteKind::kWait;
  return route;
}

}  // namespace h5mirror::cluster
