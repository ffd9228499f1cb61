// grpc.health.v1.Health: says to probes and load balancers whether the server serves. Wants no
// token and shows no data.
//
// gRPC's own health service is not used: in 1.51 it starts a second set of polling threads,
// which take socket reads from the threads that receive frames (a third of the server's CPU
// time in bench/'s contiguous).
#ifndef H5MIRROR_SERVER_HEALTH_SERVICE_H_
#define H5MIRROR_SERVER_HEALTH_SERVICE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace h5mirror::server {

// Thread-safe. Each Watch takes one thread of the unary calls, so there may be only a few.
class HealthService final : public grpc::health::v1::Health::Service {
 public:
  static constexpr int kWatchersMax = 32;

  // `services`: full names that are known beside "", the server as a whole.
  explicit HealthService(const std::vector<std::string>& services);

  // Before the first call nothing serves.
  void StartServing();
  // Tells all watchers, and ends their calls with UNAVAILABLE. For good.
  void StopServing();

  // NOT_FOUND: no such service.
  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;
  // RESOURCE_EXHAUSTED: kWatchersMax watch already. UNAVAILABLE: the server stops.
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

 private:
  enum class Phase { kStarting, kServing, kStopping };

  grpc::health::v1::HealthCheckResponse Answer(const std::string& service, Phase phase) const;
  grpc::Status WatchUntilEnd(const grpc::ServerContext& context, const std::string& service,
                             grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>& writer);
  // Waits until the phase is another than `seen`, and no longer than a client's going away may
  // stay unnoticed. Returns the phase.
  Phase AwaitChange(Phase seen);

  const std::set<std::string> services_;
  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;
  int watchers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HEALTH_SERVICE_H_
