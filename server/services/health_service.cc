#include "server/services/health_service.h"

#include <utility>

#include "base/strings.h"

namespace h5mirror::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One call of Watch. It deletes itself when gRPC is done with it. Its members are the service's,
// under whose mutex they are.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService& service_in, std::string name_in)
      : service(service_in), name(std::move(name_in)) {}

  void OnWriteDone(bool ok) override { service.OnWatcher(*this, /*wrote=*/true, /*is_gone=*/!ok); }
  void OnCancel() override { service.OnWatcher(*this, /*wrote=*/false, /*is_gone=*/true); }
  void OnDone() override {
    service.Forget(*this);
    delete this;
  }
  void End(const grpc::Status& status) {
    is_finished = true;
    Finish(status);
  }

  HealthService& service;
  const std::string name;
  HealthCheckResponse told;
  bool is_writing = false;
  bool is_gone = false;
  bool is_finished = false;
};

namespace {

// A Watch that is refused.
class Refusal final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

HealthService::HealthService(const std::vector<std::string>& services, Observer observer)
    : services_(services.begin(), services.end()), observer_(std::move(observer)) {}

void HealthService::StartServing() {
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kStarting) return;
  phase_ = Phase::kServing;
  AdvanceAll();
}

void HealthService::StopServing() {
  absl::MutexLock lock(&mutex_);
  phase_ = Phase::kStopping;
  AdvanceAll();
}

void HealthService::AdvanceAll() {
  for (Watcher* watcher : watchers_) Advance(*watcher);
}

void HealthService::Advance(Watcher& watcher) {
  if (watcher.is_writing || watcher.is_finished) return;
  if (watcher.is_gone) return watcher.End(grpc::Status::CANCELLED);
  const HealthCheckResponse answer = Answer(watcher.name);
  // UNKNOWN is no answer, so that the first one is always told.
  if (answer.status() != watcher.told.status()) {
    watcher.told = answer;
    watcher.is_writing = true;
    watcher.StartWrite(&watcher.told);
  } else if (phase_ == Phase::kStopping) {
    watcher.End({grpc::StatusCode::UNAVAILABLE, "the server is stopping; safe to retry"});
  }
}

void HealthService::OnWatcher(Watcher& watcher, bool wrote, bool is_gone) {
  absl::MutexLock lock(&mutex_);
  if (wrote) watcher.is_writing = false;
  watcher.is_gone = watcher.is_gone || is_gone;
  Advance(watcher);
}

void HealthService::Forget(Watcher& watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(&watcher);
}

HealthCheckResponse HealthService::Answer(const std::string& service) const {
  HealthCheckResponse response;
  if (!service.empty() && services_.count(service) == 0) {
    response.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
  } else {
    response.set_status(phase_ == Phase::kServing ? HealthCheckResponse::SERVING
                                                  : HealthCheckResponse::NOT_SERVING);
  }
  return response;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  observer_(*context);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::MutexLock lock(&mutex_);
  *response = Answer(request->service());
  if (response->status() != HealthCheckResponse::SERVICE_UNKNOWN) {
    reactor->Finish(grpc::Status::OK);
  } else {
    reactor->Finish(
        {grpc::StatusCode::NOT_FOUND,
         StrCat("no service \"", request->service(), "\"; empty asks for the server as a whole")});
  }
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  observer_(*context);
  absl::MutexLock lock(&mutex_);
  if (watchers_.size() >= static_cast<size_t>(kWatchersMax)) {
    return new Refusal({grpc::StatusCode::RESOURCE_EXHAUSTED,
                        StrCat(kWatchersMax, " clients watch already; use Check")});
  }
  auto* watcher = new Watcher(*this, request->service());
  watchers_.insert(watcher);
  Advance(*watcher);
  return watcher;
}

}  // namespace h5mirror::server
