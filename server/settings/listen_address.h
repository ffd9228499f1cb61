// Where a server listens: HOST:PORT, [V6]:PORT or unix:PATH.
#ifndef H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_
#define H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// Who can reach an address; decides whether TLS and a token are wanted.
enum class Reach {
  kUnixSocket,  // local users, as the socket's permissions say
  kLoopback,    // local users: 127.0.0.0/8, ::1, localhost
  kNetwork,     // anybody
};

struct ListenAddress {
  std::string text;  // as the operator wrote it, for messages
  Reach reach = Reach::kNetwork;
  std::string host;  // without brackets; empty for a Unix socket
  int port = 0;      // 0: any free one
  std::string path;  // of a Unix socket, absolute

  // As gRPC wants it: "127.0.0.1:7447", "[::1]:7447", "unix:/run/h5mirror.sock".
  std::string GrpcTarget() const;
  // The same with the port that was really bound.
  std::string WithPort(int bound_port) const;
};

// Parses one address. kInvalidArgument quotes it and shows the three forms.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

// Parses a comma-separated list of at least one address.
absl::StatusOr<std::vector<ListenAddress>> ParseListenList(std::string_view text);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_LISTEN_ADDRESS_H_
