// Accepts connections, within limits, and hands them to gRPC: docs/design/021-front-door.md.
#ifndef H5MIRROR_SERVER_DOOR_FRONT_DOOR_H_
#define H5MIRROR_SERVER_DOOR_FRONT_DOOR_H_

#include <array>
#include <atomic>
#include <cstdint>
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
#include "server/door/connection_table.h"
#include "server/door/listen_socket.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// What the metrics are set to: what is now, and what has happened since the start.
struct DoorSample {
  ConnectionCounts connections;
  std::array<uint64_t, kTurnedCount> turned{};  // by Turned
  uint64_t refused_calls = 0;
};

// Raises the process's soft limit of descriptors to the hard one, 65,536 at most.
void RaiseDescriptorLimit();

// What the configuration, `memory_max` and the descriptors that the process may have allow.
ConnectionLimits LimitsFor(const Config& config);

// Thread-safe, but for Open(), Attach() and Start(), which come in this order.
class FrontDoor {
 public:
  // Binds all addresses of config.listen. Errors as ListenSocket::Open().
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const Config& config);
  // After the end of gRPC's server.
  ~FrontDoor();

  int port(size_t index) const { return sockets_[index].port(); }
  // Where connections of config.listen[index] go, by slot (connection_table.h).
  void Attach(size_t index, int slot,
              std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor);
  static constexpr int kSlots = 16;  // of each address
  // The number of a slot among those of all addresses.
  static int SlotOf(size_t index, int slot) { return static_cast<int>(index) * kSlots + slot; }
  // Begins to accept, on a thread of its own. gRPC's server must have been started.
  void Start();
  // Accepts no more, and lets go of the addresses. Those that are connected stay.
  void StopAccepting();

  // Told by calls, with grpc::ServerContext::peer(). A token was valid, or none is wanted.
  void Admit(const std::string& grpc_peer);
  // The server's health was asked for.
  void SpareProbe(const std::string& grpc_peer);
  // The first call of a connection, as ConnectionTable::Claim().
  uint64_t Claim(int slot);
  // Cuts a connection whose calls are those of no client of ours: by its peer, where that is known,
  // else by its number, where that is not 0, else all newcomers of its slot that may be it.
  void CutForCalls(const std::string& grpc_peer, uint64_t number, int slot);

  ConnectionCounts Counts() const { return table_.Counts(); }
  // Connections that were refused or cut, by Turned.
  std::array<uint64_t, kTurnedCount> Turns() const;

 private:
  explicit FrontDoor(const Config& config);

  // The thread: events as they come, and now and then what is due.
  void Run();
  // `data` is what Watch() was given.
  void Handle(uint64_t data, uint32_t events);
  // Watches the listeners again once descriptors may be free, and cuts newcomers that are overdue.
  void Tick();
  void AcceptFrom(size_t index, int listener);
  bool AcceptOne(size_t index, int listener);
  void TakeIn(size_t index, int listener, OwnedFd fd);
  // With no descriptors left: takes one connection with the reserve, to refuse it. False: not even
  // that.
  bool RefuseWithReserve(int listener);
  void Note(Turned turned, std::string_view name);
  void WatchListeners();
  void CloseListeners();

  ConnectionTable table_;
  std::vector<ListenSocket> sockets_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors_;                                  // SlotOf()
  std::vector<std::pair<size_t, int>> listeners_;  // index in sockets_, descriptor
  OwnedFd epoll_;
  OwnedFd wake_;
  OwnedFd reserve_;
  bool out_of_descriptors_ = false;  // on the thread: listeners are left alone for a moment

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
