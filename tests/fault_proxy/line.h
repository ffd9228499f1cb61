// One direction of a connection that passes through the proxy.
#ifndef H5MIRROR_TESTS_FAULT_PROXY_LINE_H_
#define H5MIRROR_TESTS_FAULT_PROXY_LINE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace h5mirror::fault_proxy {

using SteadyTime = std::chrono::steady_clock::time_point;

// A pipe; both ends close with it.
class Pipe {
 public:
  // Null: the process has no file descriptors left.
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

// The conditions for all lines of a proxy; they may change at any time between two calls.
struct Weather {
  std::chrono::nanoseconds delay{0};  // each way
  uint64_t rate_bytes_per_s = 0;      // of each line; 0: no limit
  // True: nothing moves. Later all bytes go on from where they were, like in a network that resends
  // lost packets.
  bool held = false;
};

// Moves bytes from one socket to another, each `delay` after it came in, in order. Bytes wait
// in pipes and move by splice(2): they are never copied into this process, so that the proxy
// takes little CPU from what it measures, and without a rate it has no limit of its own.
//
// Not thread-safe. Borrows both sockets, which are non-blocking, and the weather; they must
// outlive it.
class Line {
 public:
  Line(int from_fd, int to_fd, const Weather& weather)
      : from_fd_(from_fd), to_fd_(to_fd), weather_(weather) {}

  // Takes the sender's bytes. False: the sender is gone, or the connection broke.
  bool Receive(SteadyTime now);
  // Passes on the bytes that have waited long enough. False: the receiver is gone.
  bool Deliver(SteadyTime now);

  // From here on all bytes of the sender vanish, also those that wait, and the end of its stream.
  void Vanish();
  // The sender is gone; it is not read any more.
  void End() { ended_ = true; }
  // The line takes no more than `limit_bytes` in all.
  void set_limit(uint64_t limit_bytes) { limit_bytes_ = limit_bytes; }
  // Appends the sender's bytes to `recording`, which must outlive it, up to kMaxRecordedBytes.
  void Record(std::string* recording) { recording_ = recording; }

  // When Deliver() has work to do; max() while nothing waits or the receiver is full.
  SteadyTime NextDelivery() const;
  // The receiver takes bytes again.
  void ReceiverReady() { receiver_full_ = false; }
  bool receiver_full() const { return receiver_full_; }
  // False while so many bytes wait that more would only take memory.
  bool wants_input() const { return !ended_ && !weather_.held && RoomBytes() > 0; }
  // All received bytes were delivered, the end included.
  bool done() const { return end_delivered_; }
  bool ended() const { return ended_; }
  // All bytes up to the limit were received and delivered.
  bool spent() const { return received_bytes_ >= limit_bytes_ && chunks_.empty(); }

  uint64_t delivered_bytes() const { return delivered_bytes_; }

  static constexpr size_t kMaxRecordedBytes = 64 << 20;

 private:
  // At most this many pipes of at most 1 MiB each: far more than 1 ms of loopback holds.
  static constexpr size_t kMaxChunks = 256;

  struct Chunk {
    SteadyTime due;
    std::unique_ptr<Pipe> pipe;  // null: the sender's end of stream
    size_t size_bytes = 0;
  };

  std::unique_ptr<Pipe> TakePipe();
  size_t RoomBytes() const;
  bool Discard();
  void AppendToRecording(const Pipe& pipe, size_t size_bytes);
  void NoteSent(SteadyTime now, size_t size_bytes);

  const int from_fd_;
  const int to_fd_;
  const Weather& weather_;
  std::string* recording_ = nullptr;
  std::deque<Chunk> chunks_;
  std::vector<std::unique_ptr<Pipe>> idle_pipes_;
  SteadyTime free_time_ = SteadyTime::min();  // when the rate allows the next byte
  size_t waiting_bytes_ = 0;
  uint64_t limit_bytes_ = std::numeric_limits<uint64_t>::max();
  uint64_t received_bytes_ = 0;
  uint64_t delivered_bytes_ = 0;
  bool vanishing_ = false;
  bool ended_ = false;
  bool end_delivered_ = false;
  bool receiver_full_ = false;
};

}  // namespace h5mirror::fault_proxy

#endif  // H5MIRROR_TESTS_FAULT_PROXY_LINE_H_
