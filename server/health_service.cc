#include "server/health_service.h"

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The synchronous API tells of a client that went away only when it is asked.
constexpr absl::Duration kCancelCheckPeriod = absl::Milliseconds(500);

}  // namespace

HealthService::HealthService(const std::vector<std::string>& services)
    : services_(services.begin(), services.end()) {}

void HealthService::StartServing() {
  absl::MutexLock lock(&mutex_);
  if (phase_ == Phase::kStarting) phase_ = Phase::kServing;
}

void HealthService::StopServing() {
  absl::MutexLock lock(&mutex_);
  phase_ = Phase::kStopping;
}

HealthCheckResponse HealthService::Answer(const std::string& service, Phase phase) const {
  HealthCheckResponse response;
  if (!service.empty() && services_.count(service) == 0) {
    response.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
  } else {
    response.set_status(phase == Phase::kServing ? HealthCheckResponse::SERVING
                                                 : HealthCheckResponse::NOT_SERVING);
  }
  return response;
}

grpc::Status HealthService::Check(grpc::ServerContext* /*context*/,
                                  const HealthCheckRequest* request,
                                  HealthCheckResponse* response) {
  absl::MutexLock lock(&mutex_);
  *response = Answer(request->service(), phase_);
  if (response->status() != HealthCheckResponse::SERVICE_UNKNOWN) return grpc::Status::OK;
  return {grpc::StatusCode::NOT_FOUND,
          StrCat("no service \"", request->service(), "\"; empty asks for the server as a whole")};
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  grpc::ServerWriter<HealthCheckResponse>* writer) {
  {
    absl::MutexLock lock(&mutex_);
    if (watchers_ >= kWatchersMax) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              StrCat(kWatchersMax, " clients watch already; use Check")};
    }
    ++watchers_;
  }
  const absl::Cleanup leave = [this] {
    absl::MutexLock lock(&mutex_);
    --watchers_;
  };
  return WatchUntilEnd(*context, request->service(), *writer);
}

grpc::Status HealthService::WatchUntilEnd(const grpc::ServerContext& context,
                                          const std::string& service,
                                          grpc::ServerWriter<HealthCheckResponse>& writer) {
  HealthCheckResponse told;
  Phase phase = Phase::kStarting;
  {
    absl::MutexLock lock(&mutex_);
    phase = phase_;
  }
  while (!context.IsCancelled()) {
    const HealthCheckResponse answer = Answer(service, phase);
    // UNKNOWN is no answer, so that the first one is always told.
    if (answer.status() != told.status() && !writer.Write(answer)) break;
    told = answer;
    if (phase == Phase::kStopping) {
      return {grpc::StatusCode::UNAVAILABLE, "the server is stopping; safe to retry"};
    }
    phase = AwaitChange(phase);
  }
  return grpc::Status::CANCELLED;
}

HealthService::Phase HealthService::AwaitChange(Phase seen) {
  const auto changed = [this, seen]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return phase_ != seen; };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&changed), kCancelCheckPeriod);
  return phase_;
}

}  // namespace h5mirror::server
