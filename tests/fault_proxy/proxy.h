// A TCP proxy on a free loopback port whose network does what it is told.
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

// Owned by the thread that runs it. Constructor and Run() throw std::runtime_error where the
// system refuses something.
class Proxy {
 public:
  // What a connection meets that is there, or that comes.
  enum class Mode {
    kPass,
    kHold,    // nothing moves until the next mode, and then all of it, late
    kDrop,    // bytes vanish; open connections stay open, to a black hole
    kRefuse,  // new connections are reset at once
  };

  Proxy(const sockaddr_in& to, std::chrono::nanoseconds delay);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  uint16_t port() const { return port_; }

  // Runs until SIGTERM. With `listen_to_control` it also does what lines of standard input say
  // (control.h), answers each by a line of standard output, and ends with its standard input.
  void Run(bool listen_to_control);

  void SetMode(Mode mode);
  void SetDelay(std::chrono::nanoseconds delay) { weather_.delay = delay; }
  // Of each direction of each connection; 0: no limit.
  void SetRate(uint64_t bytes_per_s) { weather_.rate_bytes_per_s = bytes_per_s; }
  // Connections that come from now on are reset once the client has sent so many bytes.
  void SetCutAfter(std::optional<uint64_t> bytes) { cut_after_bytes_ = bytes; }
  // What clients send on connections that come from now on is kept.
  void SetRecording(bool on) { recording_ = on; }

  // These are done to all connections that there are.
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
  std::string control_;  // what was read of a line that has no end yet
  std::list<std::string> recordings_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::list<std::unique_ptr<Replay>> replays_;
  Totals totals_;
};

}  // namespace h5mirror::fault_proxy

#endif  // H5MIRROR_TESTS_FAULT_PROXY_PROXY_H_
