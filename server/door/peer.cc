#include "server/door/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool IsMapped(const std::array<uint8_t, 16>& address) {
  return memcmp(address.data(), kMappedPrefix, sizeof(kMappedPrefix)) == 0;
}

Peer TcpPeer(const std::array<uint8_t, 16>& address, uint16_t port) {
  Peer peer;
  peer.address = address;
  peer.port = port;
  in6_addr v6{};
  memcpy(&v6, address.data(), address.size());
  const bool loopback = IsMapped(address) ? address[12] == 127 : IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  peer.kind = loopback ? Peer::Kind::kLoopback : Peer::Kind::kNetwork;
  return peer;
}

Peer FromV4(const in_addr& v4, uint16_t port) {
  std::array<uint8_t, 16> address{};
  memcpy(address.data(), kMappedPrefix, sizeof(kMappedPrefix));
  memcpy(address.data() + sizeof(kMappedPrefix), &v4, sizeof(v4));
  return TcpPeer(address, port);
}

Peer FromV6(const in6_addr& v6, uint16_t port) {
  std::array<uint8_t, 16> address{};
  memcpy(address.data(), &v6, address.size());
  return TcpPeer(address, port);
}

}  // namespace

std::string Peer::Name() const {
  if (kind == Kind::kUnixSocket) {
    return uid == kNamelessUid ? "users without a name" : StrCat("uid ", uid);
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (IsMapped(address)) {
    inet_ntop(AF_INET, address.data() + sizeof(kMappedPrefix), text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, address.data(), text, sizeof(text));
  }
  return text;
}

std::optional<Peer> PeerOf(int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return std::nullopt;
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    return FromV4(v4.sin_addr, ntohs(v4.sin_port));
  }
  if (name.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    return FromV6(v6.sin6_addr, ntohs(v6.sin6_port));
  }
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer;
  peer.kind = Peer::Kind::kUnixSocket;
  peer.uid = credentials.uid;
  return peer;
}

std::optional<Peer> ParseGrpcPeer(std::string_view text) {
  const bool is_v4 = text.starts_with("ipv4:");
  if (!is_v4 && !text.starts_with("ipv6:")) return std::nullopt;
  const size_t colon = text.rfind(':');
  if (colon < 5) return std::nullopt;
  uint32_t port = 0;
  if (!absl::SimpleAtoi(ToAbsl(text.substr(colon + 1)), &port) || port > 65535) return std::nullopt;
  std::string host =
      absl::StrReplaceAll(ToAbsl(text.substr(5, colon - 5)),
                          {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}, {"%25", "%"}});
  host.resize(std::min(host.size(), host.find('%')));  // The scope of a link-local address.
  in_addr v4{};
  in6_addr v6{};
  if (is_v4 && inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return FromV4(v4, static_cast<uint16_t>(port));
  }
  if (!is_v4 && inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    return FromV6(v6, static_cast<uint16_t>(port));
  }
  return std::nullopt;
}

}  // namespace h5mirror::server
