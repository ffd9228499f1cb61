// What gRPC does not say or do about its listening sockets.
#ifndef H5MIRROR_SERVER_LISTEN_SOCKET_H_
#define H5MIRROR_SERVER_LISTEN_SOCKET_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "server/listen_address.h"

namespace h5mirror::server {

// Binds and lets go again, only to learn why it may not work: gRPC gives no reason. A Unix
// socket is in use when somebody answers on it; a stale one is fine, gRPC replaces it.
// kUnavailable names address and reason.
absl::Status ProbeAddress(const ListenAddress& address);

// Gives a Unix socket its group (where one is named) and then its permissions.
absl::Status OpenSocketToGroup(const std::filesystem::path& path, uint32_t mode_bits,
                               const std::string& group);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LISTEN_SOCKET_H_
