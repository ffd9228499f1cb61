// One client process. It replaces client_vfd/session/engine.h of a real process, with virtual time
// and without threads.
#ifndef H5MIRROR_TESTS_SIM_PROCESS_H_
#define H5MIRROR_TESTS_SIM_PROCESS_H_

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "client_vfd/session/session.h"
#include "client_vfd/session/session_host.h"
#include "tests/sim/golden.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace h5mirror::sim {

class Process final : public vfd::SessionHost {
 public:
  Process(World& world, Network& network, Golden& golden, int number);
  ~Process() override;

  // The process dies at once. Call it from outside of the process.
  void Kill();
  bool alive() const { return alive_; }
  // As at the end of a program: waits for its closed sessions, and gives the others up.
  void Drain();
  // As before a fork: the streams are half-closed.
  void LeaveStreams();
  bool has_open_sessions() const;
  int number() const { return number_; }
  World& world() { return world_; }
  Golden& golden() { return golden_; }
  absl::Duration clock_offset = absl::ZeroDuration();

  // SessionHost.
  absl::Time Now() override { return world_.Now(); }
  absl::Time TimeOfDay() override;
  Bytes16 RandomId() override;
  void Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition,
             absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Add(std::shared_ptr<vfd::Session> session) override;
  void Wake(vfd::Session* session) override;
  std::shared_ptr<vfd::Session> Predecessor(const vfd::Session& session) override;
  void WakeSuccessors(const vfd::Session& ended) override;
  vfd::FramePool& pool() override;
  // Its sessions are all with one server.
  std::atomic<int64_t>& saved_bytes(const std::string& /*server*/) override { return saved_bytes_; }
  bool Suspect(const std::string& /*server*/) override { return world_.Now() < suspect_until_; }
  void SetSuspect(const std::string& server, bool suspect) override;
  vfd::Stream* StartStream(const rpc::ClientOptions& options, vfd::StreamOwner* owner) override;
  void DropChannel(const rpc::ClientOptions&) override {}

 private:
  // Hears of the end of a stream, and drops it.
  class Owner;
  struct Held {
    std::unique_ptr<vfd::Stream> stream;
    std::unique_ptr<Owner> owner;
  };

  void Timer();
  void Reap();

  World& world_;
  Network& network_;
  Golden& golden_;
  const int number_;
  // Outlives the process in events.
  const std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
  bool alive_ = true;
  bool timer_set_ = false;
  std::vector<std::shared_ptr<vfd::Session>> sessions_;
  std::list<std::shared_ptr<vfd::Session>> ready_;
  std::list<Held> streams_;
  std::atomic<int64_t> saved_bytes_{0};
  absl::Time suspect_until_ = absl::InfinitePast();
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_PROCESS_H_
