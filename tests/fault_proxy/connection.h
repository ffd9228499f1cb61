// A client's connection through the proxy, and the replay of one.
#ifndef H5MIRROR_TESTS_FAULT_PROXY_CONNECTION_H_
#define H5MIRROR_TESTS_FAULT_PROXY_CONNECTION_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tests/fault_proxy/line.h"

namespace h5mirror::fault_proxy {

struct Totals {
  uint64_t connections = 0;
  uint64_t to_server_bytes = 0;
  uint64_t to_client_bytes = 0;
  // How often the direction of traffic changed from the client to the server: a chain of requests
  // that wait for each other's answers turns once each.
  uint64_t turns = 0;
  uint64_t cuts = 0;  // connections that were reset at their limit
};

// Closes a TCP connection so that the other side gets an RST.
void CloseWithReset(int fd);

enum class Side { kClient, kServer };

// A client, the server, and the two lines between them. Owns both sockets.
//
// Not thread-safe.
class Connection {
 public:
  Connection(int client_fd, int server_fd, const Weather& weather)
      : client_fd_(client_fd),
        server_fd_(server_fd),
        to_server_(client_fd, server_fd, weather),
        to_client_(server_fd, client_fd, weather) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The connection is reset once the client has sent `limit_bytes`.
  void set_limit(uint64_t limit_bytes);
  // Appends the client's bytes to `recording`, which must outlive this.
  void Record(std::string* recording) { to_server_.Record(recording); }

  // Does all work that is possible now. False: the connection is over.
  bool Work(Totals& totals);
  void Writable(int fd) { (fd == server_fd_ ? to_server_ : to_client_).ReceiverReady(); }
  SteadyTime NextDelivery() const {
    return std::min(to_server_.NextDelivery(), to_client_.NextDelivery());
  }

  // A black hole from here on: both sides' bytes vanish, and neither is told.
  void Vanish();
  // One side gets an RST, the other hears nothing.
  void HalfOpen(Side side);
  // Both sides get an RST. The connection is over.
  void Reset();

  bool Has(int fd) const { return fd == client_fd_ || fd == server_fd_; }

 private:
  bool Over() const;
  void Count(uint64_t to_server_bytes, uint64_t to_client_bytes, Totals& totals);

  int client_fd_;  // -1 once closed
  int server_fd_;
  Line to_server_;
  Line to_client_;
  bool has_limit_ = false;
  bool vanished_ = false;
  bool server_was_last_ = false;
};

// Sends a client's earlier bytes to the server, on a new connection, and reads no answers: the late
// duplicate of a stream. Owns the socket.
class Replay {
 public:
  Replay(int server_fd, std::string bytes) : server_fd_(server_fd), bytes_(std::move(bytes)) {}
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // False once the server has ended it.
  bool Work();

 private:
  const int server_fd_;
  const std::string bytes_;
  size_t sent_bytes_ = 0;
};

}  // namespace h5mirror::fault_proxy

#endif  // H5MIRROR_TESTS_FAULT_PROXY_CONNECTION_H_
