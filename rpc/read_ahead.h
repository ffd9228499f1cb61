// Raw data that is read one after the other, fetched ahead of who reads it: one call that stays
// open from read to read, so that none of them waits for a round trip.
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
  // Also of a call that is yet to begin.
  void Cancel();
  // Around a call: `cancel` may run, at once too, until Detach() returns.
  void Attach(std::function<void()> cancel);
  void Detach();

 private:
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

// Reads [offset, offset + length) of one version in a single attempt; calls the sink in order of
// offset, from one thread, which it may hold up. What the sink is not given are zeros.
using StreamReader = std::function<absl::Status(
    uint64_t offset, uint64_t length,
    absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)> sink,
    CallCanceller& canceller)>;

// A thread reads the call into a ring and pauses while that holds as much as was taken from it so
// far; when nobody takes anything for 100 ms the call ends, so that no thread of a server waits
// for a reader that does other things. Failures are not told: what is not there is to be fetched
// by other means, which fail by themselves.
//
// Take() is for one thread at a time.
class ReadAhead {
 public:
  // Of [begin, end), in a ring of `ring_bytes`; at first at most `first_bytes` ahead.
  // Null: there is no thread to be had.
  static std::unique_ptr<ReadAhead> Start(StreamReader reader, uint64_t begin, uint64_t end,
                                          uint64_t ring_bytes, uint64_t first_bytes);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Whether what lies at `offset` is there or about to come.
  bool Covers(uint64_t offset);
  // Fills `out` from its beginning with the bytes at `offset`, which Covers(), and forgets them and
  // all before; waits for them. Returns how many there were: less than all where the call has
  // ended.
  uint64_t Take(uint64_t offset, absl::Span<char> out);
  // Where Take() would go on without a gap.
  uint64_t next() const { return tail_; }
  // Whether any byte ever came.
  bool came() const { return came_; }

  // pthread_atfork, before all locks that a StreamReader takes. All calls end, their threads are
  // joined; none begins until AfterFork(), in parent and child.
  static void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  ReadAhead(StreamReader reader, uint64_t begin, uint64_t end, uint64_t ring_bytes,
            uint64_t first_bytes);
  void Run();
  // Null: zeros.
  static void Copy(char* to, const char* from, uint64_t length);
  absl::Status Put(const char* data, uint64_t length);
  // From the tail on.
  void Forget(uint64_t length) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || head_ - tail_ < limit_bytes_;
  }
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return done_ || head_ > tail_; }
  // Or something was on its way to the ring when the wait began.
  bool IsFilled() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return target_.empty() || HasNews(); }
  void Stop();

  const StreamReader reader_;
  const uint64_t end_;
  const uint64_t ring_bytes_;
  const std::unique_ptr<char[]> ring_;  // the byte at `offset` is at offset % ring_bytes_
  CallCanceller canceller_;

  absl::Mutex mutex_;
  // [tail_, head_) is in the ring. Each is written by one thread, under the mutex, and read by that
  // one without: the head by who puts; the tail by who takes, unless he waits for `target_`.
  uint64_t tail_;
  uint64_t head_;
  uint64_t limit_bytes_;
  bool came_ = false;  // of who takes
  // Of who waits: while the ring is empty what comes goes there, past the ring.
  absl::Span<char> target_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_READ_AHEAD_H_
