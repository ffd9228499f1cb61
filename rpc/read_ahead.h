// Fetches raw data ahead of a reader that reads it in order: one call stays open from read to read,
// so that no read waits for a round trip.
#ifndef H5MIRROR_RPC_READ_AHEAD_H_
#define H5MIRROR_RPC_READ_AHEAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace h5mirror::rpc {

// Ends a call from another thread. Thread-safe.
class CallCanceller {
 public:
  // Also ends a call that has yet to begin.
  void Cancel();
  // Around a call. `cancel` may run at any time, also at once, until Detach() has returned.
  void Attach(std::function<void()> cancel);
  void Detach();

 private:
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

// Reads [offset, offset + length) of one version in a single attempt. Calls the sink in order of
// offset, from one thread. The sink may block that thread. Bytes that the sink does not get are
// zeros.
using StreamReader = std::function<absl::Status(
    uint64_t offset, uint64_t length,
    absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)> sink,
    CallCanceller& canceller)>;

// A thread reads the call into a ring. It pauses while the ring holds as much as was taken so far.
// If the reader takes nothing for 100 ms the call ends, so that no thread of a server waits for a
// reader that does other things. Failures are not reported: the reader fetches missing bytes by
// another call, which reports its own.
//
// Take() is for one thread at a time.
class ReadAhead {
 public:
  // Reads [begin, end) into a ring of `ring_bytes`, at first at most `first_bytes` ahead. Null: no
  // thread can be started.
  static std::unique_ptr<ReadAhead> Start(StreamReader reader, uint64_t begin, uint64_t end,
                                          uint64_t ring_bytes, uint64_t first_bytes);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // True: the bytes at `offset` are in the ring, or come next.
  bool Covers(uint64_t offset);
  // Waits for the bytes at `offset`, for which Covers() must be true, and fills `out` from its
  // beginning. Forgets them and all bytes before. Returns how many there were: fewer than asked
  // for, if the call has ended.
  uint64_t Take(uint64_t offset, absl::Span<char> out);
  // The offset at which Take() goes on without a gap.
  uint64_t next() const { return tail_; }
  // True: a byte has come.
  bool came() const { return came_; }

  // pthread_atfork, before all locks that a StreamReader takes. Ends all calls and joins their
  // threads. None begins until AfterFork(), in parent and child.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  ReadAhead(StreamReader reader, uint64_t begin, uint64_t end, uint64_t ring_bytes,
            uint64_t first_bytes);
  void Run();
  // Copies `length` bytes; `from` null: zeros.
  static void Copy(char* to, const char* from, uint64_t length);
  absl::Status Put(const char* data, uint64_t length);
  // Forgets `length` bytes from the tail on.
  void Forget(uint64_t length) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || head_ - tail_ < limit_bytes_;
  }
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return done_ || head_ > tail_; }
  // True: the target is filled, or bytes were on their way to the ring when the wait began.
  bool IsFilled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return target_.empty() || HasNews(); }
  void Stop();

  const StreamReader reader_;
  const uint64_t end_;
  const uint64_t ring_bytes_;
  const std::unique_ptr<char[]> ring_;  // the byte at `offset` is at offset % ring_bytes_
  CallCanceller canceller_;

  absl::Mutex mutex_;
  // [tail_, head_) is in the ring. Each is written by one thread, under the mutex, and read by the
  // same thread without it: head_ by the thread that fills the ring, tail_ by the one in Take(),
  // unless that waits for `target_`.
  uint64_t tail_;
  uint64_t head_;
  uint64_t limit_bytes_;
  bool came_ = false;  // of the thread in Take()
  // The buffer of a Take() that waits: while the ring is empty, bytes go there directly.
  absl::Span<char> target_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_READ_AHEAD_H_
