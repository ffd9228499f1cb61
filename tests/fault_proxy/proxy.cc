#include "tests/fault_proxy/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "tests/fault_proxy/control.h"

namespace h5mirror::fault_proxy {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

sockaddr_in ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (colon == std::string::npos ||
      ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("'" + text + "' is not IPV4:PORT");
  }
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(colon + 1))));
  return address;
}

Proxy::Proxy(const sockaddr_in& to, std::chrono::nanoseconds delay) : to_(to) {
  weather_.delay = delay;
  // By default timers are up to 50 us late, a tenth of the delay.
  ::prctl(PR_SET_TIMERSLACK, 1);
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) Fail("epoll_create1");
  Listen();
  WatchSigterm();
}

Proxy::~Proxy() {
  for (const int fd : {epoll_fd_, listen_fd_, signal_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Proxy::Listen() {
  listen_fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = ParseAddress("127.0.0.1:0");
  socklen_t size = sizeof(address);
  if (::bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listen_fd_, 64) != 0 ||
      ::getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Fail("listen on 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  Watch(listen_fd_, EPOLLIN);
}

void Proxy::WatchSigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  Watch(signal_fd_, EPOLLIN);
}

void Proxy::Watch(int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) Fail("epoll_ctl");
}

void Proxy::Run(bool listen_to_control) {
  if (listen_to_control) Watch(STDIN_FILENO, EPOLLIN);
  while (!stopped_) {
    WaitForEvents();
    WorkAll();
  }
}

void Proxy::WaitForEvents() {
  epoll_event events[64];
  const timespec wait = UntilNextDelivery();
  const bool forever = wait.tv_sec < 0;
  const int count = ::epoll_pwait2(epoll_fd_, events, 64, forever ? nullptr : &wait, nullptr);
  if (count < 0 && errno != EINTR) Fail("epoll_pwait2");
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == listen_fd_) Accept();
    if (fd == signal_fd_) stopped_ = true;
    if (fd == STDIN_FILENO) ReadControl();
    if ((events[i].events & EPOLLOUT) != 0) Writable(fd);
  }
}

// tv_sec -1: nothing waits.
timespec Proxy::UntilNextDelivery() const {
  SteadyTime next = SteadyTime::max();
  for (const auto& connection : connections_) next = std::min(next, connection->NextDelivery());
  if (next == SteadyTime::max()) return {-1, 0};
  const auto left = next - std::chrono::steady_clock::now();
  const int64_t left_ns =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
  return {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
}

int Proxy::ConnectToServer() const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_)) != 0) {
    std::fprintf(stderr, "fault_proxy: server refuses: %s\n", std::strerror(errno));
    ::close(fd);
    return -1;
  }
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  SetNoDelay(fd);
  return fd;
}

void Proxy::Accept() {
  const int client_fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client_fd < 0) return;
  const int server_fd = mode_ == Mode::kRefuse ? -1 : ConnectToServer();
  if (server_fd < 0) return CloseWithReset(client_fd);
  SetNoDelay(client_fd);
  auto connection = std::make_unique<Connection>(client_fd, server_fd, weather_);
  if (cut_after_bytes_) connection->set_limit(*cut_after_bytes_);
  if (recording_) connection->Record(&recordings_.emplace_back());
  if (mode_ == Mode::kDrop) connection->Vanish();
  connections_.push_back(std::move(connection));
  ++totals_.connections;
  // Edge-triggered: WorkAll() reads and writes until the kernel says no.
  Watch(client_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  Watch(server_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void Proxy::ReadControl() {
  std::array<char, 4096> buffer;
  const ssize_t size_bytes = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size_bytes <= 0) {
    stopped_ = true;
    return;
  }
  control_.append(buffer.data(), size_bytes);
  for (size_t end = control_.find('\n'); end != std::string::npos; end = control_.find('\n')) {
    std::cout << Obey(control_.substr(0, end), *this) << std::endl;
    control_.erase(0, end + 1);
  }
}

void Proxy::SetMode(Mode mode) {
  mode_ = mode;
  weather_.held = mode == Mode::kHold;
  if (mode != Mode::kDrop) return;
  for (const auto& connection : connections_) connection->Vanish();
}

void Proxy::Reset() {
  for (const auto& connection : connections_) connection->Reset();
}

void Proxy::HalfOpen(Side side) {
  for (const auto& connection : connections_) connection->HalfOpen(side);
}

void Proxy::Play(size_t index) {
  if (index >= recordings_.size()) {
    throw std::out_of_range("there are " + std::to_string(recordings_.size()) + " recordings");
  }
  const int fd = ConnectToServer();
  if (fd < 0) throw std::runtime_error("the server refuses");
  replays_.push_back(std::make_unique<Replay>(fd, *std::next(recordings_.begin(), index)));
  Watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void Proxy::Writable(int fd) {
  for (const auto& connection : connections_) {
    if (connection->Has(fd)) connection->Writable(fd);
  }
}

void Proxy::WorkAll() {
  connections_.remove_if([&](const auto& connection) { return !connection->Work(totals_); });
  replays_.remove_if([](const auto& replay) { return !replay->Work(); });
}

}  // namespace h5mirror::fault_proxy
