// The connections of a server, their limits, and which of them have shown a valid token. The table
// holds a second descriptor of each. With it the server can cut a connection that gRPC owns, and
// read how many bytes it has brought.
//
// A call that has begun leads to its connection by the peer's address and port. Before, only its
// *slot* is known: gRPC tells slots apart, and a new connection goes into a slot with few
// connections that have made no call yet. A connection of a Unix socket has no address: all of one
// slot are of one user, so the slot tells the user of a call.
#ifndef H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_
#define H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/owned_fd.h"
#include "server/door/peer.h"

namespace h5mirror::server {

// Why a connection is refused, or cut later.
enum class Turned {
  kDescriptors,   // refused: the process has no descriptors left
  kConnections,   // refused: there are max_connections
  kPeer,          // refused: its peer has max_peer_connections
  kNewcomers,     // cut: newer ones came, and max_new_connections had shown no token
  kTokenTimeout,  // cut: it showed no valid token within token_timeout
  kBytes,         // cut: it sent too much without a valid token
  kCalls,         // cut: it began calls, and went on with none of them; no client of ours does that
  kUsers,         // refused: each slot of the Unix socket has another user's connections
  kAfterCuts,     // refused: others from there were cut for their calls, and too many wait
};
inline constexpr int kTurnedCount = 9;
// "descriptors", "max_connections", ...: the metric's label.
std::string_view NameOf(Turned turned);

struct ConnectionLimits {
  int connections = 4096;
  // From one address of the network, or of one user on a Unix socket. All users of the machine
  // share loopback addresses, so these have no limit of their own.
  int peer_connections = 1024;
  // Without a valid token, on TCP; a quarter of them from one address of the network.
  int newcomers = 256;
  absl::Duration token_timeout = absl::Seconds(20);
  // How many bytes a newcomer may bring, and how many more in each second of its life. A client's
  // first call is a few hundred bytes, and a client of ours sends no more before the answer.
  uint64_t newcomer_bytes = uint64_t{128} << 10;
  uint64_t newcomer_bytes_per_second = uint64_t{16} << 10;
};

struct ConnectionCounts {
  size_t connections = 0;
  size_t newcomers = 0;
};

// Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const ConnectionLimits& limits) : limits_(limits) {}

  // Why a connection of `peer` may not come in; unset: it may.
  std::optional<Turned> Refuses(const Peer& peer) const;
  // The slot for the next connection, of `first` and the `count - 1` after it.
  int ChooseSlot(int first, int count, absl::Duration now) const;
  // The same for a connection of `user` on a Unix socket; nullopt: no slot is left for that user.
  // The slot is the user's from Add() on, until kRest after its last connection has ended.
  std::optional<int> ChooseUserSlot(uid_t user, int first, int count, absl::Duration now) const;
  // A user takes at most this many slots, so that its connections can be told apart. If half of all
  // slots are taken, it takes only one.
  static constexpr int kUserSlotsMax = 16;
  // gRPC may still have calls of a connection that has ended.
  static constexpr absl::Duration kRest = absl::Minutes(1);
  // The user of a Unix socket's slot.
  std::optional<uid_t> UserOf(int slot) const;
  // The users that have connections.
  std::vector<uid_t> Users() const;
  // Takes a connection in; `fd` is a second descriptor of it. Returns its number, and in `cut` a
  // newcomer that was cut for it.
  uint64_t Add(const Peer& peer, OwnedFd fd, int slot, absl::Duration now,
               std::optional<Peer>& cut);
  // The connection has ended.
  void Remove(uint64_t number, absl::Duration now);

  // The first call of a connection has come through `slot`. Returns the connection's number; 0: it
  // may be one of several.
  uint64_t Claim(int slot, absl::Duration now);
  // A call from `peer` has a valid token, or the server asks for none.
  void Admit(const Peer& peer);
  // A call from `peer` went to the health service, which needs no token. The connection stays a
  // newcomer, without a limit of time.
  void SpareProbe(const Peer& peer);
  // Cuts the connections of that address and port.
  void Cut(const Peer& peer);
  // Cuts one connection. Returns its peer; nullopt: it has ended.
  std::optional<Peer> CutNumber(uint64_t number);
  // Cuts the newcomers of a slot that have made no known call. Returns their peers.
  std::vector<Peer> CutUnclaimed(int slot);
  struct CutOne {
    Turned turned;
    Peer peer;
  };
  // Cuts newcomers whose time is over, or that were found to have brought too much kOverTimes times
  // in a row: the server may be slow to check a token. To be called some ten times a second.
  static constexpr int kOverTimes = 4;
  std::vector<CutOne> CutOverdue(absl::Duration now);

  ConnectionCounts Counts() const;
  // When Remove() took the last connection out; -InfiniteDuration(): never.
  absl::Duration LastEnd() const;

 private:
  struct Entry {
    Peer peer;
    OwnedFd fd;
    absl::Duration since;
    int slot = 0;
    bool is_newcomer = false;
    bool is_probe = false;
    int times_over = 0;  // how often in a row it had brought too much
  };
  struct Slot {
    std::set<uint64_t> unclaimed;
    std::optional<uid_t> user;  // of a Unix socket
    size_t connections = 0;
    absl::Duration last_end;  // of a connection
    // Until then a call may still come from a connection that ended before its first call was
    // known.
    absl::Duration in_doubt_until;
  };
  using End = std::pair<std::array<uint8_t, 16>, uint16_t>;  // address and port

  // Whether a user of a Unix socket has the slot: until kRest after its last connection.
  static bool IsTaken(const Slot& slot, absl::Duration now);
  // How likely a call of the slot is one of several connections.
  size_t DoubtOf(int slot, absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static End EndOf(const Peer& peer) { return {peer.address, peer.port}; }
  void CutEntry(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUnclaimed(uint64_t number, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndNewcomer(uint64_t number, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<uint64_t> NewcomerToCut(const Peer& peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration last_end_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::flat_hash_map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  // A client may reach two listeners from one port.
  absl::flat_hash_map<End, std::set<uint64_t>> by_end_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> newcomers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  absl::flat_hash_map<std::string, std::set<uint64_t>> newcomers_by_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_
