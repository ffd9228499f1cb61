#include "server/settings/listen_address.h"

#include <arpa/inet.h>
#include <sys/un.h>

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
    if (!IsIpv6(host)) return BadAddress(text, "what stands in brackets is not an IPv6 address");
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

}  // namespace h5mirror::server
