#include "bench/delay_line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace h5mirror::bench {
namespace {

constexpr size_t kPipeBytes = 1 << 20;
constexpr unsigned kSpliceFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

}  // namespace

std::unique_ptr<Pipe> Pipe::Make() {
  std::unique_ptr<Pipe> pipe(new Pipe);
  if (::pipe2(pipe->fds_, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  // Where the system allows less, smaller chunks do as well.
  ::fcntl(pipe->fds_[0], F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

Pipe::~Pipe() {
  for (const int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
}

std::unique_ptr<Pipe> DelayLine::TakePipe() {
  if (idle_pipes_.empty()) return Pipe::Make();
  std::unique_ptr<Pipe> pipe = std::move(idle_pipes_.back());
  idle_pipes_.pop_back();
  return pipe;
}

bool DelayLine::Receive(SteadyTime now) {
  while (wants_input()) {
    std::unique_ptr<Pipe> pipe = TakePipe();
    if (pipe == nullptr) return false;
    const ssize_t size_bytes =
        ::splice(from_fd_, nullptr, pipe->write_fd(), nullptr, kPipeBytes, kSpliceFlags);
    if (size_bytes < 0) {
      idle_pipes_.push_back(std::move(pipe));
      return errno == EAGAIN || errno == EINTR;
    }
    if (size_bytes == 0) {
      ended_ = true;
      chunks_.push_back({now + delay_, nullptr, 0});
      return true;
    }
    chunks_.push_back({now + delay_, std::move(pipe), static_cast<size_t>(size_bytes)});
  }
  return true;
}

bool DelayLine::Deliver(SteadyTime now) {
  while (!chunks_.empty() && !receiver_full_ && chunks_.front().due <= now) {
    Chunk& chunk = chunks_.front();
    if (chunk.pipe == nullptr) {
      end_delivered_ = true;
      ::shutdown(to_fd_, SHUT_WR);
      chunks_.pop_front();
      continue;
    }
    const ssize_t size_bytes =
        ::splice(chunk.pipe->read_fd(), nullptr, to_fd_, nullptr, chunk.size_bytes, kSpliceFlags);
    if (size_bytes < 0) {
      receiver_full_ = errno == EAGAIN;
      return receiver_full_ || errno == EINTR;
    }
    delivered_bytes_ += size_bytes;
    chunk.size_bytes -= size_bytes;
    if (chunk.size_bytes == 0) {
      idle_pipes_.push_back(std::move(chunk.pipe));
      chunks_.pop_front();
    }
  }
  return true;
}

SteadyTime DelayLine::NextDelivery() const {
  return chunks_.empty() || receiver_full_ ? SteadyTime::max() : chunks_.front().due;
}

}  // namespace h5mirror::bench
