#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "rpc/channel.h"

namespace h5mirror::sim {
namespace {

// As in client_vfd/session/engine.cc.
constexpr absl::Duration kTimerPeriod = absl::Milliseconds(100);
constexpr absl::Duration kSuspectFor = absl::Seconds(10);
constexpr size_t kBuffersMax = 24;

}  // namespace

// Between the network and the session: when the stream has ended, the process drops it.
class Process::Owner final : public vfd::StreamOwner {
 public:
  explicit Owner(vfd::StreamOwner* session) : session_(session) {}
  void OnWritable() override { session_->OnWritable(); }
  void OnResponse(const v1::MirrorFileResponse& response) override {
    session_->OnResponse(response);
  }
  void OnEnded(const absl::Status& status) override {
    ended_ = true;
    session_->OnEnded(status);
  }
  bool ended() const { return ended_; }

 private:
  vfd::StreamOwner* const session_;
  bool ended_ = false;
};

Process::Process(World& world, Network& network, Golden& golden, int number)
    : world_(world), network_(network), golden_(golden), number_(number) {}

Process::~Process() {
  if (alive_) Kill();
}

void Process::Kill() {
  alive_ = false;
  *here_ = false;
  world_.Kill(this);
  ready_.clear();
  streams_.clear();
  sessions_.clear();
}

absl::Time Process::TimeOfDay() {
  absl::Time now = world_.Now() + clock_offset;
  while (golden_.Knows(absl::ToUnixNanos(now))) now += absl::Nanoseconds(1);
  golden_.NoteTime(absl::ToUnixNanos(now));
  return now;
}

Bytes16 Process::RandomId() {
  Bytes16 id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(world_.Random(256));
  return id;
}

void Process::Await(absl::Mutex& mutex, absl::FunctionRef<bool()> condition, absl::Time deadline) {
  mutex.Unlock();
  try {
    world_.Wait(
        [&mutex, condition] {
          const absl::MutexLock lock(&mutex);
          return condition();
        },
        deadline);
  } catch (const Killed&) {
    mutex.Lock();
    throw;
  }
  mutex.Lock();
}

void Process::Add(std::shared_ptr<vfd::Session> session) {
  sessions_.push_back(std::move(session));
  if (std::exchange(timer_set_, true)) return;
  world_.After(kTimerPeriod, [this, here = here_] {
    if (*here) Timer();
  });
}

void Process::Wake(vfd::Session* session) {
  std::shared_ptr<vfd::Session> kept = session->shared_from_this();
  if (!alive_ || std::find(ready_.begin(), ready_.end(), kept) != ready_.end()) return;
  ready_.push_back(std::move(kept));
  world_.After(world_.Between(absl::ZeroDuration(), absl::Milliseconds(2)), [this, here = here_] {
    if (!*here || ready_.empty()) return;
    const std::shared_ptr<vfd::Session> next = std::move(ready_.front());
    ready_.pop_front();
    next->Pump();
  });
}

std::shared_ptr<vfd::Session> Process::Predecessor(const vfd::Session& session) {
  for (auto other = sessions_.rbegin(); other != sessions_.rend(); ++other) {
    const bool waits = !(*other)->gone() && !(*other)->superseded();
    if (waits && other->get() != &session && (*other)->SameFile(session)) return *other;
  }
  return nullptr;
}

void Process::WakeSuccessors(const vfd::Session& ended) {
  for (const auto& session : std::vector<std::shared_ptr<vfd::Session>>(sessions_)) {
    if (session.get() != &ended && session->SameFile(ended)) Wake(session.get());
  }
}

// Buffers of a mebibyte: one pool for all simulations of a thread.
vfd::FramePool& Process::pool() {
  thread_local auto* const pool = new vfd::FramePool(rpc::kMaxFrameBytes, kBuffersMax, [] {});
  return *pool;
}

void Process::SetSuspect(const std::string& /*server*/, bool suspect) {
  suspect_until_ = suspect ? world_.Now() + kSuspectFor : absl::InfinitePast();
}

vfd::Stream* Process::StartStream(const rpc::ClientOptions&, vfd::StreamOwner* owner) {
  auto told = std::make_unique<Owner>(owner);
  auto stream = network_.Open(told.get());
  vfd::Stream* const started = stream.get();
  streams_.push_back({std::move(stream), std::move(told)});
  return started;
}

void Process::Reap() {
  streams_.remove_if([](const Held& held) { return held.owner->ended(); });
  std::erase_if(sessions_, [](const auto& session) { return session->gone(); });
}

void Process::Timer() {
  for (const auto& session : std::vector<std::shared_ptr<vfd::Session>>(sessions_)) {
    session->OnTimer();
  }
  Reap();
  timer_set_ = !sessions_.empty();
  if (!timer_set_) return;
  world_.After(kTimerPeriod, [this, here = here_] {
    if (*here) Timer();
  });
}

bool Process::has_open_sessions() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return !session->done(); });
}

void Process::LeaveStreams() {
  for (const auto& session : std::vector<std::shared_ptr<vfd::Session>>(sessions_)) {
    session->LeaveStream();
  }
  for (const auto& session : std::vector<std::shared_ptr<vfd::Session>>(sessions_)) {
    Wake(session.get());
  }
}

void Process::Drain() {
  absl::Duration timeout = absl::ZeroDuration();
  for (const auto& session : sessions_) timeout = std::max(timeout, session->timeout());
  world_.Wait([this] { return !has_open_sessions(); }, world_.Now() + timeout);
  const std::vector<std::shared_ptr<vfd::Session>> sessions(sessions_);
  for (auto one = sessions.rbegin(); one != sessions.rend(); ++one) (*one)->GiveUp();
  for (const auto& session : sessions_) session->LeaveStream();
}

}  // namespace h5mirror::sim
