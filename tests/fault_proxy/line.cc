#include "tests/fault_proxy/line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace h5mirror::fault_proxy {
namespace {

constexpr size_t kPipeBytes = 1 << 20;
constexpr unsigned kSpliceFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

// A line with a rate sends at most this part of a second's bytes at once, and holds a quarter of a
// second's: a proxy that took in more would act like a network that buffers megabytes.
constexpr int kBurstsPerSecond = 50;
constexpr size_t kMinBurstBytes = 512;
constexpr size_t kMinQueueBytes = 64 << 10;

size_t BurstBytes(uint64_t rate_bytes_per_s) {
  return std::max<size_t>(kMinBurstBytes, rate_bytes_per_s / kBurstsPerSecond);
}

}  // namespace

std::unique_ptr<Pipe> Pipe::Make() {
  std::unique_ptr<Pipe> pipe(new Pipe);
  if (::pipe2(pipe->fds_, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  // If the system allows less, smaller chunks will do.
  ::fcntl(pipe->fds_[0], F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

Pipe::~Pipe() {
  for (const int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
}

std::unique_ptr<Pipe> Line::TakePipe() {
  if (idle_pipes_.empty()) return Pipe::Make();
  std::unique_ptr<Pipe> pipe = std::move(idle_pipes_.back());
  idle_pipes_.pop_back();
  return pipe;
}

size_t Line::RoomBytes() const {
  if (chunks_.size() >= kMaxChunks) return 0;
  const uint64_t room_bytes = std::min<uint64_t>(kPipeBytes, limit_bytes_ - received_bytes_);
  if (weather_.rate_bytes_per_s == 0) return room_bytes;
  const size_t queue_bytes = std::max<size_t>(kMinQueueBytes, weather_.rate_bytes_per_s / 4);
  return waiting_bytes_ >= queue_bytes ? 0 : std::min(room_bytes, queue_bytes - waiting_bytes_);
}

bool Line::Receive(SteadyTime now) {
  if (vanishing_) return Discard();
  while (wants_input()) {
    std::unique_ptr<Pipe> pipe = TakePipe();
    if (pipe == nullptr) return false;
    const ssize_t size_bytes =
        ::splice(from_fd_, nullptr, pipe->write_fd(), nullptr, RoomBytes(), kSpliceFlags);
    if (size_bytes < 0) {
      idle_pipes_.push_back(std::move(pipe));
      return errno == EAGAIN || errno == EINTR;
    }
    if (size_bytes == 0) {
      ended_ = true;
      chunks_.push_back({now + weather_.delay, nullptr, 0});
      return true;
    }
    AppendToRecording(*pipe, size_bytes);
    received_bytes_ += size_bytes;
    waiting_bytes_ += size_bytes;
    chunks_.push_back({now + weather_.delay, std::move(pipe), static_cast<size_t>(size_bytes)});
  }
  return true;
}

bool Line::Deliver(SteadyTime now) {
  while (NextDelivery() <= now) {
    Chunk& chunk = chunks_.front();
    if (chunk.pipe == nullptr) {
      end_delivered_ = true;
      ::shutdown(to_fd_, SHUT_WR);
      chunks_.pop_front();
      continue;
    }
    const uint64_t rate = weather_.rate_bytes_per_s;
    const size_t part_bytes =
        rate == 0 ? chunk.size_bytes : std::min(chunk.size_bytes, BurstBytes(rate));
    const ssize_t size_bytes =
        ::splice(chunk.pipe->read_fd(), nullptr, to_fd_, nullptr, part_bytes, kSpliceFlags);
    if (size_bytes < 0) {
      receiver_full_ = errno == EAGAIN;
      return receiver_full_ || errno == EINTR;
    }
    NoteSent(now, size_bytes);
    chunk.size_bytes -= size_bytes;
    if (chunk.size_bytes == 0) {
      idle_pipes_.push_back(std::move(chunk.pipe));
      chunks_.pop_front();
    }
  }
  return true;
}

void Line::NoteSent(SteadyTime now, size_t size_bytes) {
  delivered_bytes_ += size_bytes;
  waiting_bytes_ -= size_bytes;
  if (weather_.rate_bytes_per_s == 0) return;
  const auto took =
      std::chrono::nanoseconds(static_cast<int64_t>(1e9 * size_bytes / weather_.rate_bytes_per_s));
  // A delay of one burst is made up for, a longer one is not: an idle line saves up no bandwidth.
  const auto burst = std::chrono::nanoseconds(std::chrono::seconds(1)) / kBurstsPerSecond;
  free_time_ = std::max(free_time_, now - burst) + took;
}

void Line::AppendToRecording(const Pipe& pipe, size_t size_bytes) {
  if (recording_ == nullptr || recording_->size() >= kMaxRecordedBytes) return;
  const std::unique_ptr<Pipe> copy = Pipe::Make();
  if (copy == nullptr) return;
  // tee(2) leaves the bytes in `pipe`; a pipe of the same size takes all of them.
  const ssize_t copied_bytes =
      ::tee(pipe.read_fd(), copy->write_fd(), size_bytes, SPLICE_F_NONBLOCK);
  if (copied_bytes <= 0) return;
  const size_t before = recording_->size();
  recording_->resize(before + copied_bytes);
  const ssize_t read_bytes = ::read(copy->read_fd(), recording_->data() + before, copied_bytes);
  recording_->resize(before + std::max<ssize_t>(0, read_bytes));
}

void Line::Vanish() {
  vanishing_ = true;
  chunks_.clear();
  waiting_bytes_ = 0;
}

bool Line::Discard() {
  std::array<char, 1 << 16> buffer;
  while (!ended_) {
    const ssize_t size_bytes = ::read(from_fd_, buffer.data(), buffer.size());
    if (size_bytes < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    ended_ = size_bytes <= 0;
  }
  return true;
}

SteadyTime Line::NextDelivery() const {
  if (chunks_.empty() || receiver_full_ || weather_.held) return SteadyTime::max();
  return std::max(chunks_.front().due, free_time_);
}

}  // namespace h5mirror::fault_proxy
