#include "server/mirror/mirror_service.h"

#include <pthread.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "server/door/receive_windows.h"
#include "server/mirror/mirror_stream.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// Opening a file waits for a sync or two; these many may wait at once.
constexpr int kOpenerThreads = 4;

}  // namespace

MirrorService::MirrorService(const SessionEnvironment& environment, Callers& callers)
    : environment_(environment), callers_(callers), openers_(kOpenerThreads, "h5m-opener") {}

MirrorService::~MirrorService() { Stop(); }

void MirrorService::AddQueues(grpc::ServerBuilder& builder, int queue_count) {
  for (int i = 0; i < queue_count; ++i) queues_.push_back(builder.AddCompletionQueue());
}

void MirrorService::Start() {
  for (const auto& queue : queues_) {
    Listen(*queue);
    threads_.emplace_back([&queue = *queue] {
      pthread_setname_np(pthread_self(), "h5m-queue");
      void* tag = nullptr;
      bool ok = false;
      while (queue.Next(&tag, &ok)) MirrorStream::Dispatch(tag, ok);
    });
  }
}

void MirrorService::BeginStop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (const std::shared_ptr<Session>& session : Sessions()) session->OnStop();
}

size_t MirrorService::EndBelow(std::string_view prefix) {
  const std::vector<std::shared_ptr<Session>> sessions = Sessions();
  return static_cast<size_t>(
      std::count_if(sessions.begin(), sessions.end(),
                    [prefix](const auto& session) { return session->StopBelow(prefix); }));
}

void MirrorService::Stop() {
  if (queues_.empty()) return;
  {
    absl::MutexLock lock(&mutex_);
    listening_ = false;
    // Operations may be started on a queue only before its Shutdown(): wait for the streams.
    const auto all_gone = [this]()
                              ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stream_count_ == 0; };
    if (!threads_.empty()) mutex_.Await(absl::Condition(&all_gone));
  }
  for (const auto& queue : queues_) queue->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  void* tag = nullptr;
  bool ok = false;
  for (const auto& queue : queues_) {
    while (queue->Next(&tag, &ok)) continue;
  }
  queues_.clear();
}

void MirrorService::OnTimer() {
  for (const std::shared_ptr<Session>& session : Sessions()) session->OnTimer();
  if (const int expired = environment_.leases.RevokeExpired(); expired > 0) {
    environment_.metrics.LeasesExpired(expired);
  }
}

int MirrorService::session_count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(sessions_.size());
}

absl::Status MirrorService::AddSession(MirrorStream* stream, std::shared_ptr<Session> session) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the server is stopping; safe to retry");
  sessions_.emplace(stream, std::move(session));
  ShareProbedWindows(static_cast<int>(sessions_.size()));
  return absl::OkStatus();
}

void MirrorService::RemoveSession(MirrorStream* stream) {
  std::shared_ptr<Session> last;  // Destroyed without the lock.
  absl::MutexLock lock(&mutex_);
  if (const auto found = sessions_.find(stream); found != sessions_.end()) {
    last = std::move(found->second);
    sessions_.erase(found);
    ShareProbedWindows(static_cast<int>(sessions_.size()));
  }
}

void MirrorService::StreamMade() {
  absl::MutexLock lock(&mutex_);
  ++stream_count_;
}

void MirrorService::StreamGone() {
  grpc::ServerCompletionQueue* queue = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    --stream_count_;
    if (!put_off_.empty() && OtherCount() < kOthersMax) {
      queue = put_off_.back();
      put_off_.pop_back();
    }
  }
  if (queue != nullptr) Listen(*queue);
}

size_t MirrorService::OtherCount() const {
  return static_cast<size_t>(stream_count_) - sessions_.size();
}

bool MirrorService::IsCrowded() const {
  absl::MutexLock lock(&mutex_);
  return OtherCount() >= kOthersMax / 2;
}

void MirrorService::Listen(grpc::ServerCompletionQueue& queue) {
  {
    absl::MutexLock lock(&mutex_);
    if (!listening_) return;
    if (OtherCount() >= kOthersMax) {
      put_off_.push_back(&queue);
      return;
    }
    ++stream_count_;  // Keeps the queue open until the new stream counts itself.
  }
  MirrorStream::Listen(*this, queue);
  StreamGone();
}

std::vector<std::shared_ptr<Session>> MirrorService::Sessions() const {
  std::vector<std::shared_ptr<Session>> sessions;
  absl::MutexLock lock(&mutex_);
  sessions.reserve(sessions_.size());
  for (const auto& [stream, session] : sessions_) sessions.push_back(session);
  return sessions;
}

}  // namespace h5mirror::server
