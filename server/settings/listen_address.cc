#include "server/settings/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/server_address.h"

namespace h5mirror::server {
namespace {

absl::Status BadAddress(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat("address \"", text, "\": ", why, "; write HOST:PORT, [IPV6]:PORT or unix:PATH"));
}

bool IsIpv6(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

absl::StatusOr<ListenAddress> ParseUnix(std::string_view text) {
  const std::string given(text.substr(std::string_view("unix:").size()));
  if (given.empty()) return BadAddress(text, "the path of the socket is missing");
  ListenAddress address;
  address.text = std::string(text);
  address.reach = Reach::kUnixSocket;
  address.path = std::filesystem::absolute(given).lexically_normal().string();
  if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
    return BadAddress(text, "the path of a Unix socket has at most 107 bytes");
  }
  return address;
}

// In IPv6's form, so that ::ffff:127.0.0.1 and 127.0.0.1 are the same.
std::string MappedIpv4(in_addr address) {
  std::string mapped(10, '\0');
  mapped.append("\xff\xff");
  return mapped.append(reinterpret_cast<const char*>(&address.s_addr), sizeof(address.s_addr));
}

// The 16 bytes of each address that the host stands for, or its own name.
std::vector<std::string> PlacesOf(const std::string& host) {
  const std::string name = absl::AsciiStrToLower(host);
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, name.c_str(), &ipv6) == 1) {
    return {std::string(reinterpret_cast<const char*>(&ipv6), sizeof(ipv6))};
  }
  in_addr ipv4{};
  if (inet_aton(name.c_str(), &ipv4) == 1) return {MappedIpv4(ipv4)};
  if (name != "localhost") return {name};
  std::vector<std::string> loopback = PlacesOf("127.0.0.1");
  loopback.push_back(PlacesOf("::1").front());
  return loopback;
}

bool IsAllAddresses(const std::vector<std::string>& places) {
  const std::string& place = places.front();
  return place == std::string(16, '\0') || place == MappedIpv4({.s_addr = INADDR_ANY});
}

}  // namespace

std::string ListenAddress::WithPort(int bound_port) const {
  if (reach == Reach::kUnixSocket) return StrCat("unix:", path);
  return IsIpv6(host) ? StrCat("[", host, "]:", bound_port) : StrCat(host, ":", bound_port);
}

std::string ListenAddress::GrpcTarget() const { return WithPort(port); }

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  if (text.starts_with("unix:")) return ParseUnix(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text, "the port is missing");
  std::string host(text.substr(0, colon));
  const std::string port_text(text.substr(colon + 1));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6(host)) return BadAddress(text, "the text in brackets is not an IPv6 address");
  } else if (host.find(':') != std::string::npos) {
    return BadAddress(text, "an IPv6 address wants brackets");
  }
  if (host.empty()) return BadAddress(text, "the host is missing (0.0.0.0 is all addresses)");
  ListenAddress address;
  if (!absl::SimpleAtoi(port_text, &address.port) || address.port < 0 || address.port > 65535) {
    return BadAddress(text, "the port must be in 0..65535");
  }
  address.text = std::string(text);
  address.host = host;
  // A name but localhost may resolve to anything, also later.
  address.reach = rpc::IsLoopback(host) ? Reach::kLoopback : Reach::kNetwork;
  return address;
}

absl::StatusOr<std::vector<ListenAddress>> ParseListenList(std::string_view text) {
  std::vector<ListenAddress> addresses;
  for (absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    const absl::string_view trimmed = absl::StripAsciiWhitespace(part);
    if (trimmed.empty()) return BadAddress(text, "an address is empty");
    H5M_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(ToStd(trimmed)));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

bool Collide(const ListenAddress& one, const ListenAddress& other) {
  const bool is_unix = one.reach == Reach::kUnixSocket;
  if (is_unix != (other.reach == Reach::kUnixSocket)) return false;
  if (is_unix) return one.path == other.path;
  if (one.port == 0 || one.port != other.port) return false;
  const std::vector<std::string> places = PlacesOf(one.host);
  const std::vector<std::string> others = PlacesOf(other.host);
  if (IsAllAddresses(places) || IsAllAddresses(others)) return true;
  return std::any_of(places.begin(), places.end(), [&others](const std::string& place) {
    return std::find(others.begin(), others.end(), place) != others.end();
  });
}

}  // namespace h5mirror::server
