#include "cluster/watcher.h"

#include <utility>

namespace h5mirror::cluster {

std::map<std::string, SeenBeat> Watcher::SeenBeats() const {
  std::map<std::string, SeenBeat> beats;
  for (const auto& [id, seen] : seen_) beats[id] = {seen.epoch, seen.beat, seen.at};
  return beats;
}

bool Watcher::IsSilent(const Seen& now, Seen& seen) const {
  const bool has_changed = seen.epoch != now.epoch || seen.beat != now.beat;
  if (has_changed || seen.own.failed != now.own.failed) {
    seen = now;
    return false;
  }
  const uint64_t own_beats = now.own.succeeded - seen.own.succeeded;
  return own_beats >= static_cast<uint64_t>(timing_.silent_beats) &&
         now.at - seen.at >= timing_.silent_for;
}

std::vector<std::string> Watcher::Observe(const ClusterView& view, const std::string& self,
                                          const OwnBeats& own) {
  std::vector<std::string> silent;
  std::map<std::string, Seen> kept;
  for (const auto& [id, server] : view.servers) {
    if (id == self || !IsAlive(server.state)) continue;
    const auto beat = view.beats.find(id);
    const Seen now = {server.epoch, beat == view.beats.end() ? BeatRecord() : beat->second,
                      clock_.Monotonic(), own};
    const auto before = seen_.find(id);
    Seen& seen = kept[id] = before == seen_.end() ? now : before->second;
    if (IsSilent(now, seen)) silent.push_back(id);
  }
  seen_ = std::move(kept);
  return silent;
}

}  // namespace h5mirror::cluster
