// A server's address, from the user's text to gRPC's target.
#ifndef H5MIRROR_RPC_SERVER_ADDRESS_H_
#define H5MIRROR_RPC_SERVER_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::rpc {

struct ServerAddress {
  std::string target;     // for gRPC, e.g. "dns:///node7:7447"
  bool loopback = false;  // 127.0.0.0/8, ::1, localhost or a Unix socket
};

// 127.0.0.0/8, ::1 (without brackets) or localhost.
bool IsLoopback(const std::string& host);

// Parses HOST, HOST:PORT, [V6], [V6]:PORT or unix:PATH; the port is 7447 unless given.
// kInvalidArgument quotes the text and says which part is wrong.
absl::StatusOr<ServerAddress> ParseServerAddress(std::string_view text);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SERVER_ADDRESS_H_
