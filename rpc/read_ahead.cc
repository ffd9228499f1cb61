#include "rpc/read_ahead.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "base/signal_block.h"
#include "base/status_macros.h"

namespace h5mirror::rpc {
namespace {

// A call that nobody takes anything from.
constexpr absl::Duration kIdle = absl::Milliseconds(100);
// A reader that skips at most so much goes on in the same stream.
constexpr uint64_t kSkipBytes = 1 << 20;

// All objects whose thread runs.
struct Running {
  absl::Mutex mutex;
  std::set<ReadAhead*> all ABSL_GUARDED_BY(mutex);
};

// Readers may be closed as late as HDF5's atexit.
Running& AllRunning() {
  static auto* const running = new Running;
  return *running;
}

// In a stranger's process: its signals are for its own threads.
std::thread StartThread(std::function<void()> body) {
  const SignalBlock block;
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
    pthread_setname_np(thread.native_handle(), "h5m-ahead");
  } catch (const std::system_error&) {
  }
  return thread;
}

}  // namespace

void CallCanceller::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (cancel_ != nullptr) cancel_();
}

void CallCanceller::Attach(std::function<void()> cancel) {
  absl::MutexLock lock(&mutex_);
  cancel_ = std::move(cancel);
  if (cancelled_) cancel_();
}

void CallCanceller::Detach() {
  absl::MutexLock lock(&mutex_);
  cancel_ = nullptr;
}

ReadAhead::ReadAhead(StreamReader reader, uint64_t begin, uint64_t end, uint64_t ring_bytes,
                     uint64_t first_bytes)
    : reader_(std::move(reader)),
      end_(end),
      ring_bytes_(ring_bytes),
      ring_(new char[ring_bytes]),
      tail_(begin),
      head_(begin),
      limit_bytes_(std::min(first_bytes, ring_bytes)) {}

std::unique_ptr<ReadAhead> ReadAhead::Start(StreamReader reader, uint64_t begin, uint64_t end,
                                            uint64_t ring_bytes, uint64_t first_bytes) {
  auto ahead =
      absl::WrapUnique(new ReadAhead(std::move(reader), begin, end, ring_bytes, first_bytes));
  Running& running = AllRunning();
  absl::MutexLock lock(&running.mutex);
  ahead->thread_ = StartThread([self = ahead.get()] { self->Run(); });
  if (!ahead->thread_.joinable()) return nullptr;
  running.all.insert(ahead.get());
  return ahead;
}

ReadAhead::~ReadAhead() {
  {
    Running& running = AllRunning();
    absl::MutexLock lock(&running.mutex);
    running.all.erase(this);
  }
  Stop();
}

void ReadAhead::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  canceller_.Cancel();
  thread_.join();
}

void ReadAhead::PrepareFork() {
  Running& running = AllRunning();
  running.mutex.Lock();
  for (ReadAhead* const ahead : running.all) ahead->Stop();
  running.all.clear();
}

void ReadAhead::AfterFork() { AllRunning().mutex.Unlock(); }

void ReadAhead::Run() {
  const auto take = [this](uint64_t offset, std::string_view data) -> absl::Status {
    if (offset < head_ || offset > end_ || data.size() > end_ - offset) {
      return absl::InternalError("the server sent bytes that were not asked for");
    }
    H5M_RETURN_IF_ERROR(Put(nullptr, offset - head_));
    return Put(data.data(), data.size());
  };
  absl::Status status = reader_(head_, end_ - head_, take, canceller_);
  if (status.ok()) status = Put(nullptr, end_ - head_);
  absl::MutexLock lock(&mutex_);
  done_ = true;
}

void ReadAhead::Copy(char* to, const char* from, uint64_t length) {
  if (from == nullptr) {
    std::memset(to, 0, length);
  } else {
    std::memcpy(to, from, length);
  }
}

absl::Status ReadAhead::Put(const char* data, uint64_t length) {
  while (length > 0) {
    uint64_t room;
    absl::Span<char> target;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(this, &ReadAhead::HasRoom), kIdle);
      if (stopping_ || !HasRoom()) return absl::CancelledError("nobody reads on");
      room = limit_bytes_ - (head_ - tail_);
      if (head_ == tail_) target = target_;
    }
    const uint64_t at = head_ % ring_bytes_;
    const uint64_t part = target.empty() ? std::min({length, room, ring_bytes_ - at})
                                         : std::min<uint64_t>(length, target.size());
    Copy(target.empty() ? ring_.get() + at : target.data(), data, part);
    if (data != nullptr) data += part;
    length -= part;
    absl::MutexLock lock(&mutex_);
    head_ += part;
    if (target.empty()) continue;
    target_.remove_prefix(part);
    Forget(part);
  }
  return absl::OkStatus();
}

void ReadAhead::Forget(uint64_t length) {
  tail_ += length;
  limit_bytes_ = std::min(ring_bytes_, limit_bytes_ + length);
}

bool ReadAhead::Covers(uint64_t offset) {
  absl::MutexLock lock(&mutex_);
  if (offset < tail_ || offset >= end_) return false;
  return offset < head_ || (!done_ && offset - head_ <= kSkipBytes);
}

uint64_t ReadAhead::Take(uint64_t offset, absl::Span<char> out) {
  const uint64_t wanted = out.size();
  while (!out.empty()) {
    uint64_t there;
    {
      absl::MutexLock lock(&mutex_);
      if (head_ == tail_ && tail_ >= offset) {
        target_ = out;
        mutex_.Await(absl::Condition(this, &ReadAhead::IsFilled));
        came_ = came_ || target_.size() < out.size();
        out = std::exchange(target_, {});
        if (done_ && head_ == tail_) break;
        continue;
      }
      mutex_.Await(absl::Condition(this, &ReadAhead::HasNews));
      there = head_ - tail_;
    }
    if (there == 0) break;
    came_ = true;
    uint64_t part;
    if (tail_ < offset) {
      part = std::min(there, offset - tail_);
    } else {
      const uint64_t at = tail_ % ring_bytes_;
      part = std::min<uint64_t>({there, out.size(), ring_bytes_ - at});
      std::memcpy(out.data(), ring_.get() + at, part);
      out.remove_prefix(part);
    }
    absl::MutexLock lock(&mutex_);
    Forget(part);
  }
  return wanted - out.size();
}

}  // namespace h5mirror::rpc
