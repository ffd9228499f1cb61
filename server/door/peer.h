// The other end of a connection.
#ifndef H5MIRROR_SERVER_DOOR_PEER_H_
#define H5MIRROR_SERVER_DOOR_PEER_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace h5mirror::server {

// Stands for all users that the server's host has no name for. A user can have 65,536 such uids of
// its own (subuid(5)), so they share the place of one user.
inline constexpr uid_t kNamelessUid = static_cast<uid_t>(-1);  // No process can have it.

struct Peer {
  enum class Kind {
    kUnixSocket,  // `uid` is known; address and port are not
    kLoopback,    // all users of this machine share the address
    kNetwork,
  };
  Kind kind = Kind::kNetwork;
  std::array<uint8_t, 16> address{};  // IPv6, or IPv4 as ::ffff:a.b.c.d
  uint16_t port = 0;
  uid_t uid = 0;

  // "192.0.2.7", "2001:db8::1", "uid 1000", "users without a name": the key of limits for one peer.
  std::string Name() const;
};

// The other end of a connected socket; nullopt: it is gone.
std::optional<Peer> PeerOf(int fd);

// Parses gRPC's form: "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711". nullopt: a Unix socket, which
// gRPC does not tell apart from another, or no such text.
std::optional<Peer> ParseGrpcPeer(std::string_view text);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_PEER_H_
