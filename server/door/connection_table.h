// The connections that a server has, how many there may be, and which of them have shown a valid
// token. It holds a second descriptor of each: with it a connection that gRPC owns can be cut, and
// asked how many bytes it has brought.
//
// Which connection a call came from is known by its peer's address and port once the call has
// begun; before, by its *slot*: gRPC tells slots apart, and a connection goes into one in which
// few have made no call yet.
#ifndef H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_
#define H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_

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
  kCalls,         // cut: it began calls, and went on with none of them, as no client of ours does
};
inline constexpr int kTurnedCount = 7;
// "descriptors", "max_connections", ...: the metric's label.
std::string_view NameOf(Turned turned);

struct ConnectionLimits {
  int connections = 4096;
  // From one address of the network, or of one user on a Unix socket. Loopback addresses are
  // everybody's on this machine, and have no limit of their own.
  int peer_connections = 1024;
  // Without a valid token, on TCP; a quarter of them from one address of the network.
  int newcomers = 256;
  absl::Duration token_timeout = absl::Seconds(20);
  // What a newcomer may bring, and how much more in each second of its life. A client's first call
  // is a few hundred bytes, and a client of ours sends no more before it is answered.
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

  // Why a connection of `peer` may not come in, if so.
  std::optional<Turned> Refuses(const Peer& peer) const;
  // The slot for the next connection, of `first` and the `count - 1` after it.
  int ChooseSlot(int first, int count, absl::Duration now) const;
  // Takes a connection in, `fd` being a descriptor of its own. Returns its number, and in `cut` a
  // newcomer that had to go for it.
  uint64_t Add(const Peer& peer, OwnedFd fd, int slot, absl::Duration now,
               std::optional<Peer>& cut);
  // The connection has ended.
  void Remove(uint64_t number, absl::Duration now);

  // The first call of a connection has come through `slot`. Returns the connection's number, or 0
  // where it could be one of several.
  uint64_t Claim(int slot, absl::Duration now);
  // A call from there was found to have a valid token, or the server wants none.
  void Admit(const Peer& peer);
  // It asked for the server's health, which wants no token: its time is not limited, and it stays a
  // newcomer.
  void SpareProbe(const Peer& peer);
  // Cuts what comes from that address and port.
  void Cut(const Peer& peer);
  // Cuts one connection. Its peer; nullopt where it has ended.
  std::optional<Peer> CutNumber(uint64_t number);
  // Cuts the newcomers of a slot from which no call is known. Returns their peers.
  std::vector<Peer> CutUnclaimed(int slot);
  struct CutOne {
    Turned turned;
    Peer peer;
  };
  // Cuts newcomers whose time is over, or that have brought too much kOverTimes times in a row: the
  // server may be slow to look at a token. To be called some ten times a second.
  static constexpr int kOverTimes = 4;
  std::vector<CutOne> CutOverdue(absl::Duration now);

  ConnectionCounts Counts() const;

 private:
  struct Entry {
    Peer peer;
    OwnedFd fd;
    absl::Duration since;
    int slot = 0;
    bool is_newcomer = false;
    bool is_probe = false;
    int times_over = 0;  // that it was found to have brought too much
  };
  struct Slot {
    std::set<uint64_t> unclaimed;
    // Until then a call may still come from a connection that has ended unclaimed.
    absl::Duration in_doubt_until;
  };
  using End = std::pair<std::array<uint8_t, 16>, uint16_t>;  // address and port

  static End EndOf(const Peer& peer) { return {peer.address, peer.port}; }
  void CutEntry(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUnclaimed(uint64_t number, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndNewcomer(uint64_t number, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<uint64_t> NewcomerToCut(const Peer& peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  // More than one where a client reaches two listeners from one port.
  absl::flat_hash_map<End, std::set<uint64_t>> by_end_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> newcomers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  absl::flat_hash_map<std::string, std::set<uint64_t>> newcomers_by_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CONNECTION_TABLE_H_
