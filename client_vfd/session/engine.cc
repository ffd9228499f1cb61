#include "client_vfd/session/engine.h"

#include <grpc/grpc.h>
#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/signal_block.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "client_vfd/session/grpc_stream.h"
#include "client_vfd/session/grpc_timers.h"
#include "client_vfd/session/owner_question.h"
#include "client_vfd/session/reader_calls.h"
#include "client_vfd/session/session.h"
#include "client_vfd/session/token_reader.h"
#include "rpc/channel.h"
#include "rpc/grpc_threads.h"
#include "rpc/munge_token.h"

namespace h5mirror::vfd {
namespace {

// Buffers in flight for all sessions, 1 MiB each: enough to keep one stream's pipe full while the
// next frame is read, few enough to stay in the cache.
constexpr size_t kBuffersMax = 24;
// How often sessions look at their deadlines.
constexpr absl::Duration kTimerPeriod = absl::Milliseconds(100);
// The same of the thread at its descriptors, where there is no session.
constexpr absl::Duration kIdlePeriod = absl::Seconds(1);
// For the sender, whose streams have ended by then, and between two looks at it. So many looks are
// made at least: a process that stood still meanwhile gets its time once it goes on.
constexpr absl::Duration kEndWait = absl::Seconds(5);
constexpr absl::Duration kEndLook = absl::Microseconds(100);
constexpr int kEndLooksMin = 5000;
// From a start that found no threads to the next one.
constexpr absl::Duration kStartPause = absl::Seconds(1);

// For gRPC, by the clock that it does not have to convert, as others may set that one.
gpr_timespec ToGpr(absl::Time steady_time) {
  const int64_t left_ns = absl::ToInt64Nanoseconds(steady_time - SteadyNow());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<int64_t>(0, left_ns), GPR_TIMESPAN));
}

}  // namespace

Engine& Engine::Get() {
  static auto* engine = new Engine;
  return *engine;
}

Engine::Engine() {
  pool_ = new FramePool(rpc::kMaxFrameBytes, kBuffersMax, [this] {
    for (const auto& session : Sessions()) Wake(session.get());
  });
}

// absl's waits with a deadline are until a time of day: the timer's locking has the condition
// looked at (base/steady_time.h).
void Engine::Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition, absl::Time deadline) {
  const auto holds = [&] { return condition(); };
  mutex.AwaitWithTimeout(absl::Condition(&holds), deadline - SteadyNow());
}

void Engine::Add(std::shared_ptr<Session> session) {
  absl::MutexLock lock(&mutex_);
  sessions_.push_back(std::move(session));
}

void Engine::Wake(Session* session) {
  std::shared_ptr<Session> kept = session->shared_from_this();
  grpc::Alarm* alarm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!usable_ || is_stuck_ || session->is_abandoned()) return;
    if (std::find(ready_.begin(), ready_.end(), kept) == ready_.end())
      ready_.push_back(std::move(kept));
    if (phase_ == Phase::kStopping || phase_ == Phase::kForking) return;
    if (phase_ == Phase::kStopped && !StartLocked()) return;
    if (alarm_set_ || HasLostDescriptors()) return;  // The thread looks by itself.
    alarm_set_ = true;  // The loop does not end while this is set, so `alarm` stays.
    alarm = alarm_.get();
  }
  Ring(*alarm);
}

void Engine::Ring(grpc::Alarm& alarm) {
  alarm.Set(queue_.get(), gpr_time_0(GPR_CLOCK_MONOTONIC), nullptr);
}

bool Engine::StartLocked() {
  const SignalBlock block;                  // gRPC's threads, too, begin here.
  if (thread_ != nullptr) thread_->join();  // It has left by itself, and needs no lock any more.
  thread_.reset();
  const absl::Time now = SteadyNow();
  if (now < next_start_ || is_stuck_) return false;
  has_ended_ = false;
  const bool is_lost = HasLostDescriptors();
  try {
    if (is_lost || rpc::CheckGrpcThreads().ok()) {
      thread_ = std::make_unique<std::thread>([this, is_lost] {
        pthread_setname_np(pthread_self(), "h5m-sender");
        bool is_set = false;
        {
          const absl::MutexLock until_all_is_set(&mutex_);
          is_set = phase_ != Phase::kStopped;
        }
        // Else there was no memory for what it needs.
        if (is_set) is_lost ? AbandonGrpc() : Loop();
        has_ended_ = true;
      });
    }
  } catch (const std::system_error&) {
  }
  if (thread_ == nullptr) {
    next_start_ = now + kStartPause;
    return false;
  }
  if (!is_lost) {
    mark_.Set();
    polling_.Begin([this] { queue_ = std::make_unique<grpc::CompletionQueue>(); });
    alarm_ = std::make_unique<grpc::Alarm>();
  }
  phase_ = Phase::kRunning;
  alarm_set_ = false;
  has_left_ = false;
  return true;
}

absl::Status Engine::StartGrpc(absl::FunctionRef<void()> start) {
  const SignalBlock block;
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(rpc::CheckGrpcThreads());
  mark_.Set();
  polling_.Begin(start);
  return absl::OkStatus();
}

absl::Status Engine::CheckUsable() const {
  if (HasLostDescriptors()) {
    return absl::FailedPreconditionError(
        "the program has closed descriptors that it did not open (closefrom?), and among them "
        "those of the driver, so it is not mirrored any more");
  }
  if (is_stuck_) {
    return absl::FailedPreconditionError(
        "gRPC hangs in this program, as where it finds no threads or no memory, so it is not "
        "mirrored any more");
  }
  if (usable_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process was forked while its parent used gRPC, which cannot follow");
}

void Engine::LetGo(std::shared_ptr<grpc::Channel>& channel) const {
  if (HasLostDescriptors()) (void)new std::shared_ptr<grpc::Channel>(std::move(channel));
  channel.reset();
}

std::shared_ptr<Session> Engine::Predecessor(const Session& session) {
  absl::MutexLock lock(&mutex_);
  for (auto other = sessions_.rbegin(); other != sessions_.rend(); ++other) {
    const bool waits = !(*other)->gone() && !(*other)->superseded();
    if (waits && other->get() != &session && (*other)->SameFile(session)) return *other;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Session>> Engine::Sessions() {
  absl::MutexLock lock(&mutex_);
  return sessions_;
}

void Engine::WakeSuccessors(const Session& ended) {
  for (const auto& session : Sessions()) {
    if (session.get() != &ended && session->SameFile(ended)) Wake(session.get());
  }
}

void Engine::Reap() {
  std::vector<std::shared_ptr<Session>> gone;
  absl::MutexLock lock(&mutex_);
  const auto finished = [&](const std::shared_ptr<Session>& session) {
    if (!session->gone()) return false;
    gone.push_back(session);
    return true;
  };
  sessions_.erase(std::remove_if(sessions_.begin(), sessions_.end(), finished), sessions_.end());
}

std::atomic<int64_t>& Engine::saved_bytes(const std::string& server) {
  absl::MutexLock lock(&mutex_);
  return servers_[server].saved_bytes;
}

bool Engine::Suspect(const std::string& server) {
  absl::MutexLock lock(&mutex_);
  return SteadyNow() < servers_[server].suspect_until;
}

void Engine::SetSuspect(const std::string& server, bool suspect) {
  absl::MutexLock lock(&mutex_);
  servers_[server].suspect_until = suspect ? SteadyNow() + kSuspectFor : absl::InfinitePast();
}

bool Engine::IsDoubtful(const std::string& target) {
  absl::MutexLock lock(&mutex_);
  return SteadyNow() < servers_[target].doubtful_until;
}

void Engine::SetDoubtful(const std::string& target) {
  absl::MutexLock lock(&mutex_);
  servers_[target].doubtful_until = SteadyNow() + kDoubtfulFor;
}

std::string Engine::NewestToken(const rpc::ClientOptions& options) {
  return TokenReader::Get().Newest(options);
}

void Engine::ReadTokenSoon(const rpc::ClientOptions& options) {
  TokenReader::Get().ReadSoon(options);
}

std::string Engine::KeyOf(const rpc::ClientOptions& options) {
  // A credential of munge is often made anew, and goes with each call on the same connection.
  const std::string& caller =
      rpc::IsMungeSource(options.token_source) ? options.token_source : options.token;
  return absl::StrCat(options.target, "\n", caller, "\n", options.ca_pem, "\n",
                      options.certificate_pem);
}

std::shared_ptr<grpc::Channel> Engine::ChannelTo(const rpc::ClientOptions& options) {
  std::shared_ptr<grpc::Channel>& channel = channels_[KeyOf(options)];
  if (!channel) channel = rpc::MakeChannel(options);
  return channel;
}

void Engine::DropChannel(const rpc::ClientOptions& options) { channels_.erase(KeyOf(options)); }

absl::StatusOr<OutsideChange> Engine::FindOutsideChange(const rpc::ClientOptions& server,
                                                        const std::string& name, int64_t cut,
                                                        const FileReader& file,
                                                        absl::Duration timeout,
                                                        absl::Duration time_max) {
  const absl::Time latest = Now() + time_max;
  const auto ask = [&](const v1::DigestFileRequest& request, rpc::DigestSink sink) {
    return ReaderCalls::Get().DigestFile(server, request, timeout, sink);
  };
  return vfd::FindOutsideChange(name, cut, file, ask, [&] { return Now() >= latest; });
}

Stream* Engine::StartStream(const rpc::ClientOptions& options, StreamOwner* owner) {
  auto stream = std::make_unique<GrpcStream>(options, ChannelTo(options), queue_.get(), owner);
  GrpcStream* key = stream.get();
  users_.emplace(key, std::move(stream));
  return key;
}

void Engine::AskServer(const rpc::ClientOptions& options, const std::string& name,
                       absl::Duration timeout, std::function<void(const ServerAnswer&)> answered) {
  auto question = std::make_unique<OwnerQuestion>(
      options, ChannelTo(options), name, ToGpr(Now() + timeout), queue_.get(), std::move(answered));
  QueueUser* key = question.get();
  users_.emplace(key, std::move(question));
}

bool Engine::RunReady() {
  std::vector<std::shared_ptr<Session>> ready;
  {
    absl::MutexLock lock(&mutex_);
    ready.swap(ready_);
  }
  for (const auto& session : ready) session->Pump();
  return !ready.empty();
}

void Engine::RunTimers() {
  for (const auto& session : Sessions()) session->OnTimer();
  Reap();  // Sessions die here, on the thread that uses their streams.
}

bool Engine::HandleNext(absl::Time deadline) {
  void* tag = nullptr;
  bool ok = false;
  const auto got = queue_->AsyncNext(&tag, &ok, ToGpr(deadline));
  if (got == grpc::CompletionQueue::SHUTDOWN) return false;
  if (got == grpc::CompletionQueue::TIMEOUT || !mark_.is_there()) return true;
  if (tag == nullptr) {
    absl::MutexLock lock(&mutex_);
    alarm_set_ = false;
    return true;
  }
  const auto* op = static_cast<const QueueUser::Tag*>(tag);
  QueueUser* user = op->user;
  if (user->Handle(op->op, ok)) users_.erase(user);
  return true;
}

void Engine::Loop() {
  absl::Time next_timer = SteadyNow() + kTimerPeriod;
  while (HandleNext(next_timer)) {
    if (!mark_.is_there()) return AbandonGrpc();
    if (phase() == Phase::kStopping || is_stuck_) return EndStreams();
    if (RunReady()) next_timer = std::min(next_timer, SteadyNow() + kTimerPeriod);
    if (SteadyNow() < next_timer) continue;
    RunTimers();
    next_timer = SteadyNow() + (Sessions().empty() ? kIdlePeriod : kTimerPeriod);
  }
}

void Engine::EndStreams() {
  absl::Time give_up = SteadyNow() + kForkWait;
  for (const auto& session : Sessions()) session->LeaveStream();
  for (auto& [key, user] : users_) user->Leave();
  do {
    if (SteadyNow() > give_up) {
      give_up = absl::InfiniteFuture();
      for (auto& [key, user] : users_) user->Cancel();
    }
    if (users_.empty()) ShutDown();
    if (!HandleNext(SteadyNow() + kTimerPeriod)) return;
  } while (mark_.is_there());
  AbandonGrpc();
}

// gRPC's timers would go on by themselves. After this nothing of it runs but an attempt to connect
// that has failed, and is made once more.
void Engine::AbandonGrpc() {
  if (grpc_is_initialized() != 0) StopGrpcTimers();
  do {
    const std::string why(CheckUsable().message());
    const auto sessions = Sessions();
    // The newest first, as it takes over from those that it waits for.
    for (auto one = sessions.rbegin(); one != sessions.rend(); ++one) (*one)->Abandon(why);
    Reap();
  } while (!LeaveAbandoned());
}

bool Engine::LeaveAbandoned() {
  absl::MutexLock lock(&mutex_);
  for (const auto& session : sessions_) {
    if (!session->is_abandoned()) return false;  // It has come meanwhile.
  }
  ready_.clear();
  if (phase_ == Phase::kRunning) phase_ = Phase::kStopped;
  has_left_ = true;
  return true;
}

void Engine::ShutDown() {
  channels_.clear();
  {
    absl::MutexLock lock(&mutex_);
    if (alarm_set_) return;  // It still comes out of the queue.
    alarm_.reset();
  }
  queue_->Shutdown();
}

bool Engine::Stop(Phase after) {
  grpc::Alarm* alarm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    const bool was_running = phase_ == Phase::kRunning;
    phase_ = was_running ? Phase::kStopping : after;
    const bool is_lost = HasLostDescriptors();
    if (is_lost) AwaitAbandoned(after);
    if (!was_running || is_lost) return false;
    if (!std::exchange(alarm_set_, true)) alarm = alarm_.get();
  }
  if (alarm != nullptr) Ring(*alarm);
  if (AwaitEnd()) {
    thread_->join();
    if (HasLostDescriptors()) (void)queue_.release();  // Its destructor would call gRPC.
    queue_.reset();
  } else {
    thread_->detach();
  }
  thread_.reset();
  absl::MutexLock lock(&mutex_);
  phase_ = after;
  alarm_set_ = false;
  return true;
}

// gRPC hangs at its end where it could not start a thread meanwhile. Then it is left to itself,
// with all that the thread uses.
bool Engine::AwaitEnd() {
  const absl::Time deadline = SteadyNow() + kEndWait;
  for (int looks = 0; !has_ended_ && (looks < kEndLooksMin || SteadyNow() < deadline); ++looks) {
    absl::SleepFor(kEndLook);
  }
  if (!has_ended_) is_stuck_ = true;
  return has_ended_;
}

// To wake the thread would be a call of gRPC. It looks by itself.
void Engine::AwaitAbandoned(Phase after) {
  const auto has_left = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return has_left_; };
  if (thread_ != nullptr) {
    // Else the thread is in a call that hangs, with a descriptor that is another one by now.
    if (mutex_.AwaitWithTimeout(absl::Condition(&has_left), kIdlePeriod + kForkWait)) {
      thread_->join();
    } else {
      thread_->detach();
    }
    thread_.reset();
  }
  phase_ = after;
}

Engine::Phase Engine::phase() {
  absl::MutexLock lock(&mutex_);
  return phase_;
}

absl::Duration Engine::LongestTimeout() {
  absl::Duration longest = absl::ZeroDuration();
  for (const auto& session : Sessions()) longest = std::max(longest, session->timeout());
  return longest;
}

void Engine::Drain(absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  while (true) {
    bool any_closed = false;
    bool any_open = false;
    for (const auto& session : Sessions()) {
      (session->released() ? any_closed : any_open) |= !session->done();
    }
    if (!any_closed || SteadyNow() > deadline) {
      // GiveUp() acts on closed sessions only. Newest first: a session takes over from those that
      // it waits for.
      const auto sessions = Sessions();
      for (auto one = sessions.rbegin(); one != sessions.rend(); ++one) (*one)->GiveUp();
      if (any_open) return;
      break;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::MutexLock control(&control_mutex_);
  Stop(Phase::kStopped);
  Reap();
}

void Engine::PrepareFork(bool also_used) {
  control_mutex_.Lock();
  // Another thread may wake a session now: it waits for the fork.
  const bool was_used = Stop(Phase::kForking) || also_used;
  if (was_used && !HasLostDescriptors() && !is_stuck_) {
    const absl::Time deadline = SteadyNow() + kForkWait;
    // Another user of the same gRPC keeps it alive; then there is nothing to wait for.
    while (grpc_is_initialized() != 0 && SteadyNow() < deadline)
      absl::SleepFor(absl::Milliseconds(1));
  }
  mutex_.Lock();
  // Lost numbers may be those of the program's own epoll set. One that hangs may hold its lock.
  polling_.Read(is_stuck_ || grpc_is_initialized() != 0 || HasLostDescriptors());
}

void Engine::ParentAfterFork() {
  phase_ = Phase::kStopped;
  mutex_.Unlock();
  control_mutex_.Unlock();
  for (const auto& session : Sessions()) Wake(session.get());
}

void Engine::ChildAfterFork() {
  // Never destroyed: the plugin still names them, to count what the child writes.
  static auto* const inherited = new std::vector<std::shared_ptr<Session>>;
  if (!polling_.Renew()) usable_ = false;
  inherited->insert(inherited->end(), sessions_.begin(), sessions_.end());
  sessions_.clear();
  ready_.clear();
  phase_ = Phase::kStopped;
  for (auto& [target, server] : servers_) server.saved_bytes = 0;
  mutex_.Unlock();
  control_mutex_.Unlock();
}

}  // namespace h5mirror::vfd
