// A TCP proxy on a free loopback port, with a network under control.
#ifndef H5MIRROR_TESTS_FAULT_PROXY_PROXY_H_
#define H5MIRROR_TESTS_FAULT_PROXY_PROXY_H_

#include <netinet/in.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "tests/fault_proxy/connection.h"
#include "tests/fault_proxy/line.h"

namespace h5mirror::fault_proxy {

// "127.0.0.1:7447". Throws std::runtime_error.
sockaddr_in ParseAddress(const std::string& text);

// Owned by the thread that runs it. Constructor and Run() throw std::runtime_error if a system call
// fails.
class Proxy {
 public:
  // What happens to existing and new connections.
  enum class Mode {
    kPass,
    kHold,    // nothing moves until the next mode; then all arrives late
    kDrop,    // bytes vanish; open connections stay open, to a black hole
    kRefuse,  // new connections are reset at once
  };

  Proxy(const sockaddr_in& to, std::chrono::nanoseconds delay);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  uint16_t port() const { return port_; }

  // Runs until SIGTERM. With `listen_to_control` it also obeys lines of standard input (control.h),
  // answers each by a line of standard output, and ends at the end of its standard input.
  void Run(bool listen_to_control);

  void SetMode(Mode mode);
  void SetDelay(std::chrono::nanoseconds delay) { weather_.delay = delay; }
  // The rate of each direction of each connection; 0: no limit.
  void SetRate(uint64_t bytes_per_s) { weather_.rate_bytes_per_s = bytes_per_s; }
  // New connections are reset once the client has sent `bytes`.
  void SetCutAfter(std::optional<uint64_t> bytes) { cut_after_bytes_ = bytes; }
  // Records the bytes that clients send on new connections.
  void SetRecording(bool on) { recording_ = on; }

  // The calls below act on all existing connections.
  void Reset();
  void HalfOpen(Side side);
  // Sends a recording to the server once more. Throws std::out_of_range.
  void Play(size_t index);

  const Totals& totals() const { return totals_; }
  size_t connection_count() const { return connections_.size(); }
  const std::list<std::string>& recordings() const { return recordings_; }

 private:
  void Listen();
  void WatchSigterm();
  void Watch(int fd, uint32_t events);
  void WaitForEvents();
  timespec UntilNextDelivery() const;
  void Accept();
  int ConnectToServer() const;
  void ReadControl();
  void Writable(int fd);
  void WorkAll();

  const sockaddr_in to_;
  Weather weather_;
  Mode mode_ = Mode::kPass;
  std::optional<uint64_t> cut_after_bytes_;
  bool recording_ = false;
  int epoll_fd_ = -1;
  int listen_fd_ = -1;
  int signal_fd_ = -1;
  uint16_t port_ = 0;
  bool stopped_ = false;
  std::string control_;  // the beginning of a line whose end has not come
  std::list<std::string> recordings_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::list<std::unique_ptr<Replay>> replays_;
  Totals totals_;
};

}  // namespace h5mirror::fault_proxy

#endif  // H5MIRROR_TESTS_FAULT_PROXY_PROXY_H_
