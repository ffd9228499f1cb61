// bench_delay_proxy: a TCP proxy that makes a loopback connection as slow to answer as a real one.
//
//   bench_delay_proxy --to 127.0.0.1:7447 --port-file FILE --delay-us 500
//
// Each byte arrives `delay` late in each direction: a round trip takes twice that more, and the
// throughput is the machine's. On SIGTERM it ends and prints what it carried as JSON:
// connections, bytes each way, and `turns`, how often the direction of traffic changed from the
// client to the server (a chain of requests that wait for each other's answers turns once each).
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>

#include "CLI/CLI.hpp"
#include "bench/delay_line.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

struct Totals {
  uint64_t connections = 0;
  uint64_t to_server_bytes = 0;
  uint64_t to_client_bytes = 0;
  uint64_t turns = 0;
};

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

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

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// A client, the server, and the two lines between them.
class Connection {
 public:
  Connection(int client_fd, int server_fd, std::chrono::nanoseconds delay)
      : client_fd_(client_fd),
        server_fd_(server_fd),
        to_server_(client_fd, server_fd, delay),
        to_client_(server_fd, client_fd, delay) {}

  ~Connection() {
    ::close(client_fd_);
    ::close(server_fd_);
  }

  // One round of everything that can be done now. False: the connection is over.
  bool Work(Totals& totals) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const uint64_t before_to_server = to_server_.delivered_bytes();
    const uint64_t before_to_client = to_client_.delivered_bytes();
    // Delivery first: it makes the room that Receive() may lack, and no event would tell.
    const bool ok = to_server_.Deliver(now) && to_client_.Deliver(now) && to_server_.Receive(now) &&
                    to_client_.Receive(now);
    Count(to_server_.delivered_bytes() - before_to_server,
          to_client_.delivered_bytes() - before_to_client, totals);
    return ok && !(to_server_.done() && to_client_.done());
  }

  void Writable(int fd) { (fd == server_fd_ ? to_server_ : to_client_).ReceiverReady(); }

  SteadyTime NextDelivery() const {
    return std::min(to_server_.NextDelivery(), to_client_.NextDelivery());
  }

  int client_fd() const { return client_fd_; }
  int server_fd() const { return server_fd_; }

 private:
  void Count(uint64_t to_server_bytes, uint64_t to_client_bytes, Totals& totals) {
    if (to_server_bytes > 0 && !server_was_last_) ++totals.turns;
    if (to_server_bytes > 0) server_was_last_ = true;
    if (to_client_bytes > 0) server_was_last_ = false;
    totals.to_server_bytes += to_server_bytes;
    totals.to_client_bytes += to_client_bytes;
  }

  const int client_fd_;
  const int server_fd_;
  DelayLine to_server_;
  DelayLine to_client_;
  bool server_was_last_ = false;
};

class Proxy {
 public:
  Proxy(const sockaddr_in& to, std::chrono::nanoseconds delay) : to_(to), delay_(delay) {
    // Timers that are 50 us late, the default, would be a tenth of the delay.
    ::prctl(PR_SET_TIMERSLACK, 1);
    epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd_ < 0) Fail("epoll_create1");
    Listen();
    WatchSigterm();
  }

  // Runs until SIGTERM.
  Totals Run() {
    while (!stopped_) {
      WaitForEvents();
      WorkAll();
    }
    return totals_;
  }

  uint16_t port() const { return port_; }

 private:
  void Listen() {
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

  void WatchSigterm() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC);
    Watch(signal_fd_, EPOLLIN);
  }

  void Watch(int fd, uint32_t events) {
    epoll_event event = {};
    event.events = events;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) Fail("epoll_ctl");
  }

  void WaitForEvents() {
    epoll_event events[64];
    const timespec wait = UntilNextDelivery();
    const bool forever = wait.tv_sec < 0;
    const int count = ::epoll_pwait2(epoll_fd_, events, 64, forever ? nullptr : &wait, nullptr);
    if (count < 0 && errno != EINTR) Fail("epoll_pwait2");
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listen_fd_) Accept();
      if (fd == signal_fd_) stopped_ = true;
      if ((events[i].events & EPOLLOUT) != 0) Writable(fd);
    }
  }

  // tv_sec -1: nothing waits.
  timespec UntilNextDelivery() const {
    SteadyTime next = SteadyTime::max();
    for (const auto& connection : connections_) next = std::min(next, connection->NextDelivery());
    if (next == SteadyTime::max()) return {-1, 0};
    const auto left = next - std::chrono::steady_clock::now();
    const int64_t left_ns =
        std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
    return {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  }

  void Accept() {
    const int client_fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client_fd < 0) return;
    const int server_fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(server_fd, reinterpret_cast<const sockaddr*>(&to_), sizeof(to_)) != 0) {
      std::fprintf(stderr, "bench_delay_proxy: server refuses: %s\n", std::strerror(errno));
      ::close(client_fd);
      ::close(server_fd);
      return;
    }
    ::fcntl(server_fd, F_SETFL, O_NONBLOCK);
    SetNoDelay(client_fd);
    SetNoDelay(server_fd);
    connections_.push_back(std::make_unique<Connection>(client_fd, server_fd, delay_));
    ++totals_.connections;
    // Edge-triggered: WorkAll() reads and writes until the kernel says no.
    Watch(client_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    Watch(server_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  }

  void Writable(int fd) {
    for (const auto& connection : connections_) {
      if (connection->client_fd() == fd || connection->server_fd() == fd) connection->Writable(fd);
    }
  }

  void WorkAll() {
    connections_.remove_if([&](const auto& connection) { return !connection->Work(totals_); });
  }

  const sockaddr_in to_;
  const std::chrono::nanoseconds delay_;
  int epoll_fd_ = -1;
  int listen_fd_ = -1;
  int signal_fd_ = -1;
  uint16_t port_ = 0;
  bool stopped_ = false;
  std::list<std::unique_ptr<Connection>> connections_;
  Totals totals_;
};

int Main(int argc, char** argv) {
  std::string to;
  std::string port_file;
  int delay_us = 0;
  CLI::App app("A TCP proxy on a free loopback port that delays each direction.");
  app.add_option("--to", to, "the server, IPV4:PORT")->required();
  app.add_option("--port-file", port_file, "where to write the port")->required();
  app.add_option("--delay-us", delay_us, "each way")->check(CLI::Range(0, 10'000'000));
  CLI11_PARSE(app, argc, argv);
  Proxy proxy(ParseAddress(to), std::chrono::microseconds(delay_us));
  std::ofstream(port_file + ".tmp") << proxy.port() << "\n";
  std::rename((port_file + ".tmp").c_str(), port_file.c_str());
  const Totals totals = proxy.Run();
  std::cout << nlohmann::json{{"connections", totals.connections},
                              {"to_server_bytes", totals.to_server_bytes},
                              {"to_client_bytes", totals.to_client_bytes},
                              {"turns", totals.turns}}
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) {
  try {
    return h5mirror::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_delay_proxy: %s\n", error.what());
    return 1;
  }
}
