// grpc.health.v1.Health: tells probes and load balancers whether the server serves. Needs no token
// and shows no data.
//
// gRPC's own health service is not used: in 1.51 it starts a second set of polling threads,
// which take socket reads from the threads that receive frames (a third of the server's CPU
// time in bench/'s contiguous).
#ifndef H5MIRROR_SERVER_SERVICES_HEALTH_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_HEALTH_SERVICE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace h5mirror::server {

// Thread-safe. No call holds a thread. The server must have ended before this does.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  static constexpr int kWatchersMax = 32;
  using Observer = std::function<void(const grpc::ServerContextBase&)>;

  // `services`: the full names that are known beside "", the server as a whole. `observer` is
  // called at the begin of each call.
  explicit HealthService(
      const std::vector<std::string>& services, Observer observer = [](const auto&) {});

  // Before the first call nothing serves.
  void StartServing();
  // Tells all watchers, and ends their calls with UNAVAILABLE. Cannot be undone.
  void StopServing();

  // NOT_FOUND: no such service.
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  // RESOURCE_EXHAUSTED: kWatchersMax watch already. UNAVAILABLE: the server stops.
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class Watcher;
  enum class Phase { kStarting, kServing, kStopping };

  grpc::health::v1::HealthCheckResponse Answer(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the next operation of a watcher, unless one is in flight.
  void Advance(Watcher& watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdvanceAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnWatcher(Watcher& watcher, bool wrote, bool is_gone);
  void Forget(Watcher& watcher);

  const std::set<std::string> services_;
  const Observer observer_;
  // Held while an operation of gRPC is started; its end comes on a thread that does not hold it.
  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_HEALTH_SERVICE_H_
