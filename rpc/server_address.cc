#include "rpc/server_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat("server '", absl::CHexEscape(ToAbsl(text.substr(0, 256))), "': ", why,
             "; write HOST, HOST:PORT, [IPV6]:PORT or unix:PATH"));
}

absl::StatusOr<ServerAddress> ParseUnix(std::string_view text) {
  const std::string_view path = text.substr(kUnixScheme.size());
  constexpr size_t kPathBytesMax = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.empty()) return Bad(text, "the path is empty");
  if (path.size() > kPathBytesMax) {
    return Bad(text, StrCat("the path of a Unix socket has at most ", kPathBytesMax, " bytes"));
  }
  return ServerAddress{.target = std::string(text), .loopback = true};
}

// `text` up to its port, and the port.
struct HostAndPort {
  std::string_view host;  // without brackets
  std::string_view port;  // empty: none given
  bool bracketed = false;
};

absl::StatusOr<HostAndPort> Split(std::string_view text) {
  HostAndPort parts;
  std::string_view rest;
  if (text.find("://") != std::string_view::npos) return Bad(text, "a URL is no address");
  if (!text.empty() && text[0] == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Bad(text, "']' is missing");
    parts.bracketed = true;
    parts.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':') return Bad(text, "only a port may follow ']'");
  } else {
    const size_t colon = text.find(':');
    parts.host = text.substr(0, colon);
    if (colon != std::string_view::npos) rest = text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      return Bad(text, "an IPv6 address goes into brackets");
    }
  }
  if (rest == ":") return Bad(text, "the port is empty");
  parts.port = rest.empty() ? rest : rest.substr(1);
  return parts;
}

absl::StatusOr<int> PortOf(std::string_view text, std::string_view port) {
  if (port.empty()) return kDefaultPort;
  int number = 0;
  if (!absl::SimpleAtoi(ToAbsl(port), &number) || number < 1 || number > 65535) {
    return Bad(text, "the port is not a number from 1 to 65535");
  }
  return number;
}

bool IsHostName(std::string_view host) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  };
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), allowed);
}

}  // namespace

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return absl::EqualsIgnoreCase(host, "localhost");
}

absl::StatusOr<ServerAddress> ParseServerAddress(std::string_view text) {
  if (text.empty()) return Bad(text, "it is empty");
  if (text.substr(0, kUnixScheme.size()) == kUnixScheme) return ParseUnix(text);
  H5M_ASSIGN_OR_RETURN(const HostAndPort parts, Split(text));
  H5M_ASSIGN_OR_RETURN(const int port, PortOf(text, parts.port));
  const std::string host(parts.host);
  if (in6_addr v6{}; parts.bracketed) {
    if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return Bad(text, "not an IPv6 address");
    return ServerAddress{.target = StrCat("dns:///[", host, "]:", port),
                         .loopback = IsLoopback(host)};
  }
  if (!IsHostName(host)) return Bad(text, "not a host name");
  return ServerAddress{.target = StrCat("dns:///", host, ":", port), .loopback = IsLoopback(host)};
}

}  // namespace h5mirror::rpc
