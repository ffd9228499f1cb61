// CephFS and its OSDs, as far as fencing matters: buffered writes, a sync that may lie, an eviction
// of which each OSD learns at its own time.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_DISK_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "tests/cluster_sim/golden.h"
#include "tests/sim/world.h"

namespace h5mirror::cluster_sim {

// A client's session. The name is its uuid.
struct Session {
  std::string name;
  uint64_t map = 0;            // the newest map of the OSDs that this client knows
  bool has_ended = false;      // at the MDS
  bool has_noticed = false;    // it has ended, the client knows, and has dropped its buffer
  bool is_forgotten = false;   // its process has died
  std::function<bool()> runs;  // false: its process stands still, or is cut off
  struct Buffered {
    uint64_t value = 0;
    uint64_t epoch = 0;
  };
  std::map<Object, Buffered> buffered;
  std::map<Object, absl::Time> last_landing;  // one client's writes to one object keep their order
  int in_flight = 0;
};
using SessionPtr = std::shared_ptr<Session>;

// Not thread-safe. Calls that wait run in a fiber; `Wait` is how its process waits.
class Disk {
 public:
  using Wait = std::function<void(std::function<bool()> condition, absl::Time deadline)>;

  Disk(sim::World& world, Golden& golden) : world_(world), golden_(golden) {}

  SessionPtr Mount(const std::string& name, std::function<bool()> runs);
  // The client waits for the newest map of the OSDs.
  void TakeNewestMap(Session& session) { session.map = map_; }

  // Writes into the client's memory.
  void Write(Session& session, const Object& object, uint64_t epoch, uint64_t value);
  // Whether fsync returns OK. Then all bytes buffered before have landed, or the session has ended.
  bool Sync(const SessionPtr& session, const Wait& wait);
  // Whether the question for a file's size succeeds, after a sync.
  bool AskSize(const Session& session) const { return !session.has_noticed; }
  // Reads an object for the owner at `epoch`. Unset: refused.
  std::optional<uint64_t> Read(Session& session, const Object& object, uint64_t epoch);

  // The steps of a fencing; each may be repeated. The MDS ends a session, and blocks its address
  // for a while. Does nothing if it has ended already.
  void EndSession(const std::string& name);
  void Block(const std::string& name);

  // The process has died: its buffer is gone. Writes in flight may still land.
  void Forget(Session& session);
  uint64_t ValueOf(const Object& object) { return osds_[object].value; }

 private:
  // An object on its OSD.
  struct Osd {
    uint64_t value = 0;
    uint64_t map = 0;
  };
  struct Blocked {
    uint64_t since_map = 0;
    absl::Time until = absl::InfinitePast();
  };

  void Put(const std::string& name, absl::Time until);
  bool IsRefused(const Session& session, Osd& osd);
  void Land(Session& session, const Object& object, const Session::Buffered& write);
  void Notice(const SessionPtr& session);

  sim::World& world_;
  Golden& golden_;
  uint64_t map_ = 1;
  std::map<Object, Osd> osds_;
  std::map<std::string, Blocked> blocked_;  // by session
  std::map<std::string, SessionPtr> sessions_;
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_DISK_H_
