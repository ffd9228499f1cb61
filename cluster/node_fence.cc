// How a node fences the servers that are dead.
#include <string>
#include <vector>

#include "base/strings.h"
#include "cluster/claims.h"
#include "cluster/node.h"

namespace h5mirror::cluster {

bool Node::MayFence(const std::string& id, const ServerRecord& record) {
  const absl::Duration now = clock_.Monotonic();
  const absl::Duration seen_at = dead_at_.try_emplace(record.session, now).first->second;
  // Its own earlier life is nobody's business more than this server's.
  return given_up_.contains(record.session) || id == member_.identity().id ||
         now - seen_at >= timing_.fence_patience;
}

void Node::ForgetDead(const std::set<std::string>& dead_sessions) {
  const auto is_over = [&](const std::string& session) { return !dead_sessions.contains(session); };
  std::erase_if(dead_at_, [&](const auto& entry) { return is_over(entry.first); });
  std::erase_if(given_up_, is_over);
  std::erase_if(fenced_, is_over);
}

void Node::FenceDead(ClusterView& view) {
  std::vector<std::string> dead;
  std::set<std::string> dead_sessions;
  for (const auto& [id, record] : view.servers) {
    if (record.state != ServerState::kDead) continue;
    dead_sessions.insert(record.session);
    lost_at_.try_emplace(record.session, clock_.Monotonic());
    if (MayFence(id, record)) dead.push_back(id);
  }
  ForgetDead(dead_sessions);
  for (const std::string& id : dead) {
    if (member_.epoch() != 0) SetPhase(NodePhase::kFencing);
    const ServerRecord record = view.servers[id];
    const bool is_fenced = fenced_.contains(record.session);
    const absl::Status fenced = is_fenced ? absl::OkStatus() : fencer_.Fence(TargetOf(id, record));
    if (absl::IsInternal(fenced)) return End(member_.EndFor(fenced));
    if (!fenced.ok()) {
      Note(StrCat("the server ", id, " is not fenced yet: ", ToStd(fenced.message())));
      continue;
    }
    fenced_.insert(record.session);
    // One that was not silent may answer reads yet: for `valid_for` after a beat before its end.
    if (clock_.Monotonic() - dead_at_[record.session] < timing_.silent_for) continue;
    if (!SetServer(view, id, ServerState::kFenced, {})) continue;
    fenced_.erase(record.session);
    dead_at_.erase(record.session);
    given_up_.erase(record.session);
    Note(StrCat("the server ", id, " is fenced"));
    Tell(NodeEvent::Kind::kFenced, id);
    absl::MutexLock lock(&mutex_);
    ++counts_.fenced;
  }
}

}  // namespace h5mirror::cluster
