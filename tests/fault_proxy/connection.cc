#include "tests/fault_proxy/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace h5mirror::fault_proxy {

void CloseWithReset(int fd) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(fd);
}

Connection::~Connection() {
  for (const int fd : {client_fd_, server_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Connection::set_limit(uint64_t limit_bytes) {
  to_server_.set_limit(limit_bytes);
  has_limit_ = true;
}

bool Connection::Work(Totals& totals) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const uint64_t before_to_server = to_server_.delivered_bytes();
  const uint64_t before_to_client = to_client_.delivered_bytes();
  // Delivery first: it makes room that Receive() may need, and no event would announce that room.
  const bool ok = to_server_.Deliver(now) && to_client_.Deliver(now) && to_server_.Receive(now) &&
                  to_client_.Receive(now);
  Count(to_server_.delivered_bytes() - before_to_server,
        to_client_.delivered_bytes() - before_to_client, totals);
  if (has_limit_ && to_server_.spent()) {
    ++totals.cuts;
    Reset();
  }
  return ok && !Over();
}

bool Connection::Over() const {
  if (client_fd_ < 0 && server_fd_ < 0) return true;
  if (vanished_) return to_server_.ended() && to_client_.ended();
  return to_server_.done() && to_client_.done();
}

void Connection::Vanish() {
  vanished_ = true;
  to_server_.Vanish();
  to_client_.Vanish();
}

void Connection::HalfOpen(Side side) {
  Vanish();
  int& fd = side == Side::kClient ? client_fd_ : server_fd_;
  if (fd < 0) return;
  (side == Side::kClient ? to_server_ : to_client_).End();
  CloseWithReset(std::exchange(fd, -1));
}

void Connection::Reset() {
  HalfOpen(Side::kClient);
  HalfOpen(Side::kServer);
}

void Connection::Count(uint64_t to_server_bytes, uint64_t to_client_bytes, Totals& totals) {
  if (to_server_bytes > 0 && !server_was_last_) ++totals.turns;
  if (to_server_bytes > 0) server_was_last_ = true;
  if (to_client_bytes > 0) server_was_last_ = false;
  totals.to_server_bytes += to_server_bytes;
  totals.to_client_bytes += to_client_bytes;
}

Replay::~Replay() { ::close(server_fd_); }

bool Replay::Work() {
  while (sent_bytes_ < bytes_.size()) {
    const ssize_t size_bytes =
        ::send(server_fd_, bytes_.data() + sent_bytes_, bytes_.size() - sent_bytes_, MSG_NOSIGNAL);
    if (size_bytes < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (size_bytes < 0) break;
    sent_bytes_ += size_bytes;
  }
  std::array<char, 1 << 16> answers;
  while (true) {
    const ssize_t size_bytes = ::read(server_fd_, answers.data(), answers.size());
    if (size_bytes < 0) return errno == EAGAIN || errno == EINTR;
    if (size_bytes == 0) return false;
  }
}

}  // namespace h5mirror::fault_proxy
