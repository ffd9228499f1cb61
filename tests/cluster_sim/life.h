// One life of a server, from its start to its end: the product's node, with the clock, the
// registry, the fencing and the stores that are simulated beneath it.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_LIFE_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_LIFE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/node.h"
#include "cluster/testing/memory_registry.h"
#include "tests/cluster_sim/disk.h"
#include "tests/cluster_sim/golden.h"
#include "tests/sim/world.h"

namespace h5mirror::cluster_sim {

constexpr int kObjects = 2;  // in each cell

// How often things go wrong by themselves: the chance of each.
struct Weather {
  double lost = 0;  // of messages to or from the registry, and between client and server
  double late = 0;  // of the same messages
  double fencing_fails = 0;
  double opening_fails = 0;
};

// The state that all servers share.
struct Site {
  sim::World& world;
  Golden& golden;
  Disk& disk;
  cluster::MemoryRegistry& registry;
  Weather weather;
  // The OSDs of the registry do not answer.
  bool registry_is_away = false;
};

enum class AnswerKind : uint8_t { kDone, kRedirect, kWait };
struct Answer {
  AnswerKind kind = AnswerKind::kWait;
  uint64_t epoch = 0;
  uint64_t value = 0;  // of a read
  std::string owner;   // of a redirect
};
struct Request {
  Object object;
  uint64_t value = 0;  // to be written; 0: to be read
  uint64_t seen_epoch = 0;
  std::function<void(const Answer&)> answer;
};

// Made by std::make_shared; Begin() follows. Messages on their way to it keep it alive. Not
// thread-safe.
class Life : public std::enable_shared_from_this<Life> {
 public:
  // `on_end` is called when the node is gone, from outside of its fibers.
  Life(Site& site, const std::string& id, int number, double clock_rate,
       std::function<void()> on_end);
  ~Life();
  void Begin();
  // SIGKILL. Call it from outside of its fibers.
  void Kill();

  void Pause() { is_paused_ = true; }
  void Continue() { is_paused_ = false; }
  // Cuts it off from the registry only.
  void CutOff(bool is_cut_off) { is_cut_off_ = is_cut_off; }
  // Ceph ends its session by itself, and the registry knows nothing of it.
  void EndSession() { site_.disk.EndSession(name_); }
  // A request arrives.
  void Deliver(const Request& request);

  bool alive() const { return is_alive_; }
  cluster::Node& node() { return *node_; }
  const std::string& name() const { return name_; }

 private:
  class LifeClock;
  class Client;   // of the registry
  class Evictor;  // the fencer
  class Host;
  struct Store {
    uint64_t epoch = 0;
    bool is_open = false;
    int in_hand = 0;
    std::map<int, uint64_t> values;  // by object: the values that the owner knows
  };

  // Called in its fibers. A process that stands still goes on when it is continued.
  void Wait(std::function<bool()> condition, absl::Time deadline);
  void Sleep(absl::Duration least, absl::Duration most);
  // A moment at which the process may be stopped.
  void Breathe() { Sleep(absl::ZeroDuration(), absl::Milliseconds(3)); }
  void Loop(const std::function<void()>& turn);
  void Spawn(std::function<void()> body);

  Answer Handle(const Request& request);
  Answer HandleAt(const Request& request, uint64_t epoch, Store& store);
  absl::Status MakeDurable();
  Store* StoreOf(const std::string& cell, uint64_t epoch);
  absl::Status OpenStore(const std::string& cell, uint64_t epoch, cluster::Recovery recovery);
  absl::Status CloseStore(const std::string& cell);

  Site& site_;
  sim::World& world_;
  const std::string id_;
  const std::string name_;  // "b-3": also of its session
  const double clock_rate_;
  const std::function<void()> on_end_;
  bool is_alive_ = false;
  bool is_paused_ = false;
  bool is_cut_off_ = false;
  SessionPtr session_;
  std::map<std::string, Store> stores_;

  std::unique_ptr<LifeClock> clock_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Evictor> evictor_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<cluster::Node> node_;
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_LIFE_H_
