// Spaces out new connections from an address after one of its connections was cut for its calls.
//
// When the gate has a connection cut, gRPC has read more from it: 8 KiB at a time, and in them up
// to 500 calls of some 16 KiB each. gRPC makes them all before the gate can refuse the first one,
// and frees the first one after it has read the next 8 KiB. A client that connects again at once
// adds its next calls to those of its last ten connections. docs/design/021-front-door.md has
// figures.
#ifndef H5MIRROR_SERVER_DOOR_CONNECTION_PACER_H_
#define H5MIRROR_SERVER_DOOR_CONNECTION_PACER_H_

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::server {

// Thread-safe. Times are of Clock::Monotonic(); `name` is Peer::Name().
class ConnectionPacer {
 public:
  // Between two connections from one address. A busy server has refused the calls of a cut
  // connection within some 50 ms.
  static constexpr absl::Duration kSpacing = absl::Milliseconds(100);
  // An address has turns until for this long no connection was cut and none has waited.
  static constexpr absl::Duration kWatch = absl::Seconds(1);
  static constexpr absl::Duration kWaitMax = absl::Seconds(5);

  // `names_max`: the most addresses that have turns at once.
  explicit ConnectionPacer(size_t names_max = 1024) : names_max_(names_max) {}

  // A connection from there was cut for its calls.
  void NoteCut(const std::string& name, absl::Duration now);
  // Reserves a turn for a new connection. Returns when it may go to gRPC: `now`, or later. nullopt:
  // it would wait for longer than kWaitMax; refuse it.
  std::optional<absl::Duration> TakeTurn(const std::string& name, absl::Duration now);

 private:
  struct Address {
    absl::Duration watched_until;
    absl::Duration next_turn;
  };

  void ForgetOld(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t names_max_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Address> addresses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CONNECTION_PACER_H_
