#include "server/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace h5mirror::server {
namespace {

// What a socket has brought so far; 0 where the kernel does not say.
uint64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return info.tcpi_bytes_received;
}

// Ends a connection at once. A shutdown alone would leave gRPC all that has come and was not read
// yet, megabytes of an attack; a TCP socket that is disconnected drops it, and resets the
// connection.
void EndNow(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (connect(fd, &none, sizeof(none)) != 0) shutdown(fd, SHUT_RDWR);
}

}  // namespace

std::string_view NameOf(Turned turned) {
  switch (turned) {
    case Turned::kDescriptors:
      return "descriptors";
    case Turned::kConnections:
      return "max_connections";
    case Turned::kPeer:
      return "max_peer_connections";
    case Turned::kNewcomers:
      return "max_new_connections";
    case Turned::kTokenTimeout:
      return "token_timeout";
    case Turned::kBytes:
      return "bytes_without_token";
    case Turned::kCalls:
      return "calls";
  }
  return "";
}

std::optional<Turned> ConnectionTable::Refuses(const Peer& peer) const {
  absl::MutexLock lock(&mutex_);
  if (entries_.size() >= static_cast<size_t>(limits_.connections)) {
    // A newcomer gives way, so that connections without a token shut nobody out.
    if (newcomers_.empty()) return Turned::kConnections;
  }
  if (peer.kind == Peer::Kind::kLoopback) return std::nullopt;
  const auto count = by_name_.find(peer.Name());
  if (count != by_name_.end() && count->second >= limits_.peer_connections) return Turned::kPeer;
  return std::nullopt;
}

std::optional<uint64_t> ConnectionTable::NewcomerToCut(const Peer& peer) const {
  if (newcomers_.empty()) return std::nullopt;
  if (peer.kind == Peer::Kind::kNetwork) {
    const auto own = newcomers_by_name_.find(peer.Name());
    const auto own_max = static_cast<size_t>(std::max(limits_.newcomers / 4, 1));
    if (own != newcomers_by_name_.end() && own->second.size() >= own_max) {
      return *own->second.begin();
    }
  }
  const bool full = entries_.size() >= static_cast<size_t>(limits_.connections);
  const bool many = peer.kind != Peer::Kind::kUnixSocket &&
                    newcomers_.size() >= static_cast<size_t>(limits_.newcomers);
  if (full || many) return *newcomers_.begin();
  return std::nullopt;
}

uint64_t ConnectionTable::Add(const Peer& peer, OwnedFd fd, absl::Duration now,
                              std::optional<Peer>& cut) {
  absl::MutexLock lock(&mutex_);
  if (const std::optional<uint64_t> old = NewcomerToCut(peer); old.has_value()) {
    cut = entries_.at(*old).peer;
    CutEntry(*old);
  }
  const uint64_t number = ++last_number_;
  Entry& entry = entries_[number];
  entry.peer = peer;
  entry.fd = std::move(fd);
  entry.since = now;
  const std::string name = peer.Name();
  ++by_name_[name];
  if (peer.kind == Peer::Kind::kUnixSocket) return number;  // Calls from there name no connection.
  entry.is_newcomer = true;
  newcomers_.insert(number);
  newcomers_by_name_[name].insert(number);
  by_end_[EndOf(peer)].insert(number);
  return number;
}

void ConnectionTable::EndNewcomer(uint64_t number, Entry& entry) {
  if (!entry.is_newcomer) return;
  entry.is_newcomer = false;
  newcomers_.erase(number);
  const auto found = newcomers_by_name_.find(entry.peer.Name());
  if (found == newcomers_by_name_.end()) return;
  found->second.erase(number);
  if (found->second.empty()) newcomers_by_name_.erase(found);
}

void ConnectionTable::CutEntry(uint64_t number) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  // gRPC sees the end of the connection, and whoever watches the descriptor removes the entry.
  EndNow(found->second.fd.get());
  EndNewcomer(number, found->second);
}

void ConnectionTable::Remove(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  EndNewcomer(number, found->second);
  const Peer& peer = found->second.peer;
  if (const auto count = by_name_.find(peer.Name());
      count != by_name_.end() && --count->second == 0) {
    by_name_.erase(count);
  }
  if (const auto end = by_end_.find(EndOf(peer)); end != by_end_.end()) {
    end->second.erase(number);
    if (end->second.empty()) by_end_.erase(end);
  }
  entries_.erase(found);
}

void ConnectionTable::Admit(const Peer& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_end_.find(EndOf(peer));
  if (found == by_end_.end()) return;
  for (const uint64_t number : found->second) EndNewcomer(number, entries_.at(number));
}

void ConnectionTable::SpareProbe(const Peer& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_end_.find(EndOf(peer));
  if (found == by_end_.end()) return;
  for (const uint64_t number : found->second) entries_.at(number).is_probe = true;
}

void ConnectionTable::Cut(const Peer& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_end_.find(EndOf(peer));
  if (found == by_end_.end()) return;
  for (const uint64_t number : found->second) CutEntry(number);
}

std::vector<ConnectionTable::CutOne> ConnectionTable::CutOverdue(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  std::vector<CutOne> cut;
  std::vector<uint64_t> numbers;
  for (const uint64_t number : newcomers_) {
    Entry& entry = entries_.at(number);
    const absl::Duration age = now - entry.since;
    const auto seconds = static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Seconds(age), 0));
    const uint64_t allowed = limits_.newcomer_bytes + limits_.newcomer_bytes_per_second * seconds;
    entry.times_over = BytesReceived(entry.fd.get()) > allowed ? entry.times_over + 1 : 0;
    if (age > limits_.token_timeout && !entry.is_probe) {
      cut.push_back({Turned::kTokenTimeout, entry.peer});
    } else if (entry.times_over >= kOverTimes) {
      cut.push_back({Turned::kBytes, entry.peer});
    } else {
      continue;
    }
    numbers.push_back(number);
  }
  for (const uint64_t number : numbers) CutEntry(number);
  return cut;
}

ConnectionCounts ConnectionTable::Counts() const {
  absl::MutexLock lock(&mutex_);
  return {entries_.size(), newcomers_.size()};
}

}  // namespace h5mirror::server
