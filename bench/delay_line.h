// One direction of a delayed connection.
#ifndef H5MIRROR_BENCH_DELAY_LINE_H_
#define H5MIRROR_BENCH_DELAY_LINE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace h5mirror::bench {

using SteadyTime = std::chrono::steady_clock::time_point;

// A pipe; both ends close with it.
class Pipe {
 public:
  // Null where the process has no file descriptors left.
  static std::unique_ptr<Pipe> Make();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_fd() const { return fds_[0]; }
  int write_fd() const { return fds_[1]; }

 private:
  Pipe() = default;
  int fds_[2] = {-1, -1};
};

// Moves bytes from one socket to another, each `delay` after it came in, in order. Bytes wait
// in pipes and move by splice(2): they are never copied into this process, so that the proxy
// takes little CPU from what it measures, and it has no rate limit of its own.
//
// Not thread-safe. Borrows both sockets, which are non-blocking and must outlive it.
class DelayLine {
 public:
  DelayLine(int from_fd, int to_fd, std::chrono::nanoseconds delay)
      : from_fd_(from_fd), to_fd_(to_fd), delay_(delay) {}

  // Takes what the sender has sent. False: the sender is gone, or the connection broke.
  bool Receive(SteadyTime now);
  // Hands on what has waited long enough. False: the receiver is gone.
  bool Deliver(SteadyTime now);

  // When Deliver() has something to do; max() while nothing waits or the receiver is full.
  SteadyTime NextDelivery() const;
  // The receiver takes bytes again.
  void ReceiverReady() { receiver_full_ = false; }
  bool receiver_full() const { return receiver_full_; }
  // False while so much waits that reading on would only take memory.
  bool wants_input() const { return !ended_ && chunks_.size() < kMaxChunks; }
  // All that was received was delivered, the end included.
  bool done() const { return end_delivered_; }

  uint64_t delivered_bytes() const { return delivered_bytes_; }

 private:
  // At most this many pipes of at most 1 MiB each: far more than 1 ms of loopback holds.
  static constexpr size_t kMaxChunks = 256;

  struct Chunk {
    SteadyTime due;
    std::unique_ptr<Pipe> pipe;  // null: the sender's end of stream
    size_t size_bytes = 0;
  };

  std::unique_ptr<Pipe> TakePipe();

  const int from_fd_;
  const int to_fd_;
  const std::chrono::nanoseconds delay_;
  std::deque<Chunk> chunks_;
  std::vector<std::unique_ptr<Pipe>> idle_pipes_;
  bool ended_ = false;
  bool end_delivered_ = false;
  bool receiver_full_ = false;
  uint64_t delivered_bytes_ = 0;
};

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_DELAY_LINE_H_
