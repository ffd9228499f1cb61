// Accepts connections, within limits, and hands them to gRPC, or to the HTTP door:
// docs/design/021-front-door.md.
#ifndef H5MIRROR_SERVER_DOOR_FRONT_DOOR_H_
#define H5MIRROR_SERVER_DOOR_FRONT_DOOR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/owned_fd.h"
#include "grpcpp/server_builder.h"
#include "server/door/connection_pacer.h"
#include "server/door/connection_table.h"
#include "server/door/listen_socket.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Values for the metrics: of now, and since the start.
struct DoorSample {
  ConnectionCounts connections;
  std::array<uint64_t, kTurnedCount> turned{};  // by Turned
  uint64_t refused_calls = 0;

  // Of two doors together.
  DoorSample& operator+=(const DoorSample& other);
};

// Raises the process's soft limit of descriptors to the hard one, 65,536 at most.
void RaiseDescriptorLimit();

// The limits of gRPC's door by the configuration, `memory_max` and the process's limit of
// descriptors. They leave room for an HTTP door with half as many connections, if there is one.
ConnectionLimits LimitsFor(const Config& config);

// The addresses of a door, and its limits.
struct DoorSettings {
  std::vector<ListenAddress> addresses = {};
  uint32_t socket_mode_bits = 0660;
  std::string group = {};
  ConnectionLimits limits = {};
  const char* thread_name = "h5m-door";  // a constant, of at most 15 characters
};

class Authenticator;

// Thread-safe, but for Open(), Attach() and Start(), which must be called in this order.
class FrontDoor {
 public:
  // `authenticator` must outlive this. Binds all addresses of config.listen. Errors as
  // ListenSocket::Open().
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const Config& config,
                                                         const Authenticator& authenticator);
  // The same for other addresses and limits.
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const DoorSettings& settings,
                                                         const Authenticator& authenticator);
  // To be destroyed after the end of gRPC's server.
  ~FrontDoor();

  int port(size_t index) const { return sockets_[index].port(); }
  // Sets the acceptor for connections of config.listen[index], by slot (connection_table.h).
  void Attach(size_t index, int slot,
              std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor);
  // Takes a connection over. Called by the door's thread; must not wait.
  using Receiver = std::function<void(OwnedFd fd)>;
  // Instead of acceptors: `receiver` gets the connections of all addresses.
  void SetReceiver(Receiver receiver) { receiver_ = std::move(receiver); }
  // How many slots config.listen[index] has. Those of a Unix socket have one user each.
  int SlotCount(size_t index) const { return sockets_[index].is_unix() ? kUserSlots : kSlots; }
  // The number of a slot among those of all addresses.
  static int SlotOf(size_t index, int slot) { return static_cast<int>(index) * kUserSlots + slot; }
  // Begins to accept, on a thread of its own. gRPC's server must have been started.
  void Start();
  // Accepts no more connections, and frees the addresses. Connections stay.
  void StopAccepting();

  // Keeps the names of connected users known (UnixUsers::Tend()). To be called every few seconds.
  void TendUsers();

  // A call's token is valid, or the server asks for none. `grpc_peer`:
  // grpc::ServerContext::peer().
  void Admit(const std::string& grpc_peer);
  // A call went to the health service.
  void SpareProbe(const std::string& grpc_peer);
  // The first call of a connection, as ConnectionTable::Claim().
  uint64_t Claim(int slot);
  // The user of a slot of a Unix socket.
  std::optional<uid_t> UserOf(int slot) const { return table_.UserOf(slot); }
  // Cuts a connection with calls that no h5mirror client makes. Finds it by its peer if known, else
  // by its number if not 0. Else cuts all newcomers of the slot that it may be.
  void CutForCalls(const std::string& grpc_peer, uint64_t number, int slot);

  ConnectionCounts Counts() const { return table_.Counts(); }
  // Connections that were refused or cut, by Turned.
  std::array<uint64_t, kTurnedCount> Turns() const;

 private:
  static constexpr int kSlots = 16;
  static constexpr int kUserSlots = 256;

  // A connection that waits: for its user's name, so that its calls need not wait for it, or for
  // its turn.
  struct Parked {
    size_t index;
    int listener;
    OwnedFd fd;
  };
  struct Parking;

  FrontDoor(const DoorSettings& settings, const Authenticator& authenticator);

  // The thread: handles events as they come, and now and then the work that is due.
  void Run();
  // `data` is that of Watch().
  void Handle(uint64_t data, uint32_t events);
  // Takes those out of the table that have ended. Listeners and the wake-up are told of again.
  void RemoveEnded();
  // Watches the listeners again once descriptors may be free, and cuts newcomers that are overdue.
  void Tick();
  void AcceptFrom(size_t index, int listener);
  bool AcceptOne(size_t index, int listener);
  void TakeIn(size_t index, int listener, OwnedFd fd);
  // The other end of a connection, if it may come in now; nullopt: it has gone, or was refused.
  std::optional<Peer> Examine(int fd);
  bool HasNoName(const Peer& peer) const;
  // Hands the connection of TakeIn() to gRPC, or to the receiver.
  void HandOver(const Peer& peer, size_t index, int listener, OwnedFd fd);
  // True: the connection waits for its turn, or was refused.
  bool Pace(const Peer& peer, size_t index, int listener, OwnedFd& fd);
  void TakeInPaced();
  // True: the connection waits until its user's name is known, or was closed, as too many wait.
  bool Park(const Peer& peer, size_t index, int listener, OwnedFd& fd);
  void TakeInParked();
  // With no descriptors left: true after a moment, if some may be there now. When a connection is
  // cut, gRPC closes its descriptor later than the table does, on a busy machine much later.
  // Meanwhile the newer connection that caused the cut must not be refused.
  bool AwaitDescriptor();
  // Another descriptor of the same socket; none: there is no room for it.
  OwnedFd Duplicate(int fd);
  // With no descriptors left: takes one connection with the reserve, to refuse it. False: that has
  // failed too.
  bool RefuseWithReserve(int listener);
  void NoteCutForCalls(const Peer& peer);
  void Note(Turned turned, std::string_view name);
  void WatchListeners();
  void CloseListeners();

  const Authenticator& authenticator_;
  const char* const thread_name_;
  Receiver receiver_;  // null: the acceptors get the connections
  ConnectionTable table_;
  std::vector<ListenSocket> sockets_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors_;                                  // SlotOf()
  std::vector<std::pair<size_t, int>> listeners_;  // index in sockets_, descriptor
  OwnedFd epoll_;
  OwnedFd wake_;
  OwnedFd reserve_;
  std::shared_ptr<Parking> parking_;
  ConnectionPacer pacer_;
  std::multimap<absl::Duration, Parked> paced_;  // the thread's own, by their turns
  bool out_of_descriptors_ = false;              // the thread's own: listeners rest for a moment
  absl::Duration patient_until_ = -absl::InfiniteDuration();  // the thread's own: AwaitDescriptor()

  std::array<std::atomic<uint64_t>, kTurnedCount> turns_{};
  absl::Mutex log_mutex_;
  absl::Duration last_log_ ABSL_GUARDED_BY(log_mutex_) = -absl::InfiniteDuration();
  uint64_t unlogged_ ABSL_GUARDED_BY(log_mutex_) = 0;
  std::atomic<bool> accepts_{false};
  std::atomic<bool> ends_{false};
  absl::Mutex closed_mutex_;
  bool closed_ ABSL_GUARDED_BY(closed_mutex_) = true;
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_FRONT_DOOR_H_
