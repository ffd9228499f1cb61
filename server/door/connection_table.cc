#include "server/door/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

namespace h5mirror::server {
namespace {

// How long gRPC may take to look at calls of a connection that has ended.
constexpr absl::Duration kDoubt = absl::Seconds(5);

constexpr int kDropsMax = 1024;  // of 16 KiB: more than a socket's buffer holds

// The bytes that a socket has brought so far; 0 if the kernel does not tell.
uint64_t BytesReceived(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return info.tcpi_bytes_received;
}

// Ends a connection at once. A shutdown alone would leave gRPC all that has come and was not read
// yet, megabytes of an attack: a TCP socket that is disconnected drops it, and resets the
// connection; a Unix socket is emptied.
void EndNow(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (connect(fd, &none, sizeof(none)) == 0) return;
  shutdown(fd, SHUT_RDWR);
  char dropped[16 << 10];
  for (int i = 0; i < kDropsMax; ++i) {
    if (recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT) <= 0) return;
  }
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
    case Turned::kUsers:
      return "max_users";
    case Turned::kAfterCuts:
      return "after_cuts";
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

int ConnectionTable::ChooseSlot(int first, int count, absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  int best = first;
  size_t best_size = std::numeric_limits<size_t>::max();
  for (int slot = first; slot < first + count; ++slot) {
    const size_t size = DoubtOf(slot, now);
    if (size >= best_size) continue;
    best = slot;
    best_size = size;
  }
  return best;
}

size_t ConnectionTable::DoubtOf(int slot, absl::Duration now) const {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return 0;
  return found->second.unclaimed.size() + (found->second.in_doubt_until > now ? 1 : 0);
}

bool ConnectionTable::IsTaken(const Slot& slot, absl::Duration now) {
  return slot.user.has_value() && (slot.connections > 0 || slot.last_end + kRest > now);
}

std::optional<int> ConnectionTable::ChooseUserSlot(uid_t user, int first, int count,
                                                   absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  std::optional<int> free;
  absl::Duration free_since;
  std::optional<int> own;
  int free_count = 0;
  int own_count = 0;
  for (int slot = first; slot < first + count; ++slot) {
    const auto found = slots_.find(slot);
    if (found == slots_.end() || !IsTaken(found->second, now)) {
      ++free_count;
      // One that was never used, or has rested for longest.
      const absl::Duration rests_since =
          found == slots_.end() ? -absl::InfiniteDuration() : found->second.last_end;
      if (!free.has_value() || rests_since < free_since) {
        free = slot;
        free_since = rests_since;
      }
    } else if (*found->second.user == user) {
      ++own_count;
      if (!own.has_value() || DoubtOf(slot, now) < DoubtOf(*own, now)) own = slot;
    }
  }
  if (own.has_value() && DoubtOf(*own, now) == 0) return own;
  const int own_max = free_count >= count / 2 ? kUserSlotsMax : 1;
  return free.has_value() && own_count < own_max ? free : own;
}

std::optional<uid_t> ConnectionTable::UserOf(int slot) const {
  absl::MutexLock lock(&mutex_);
  const auto found = slots_.find(slot);
  return found == slots_.end() ? std::nullopt : found->second.user;
}

std::vector<uid_t> ConnectionTable::Users() const {
  std::set<uid_t> users;
  absl::MutexLock lock(&mutex_);
  for (const auto& [number, slot] : slots_) {
    if (slot.connections > 0 && slot.user.has_value()) users.insert(*slot.user);
  }
  users.erase(kNamelessUid);
  return {users.begin(), users.end()};
}

uint64_t ConnectionTable::Claim(int slot, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = slots_.find(slot);
  if (found == slots_.end() || found->second.unclaimed.size() != 1 ||
      found->second.in_doubt_until > now) {
    return 0;
  }
  const uint64_t number = *found->second.unclaimed.begin();
  found->second.unclaimed.clear();
  return number;
}

void ConnectionTable::EndUnclaimed(uint64_t number, const Entry& entry) {
  if (const auto slot = slots_.find(entry.slot); slot != slots_.end()) {
    slot->second.unclaimed.erase(number);
  }
}

uint64_t ConnectionTable::Add(const Peer& peer, OwnedFd fd, int slot, absl::Duration now,
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
  entry.slot = slot;
  Slot& its_slot = slots_[slot];
  its_slot.unclaimed.insert(number);
  ++its_slot.connections;
  if (peer.kind == Peer::Kind::kUnixSocket) its_slot.user = peer.uid;
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
  // gRPC sees the end of the connection. The watcher of the descriptor then removes the entry.
  EndNow(found->second.fd.get());
  EndNewcomer(number, found->second);
}

void ConnectionTable::Remove(uint64_t number, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  last_end_ = now;
  Slot& slot = slots_[found->second.slot];
  --slot.connections;
  slot.last_end = now;
  if (slot.unclaimed.erase(number) > 0) slot.in_doubt_until = now + kDoubt;
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
  for (const uint64_t number : found->second) {
    Entry& entry = entries_.at(number);
    EndNewcomer(number, entry);
    EndUnclaimed(number, entry);
  }
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

std::optional<Peer> ConnectionTable::CutNumber(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return std::nullopt;
  CutEntry(number);
  return found->second.peer;
}

std::vector<Peer> ConnectionTable::CutUnclaimed(int slot) {
  absl::MutexLock lock(&mutex_);
  std::vector<Peer> cut;
  for (const uint64_t number : slots_[slot].unclaimed) {
    const Entry& entry = entries_.at(number);
    if (!entry.is_newcomer) continue;  // On a Unix socket, or cut already.
    cut.push_back(entry.peer);
    CutEntry(number);
  }
  return cut;
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

absl::Duration ConnectionTable::LastEnd() const {
  absl::MutexLock lock(&mutex_);
  return last_end_;
}

}  // namespace h5mirror::server
