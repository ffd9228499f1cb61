// An address to listen on: HOST:PORT, [V6]:PORT or unix:PATH.
#ifndef H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_
#define H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// The clients that can reach an address. Decides whether TLS and a token are required.
enum class Reach {
  kUnixSocket,  // local users, by the socket's permissions
  kLoopback,    // local users: 127.0.0.0/8, ::1, localhost
  kNetwork,     // any machine
};

struct ListenAddress {
  std::string text;  // as the operator wrote it, for messages
  Reach reach = Reach::kNetwork;
  std::string host;  // without brackets; empty for a Unix socket
  int port = 0;      // 0: any free one
  std::string path;  // of a Unix socket, absolute

  // In gRPC's form: "127.0.0.1:7447", "[::1]:7447", "unix:/run/h5mirror.sock".
  std::string GrpcTarget() const;
  // The same with the port that was bound.
  std::string WithPort(int bound_port) const;
};

// Parses one address. kInvalidArgument quotes it and shows the three forms.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

// Parses a comma-separated list of at least one address.
absl::StatusOr<std::vector<ListenAddress>> ParseListenList(std::string_view text);

// Whether the server cannot listen on both, as far as the texts tell. 0.0.0.0 and [::] are each all
// addresses of IPv4 and IPv6 (ListenSocket clears IPV6_V6ONLY), localhost is 127.0.0.1 and ::1.
// Other host names are not resolved. Port 0 is another one each time.
bool Collide(const ListenAddress& one, const ListenAddress& other);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_
