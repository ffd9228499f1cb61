#include "server/http/request_parts.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/strings.h"
#include "server/http/file_target.h"

namespace h5mirror::server {
namespace {

constexpr std::string_view kSingleHeaders[] = {
    "host",     "content-length",    "transfer-encoding",   "authorization", "range",
    "if-range", "if-modified-since", "if-unmodified-since", "last-event-id"};

// GnuTLS ends a chain long before.
constexpr unsigned kCertificatesMax = 11;

// Null: the connection has no TLS.
gnutls_session_t TlsOf(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return info == nullptr ? nullptr : static_cast<gnutls_session_t>(info->tls_session);
}

// A list may come in several lines (RFC 9110, 5.3).
std::optional<std::string> ListOf(MHD_Connection* connection, const char* name) {
  struct Look {
    std::string_view name;
    std::optional<std::string> list = std::nullopt;
  } look{name};
  const auto add = [](void* out, MHD_ValueKind, const char* key, const char* value) {
    Look& self = *static_cast<Look*>(out);
    if (value != nullptr && absl::EqualsIgnoreCase(key, ToAbsl(self.name))) {
      self.list = self.list ? StrCat(*self.list, ", ", value) : value;
    }
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add, &look);
  return look.list;
}

}  // namespace

std::optional<std::string> HeaderOf(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

int DescriptorOf(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

void SendNow(MHD_Connection* connection, std::string_view text) {
  if (const gnutls_session_t tls = TlsOf(connection); tls != nullptr) {
    gnutls_record_send(tls, text.data(), text.size());
    gnutls_bye(tls, GNUTLS_SHUT_WR);
  } else {
    send(DescriptorOf(connection), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

std::vector<std::string> CertificatesOf(MHD_Connection* connection) {
  const gnutls_session_t tls = TlsOf(connection);
  if (tls == nullptr) return {};
  unsigned count = 0;
  const gnutls_datum_t* const list = gnutls_certificate_get_peers(tls, &count);
  std::vector<std::string> certificates;
  for (unsigned i = 0; list != nullptr && i < std::min(count, kCertificatesMax); ++i) {
    certificates.emplace_back(reinterpret_cast<const char*>(list[i].data), list[i].size);
  }
  return certificates;
}

Conditions ConditionsOf(MHD_Connection* connection) {
  return {.if_match = ListOf(connection, "If-Match"),
          .if_none_match = ListOf(connection, "If-None-Match"),
          .if_modified_since = HeaderOf(connection, "If-Modified-Since"),
          .if_unmodified_since = HeaderOf(connection, "If-Unmodified-Since"),
          .if_range = HeaderOf(connection, "If-Range")};
}

std::vector<std::pair<std::string, std::string>> QueryOf(MHD_Connection* connection) {
  std::vector<std::pair<std::string, std::string>> query;
  const auto add = [](void* out, MHD_ValueKind, const char* key, const char* value) {
    const std::string text = value == nullptr ? "" : value;
    static_cast<std::vector<std::pair<std::string, std::string>>*>(out)->emplace_back(
        key, DecodePercent(text).value_or(text));
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add, &query);
  return query;
}

bool RepeatsAHeader(MHD_Connection* connection) {
  std::set<std::string> seen;
  struct Look {
    std::set<std::string>& seen;
    bool repeats = false;
  } look{seen};
  const auto note = [](void* out, MHD_ValueKind, const char* key, const char*) {
    Look& self = *static_cast<Look*>(out);
    const std::string name = absl::AsciiStrToLower(key);
    const bool is_single = std::any_of(std::begin(kSingleHeaders), std::end(kSingleHeaders),
                                       [&name](std::string_view each) { return name == each; });
    if (is_single && !self.seen.insert(name).second) self.repeats = true;
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note, &look);
  return look.repeats;
}

bool HasBody(MHD_Connection* connection) {
  if (HeaderOf(connection, "Transfer-Encoding")) return true;
  const std::optional<std::string> length = HeaderOf(connection, "Content-Length");
  return length && *length != "0";
}

std::string WithoutPort(std::string_view host) {
  const bool is_v6 = host.starts_with("[");
  const size_t end = is_v6 ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return "";
  const std::string_view port = host.substr(end + (is_v6 ? 1 : 0));
  const bool is_port = port.empty() || (port.starts_with(":") &&
                                        port.find_first_not_of("0123456789", 1) == port.npos);
  if (!is_port) return "";
  return std::string(is_v6 ? host.substr(1, end - 1) : host.substr(0, end));
}

Target TargetOf(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(ToAbsl(url), ToAbsl(scheme))) continue;
    url.remove_prefix(scheme.size());
    const size_t slash = std::min(url.find('/'), url.size());
    const std::string_view path = url.substr(slash);
    return {std::string(url.substr(0, slash)), path.empty() ? "/" : std::string(path)};
  }
  return {std::nullopt, std::string(url)};
}

}  // namespace h5mirror::server
