#include "rpc/server_pool.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace h5mirror::rpc {

ServerWalk ServerPool::WalkTo(std::string_view name, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return ServerWalk(cluster_, owners_.Find(cluster_, name), deadline);
}

absl::StatusOr<std::shared_ptr<Client>> ServerPool::ClientOf(const ClientOptions& server,
                                                             absl::Duration limit) {
  std::vector<std::shared_ptr<Client>> unused;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = connections_.find(server.target);
    if (known != connections_.end()) {
      known->second.last_use = absl::Now();
      std::shared_ptr<Client> client = known->second.client;
      unused = TakeUnused();
      return client;
    }
  }
  const absl::Duration timeout = std::min(timeout_, limit);
  const absl::Duration refused_max =
      limit == absl::InfiniteDuration() ? refused_max_ : absl::ZeroDuration();
  ClientOptions one = server;
  // With several servers the channel gives a handshake less time than a later attempt may take.
  if (limit > ServerWalk::kConnectMax) one.others.clear();
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<Client> client, connect_(one, timeout, refused_max));
  absl::MutexLock lock(&mutex_);
  Connection& connection = connections_[server.target];
  if (connection.client == nullptr) connection.client = std::move(client);
  connection.last_use = absl::Now();
  client = connection.client;
  unused = TakeUnused();
  return client;
}

std::vector<std::shared_ptr<Client>> ServerPool::TakeUnused() {
  std::vector<std::shared_ptr<Client>> unused;
  while (connections_.size() > 1) {
    const auto oldest = std::min_element(
        connections_.begin(), connections_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    // The newest one is that of the caller.
    const bool is_idle = oldest->second.client.use_count() == 1 &&
                         absl::Now() - oldest->second.last_use > kConnectionIdleMax;
    if (!is_idle && connections_.size() <= kConnectionsMax) break;
    unused.push_back(std::move(oldest->second.client));
    connections_.erase(oldest);
  }
  return unused;
}

void ServerPool::OnEnd(const ClientOptions& server, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  owners_.OnEnd(cluster_, server, status);
}

bool ServerPool::IsConnectedTo(const ClientOptions& server) {
  absl::MutexLock lock(&mutex_);
  return connections_.contains(server.target);
}

size_t ServerPool::connection_count() {
  absl::MutexLock lock(&mutex_);
  return connections_.size();
}

}  // namespace h5mirror::rpc
