// The simulated network between one client machine and the server. It carries the encoded messages,
// each direction of a stream in order, with delays; it breaks streams on one side or on both,
// delays bytes of dead clients, and delivers whole streams a second time.
#ifndef H5MIRROR_TESTS_SIM_NETWORK_H_
#define H5MIRROR_TESTS_SIM_NETWORK_H_

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client_vfd/session/stream.h"
#include "tests/sim/server_call.h"
#include "tests/sim/world.h"

namespace h5mirror::sim {

class Network;

// What happens to the server's end of a stream when its client goes.
enum class Fate : uint8_t {
  kToldInOrder,   // told after all that was sent
  kToldAtOnce,    // told at once; bytes under way are lost
  kNeverTold,     // bytes under way arrive late, and nothing follows
  kLateThenTold,  // they arrive late, then the end of the stream
  kCount
};

// One direction of a stream: things to do at the other end, in order.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  explicit Pipe(Network& network) : network_(network) {}
  void Push(absl::Duration delay, std::function<void()> deliver);
  // Delays all messages under way by `time`.
  void Hold(absl::Duration time);
  void Clear() { queue_.clear(); }

 private:
  struct Item {
    absl::Time time;
    std::function<void()> deliver;
  };
  void Pump();

  Network& network_;
  std::deque<Item> queue_;
  bool armed_ = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Network& network, vfd::StreamOwner* owner);

  void Connect();
  // The client's side.
  void Write(std::string bytes, bool last);
  void HalfClose();
  void Abandon() { owner_ = nullptr; }
  // The client gives it up, or its process dies.
  void Leave();
  bool ended() const { return ended_; }

  // The network breaks it.
  void Break();
  // Breaks the stream for the client. The bytes already sent stay under way, and arrive long after
  // another stream has begun.
  void TakeTheLongWay();
  // Nothing is under way any more.
  void Clear();

 private:
  void Begun();
  void Writable();
  void EndClient(const absl::Status& status);
  void Break(Fate fate);
  void LeaveServer(Fate fate);
  void ToServer(std::function<void(ServerCall&)> deliver);
  void Replay();

  Network& network_;
  vfd::StreamOwner* owner_;
  std::shared_ptr<ServerCall> call_;
  std::shared_ptr<Pipe> up_, down_;
  bool begun_ = false;
  bool half_closed_ = false;
  bool half_close_wanted_ = false;
  bool writing_ = true;
  bool ended_ = false;  // for the client
  bool left_ = false;
  bool delivered_ = false;    // the first message
  uint64_t server_life_ = 0;  // the life of the server that it goes to
  // The messages sent to the server, if the stream must arrive twice.
  bool repeats_ = false;
  std::vector<std::string> sent_;
};

class Network {
 public:
  Network(World& world, Server& server) : world_(world), server_(server) {}
  ~Network();

  std::unique_ptr<vfd::Stream> Open(vfd::StreamOwner* owner);

  // Nothing gets through until then; messages arrive afterwards.
  void Hole(absl::Time until) { hole_until_ = until; }
  // New connections are refused until then.
  void Refuse(absl::Time until) { refused_until_ = until; }
  // Breaks one stream or all; or breaks one whose bytes then arrive late.
  void BreakOne();
  void BreakAll();
  void DelayOne();
  // From now on nothing goes wrong, and nothing arrives twice.
  void Heal();

  World& world() { return world_; }
  Server& server() { return server_; }
  bool in_hole() const { return world_.Now() < hole_until_; }
  absl::Time hole_until() const { return hole_until_; }
  bool refuses() const { return world_.Now() < refused_until_; }
  bool healed() const { return healed_; }

 private:
  std::vector<std::shared_ptr<Connection>> Living();

  World& world_;
  Server& server_;
  bool healed_ = false;
  absl::Time hole_until_ = absl::InfinitePast();
  absl::Time refused_until_ = absl::InfinitePast();
  std::vector<std::weak_ptr<Connection>> connections_;
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_NETWORK_H_
