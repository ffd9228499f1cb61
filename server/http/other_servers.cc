#include "server/http/other_servers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/elsewhere.h"

namespace h5mirror::server {
namespace {

constexpr int kTemporaryRedirect = 307;
constexpr std::string_view kHex = "0123456789ABCDEF";

void AddEscaped(char c, std::string& text) {
  const auto byte = static_cast<unsigned char>(c);
  text += '%';
  text += kHex[byte >> 4];
  text += kHex[byte & 15];
}

// Of a path as it was sent: percent signs stay, and no byte is left that a header may not have.
std::string HeaderSafe(std::string_view path) {
  std::string safe;
  for (const char c : path) {
    if (c > ' ' && c < '\x7f' && c != '"' && c != '<' && c != '>' && c != '\\') {
      safe += c;
    } else {
      AddEscaped(c, safe);
    }
  }
  return safe;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (is_plain) {
      escaped += c;
    } else {
      AddEscaped(c, escaped);
    }
  }
  return escaped;
}

// Whether somebody was sent here as to another server, for the same reason.
bool WasSent(const HttpRequest& request, const Sent& sent) {
  const std::string text = Format(sent);
  return std::any_of(request.query.begin(), request.query.end(), [&text](const auto& each) {
    return each.first == kSentKey && each.second == text;
  });
}

// The request at another server.
std::string UrlAt(const HttpRequest& request, const std::string& server, const Sent& sent) {
  std::string url = StrCat(server, HeaderSafe(request.path), "?");
  for (const auto& [key, value] : request.query) {
    if (key != kSentKey) StrAppend(&url, Escaped(key), "=", Escaped(value), "&");
  }
  return StrCat(url, kSentKey, "=", Escaped(Format(sent)));
}

// The epoch at which this server is said to own the cell; 0: nobody says so.
uint64_t SeenEpoch(const HttpRequest& request, const std::string& node, std::string_view cell) {
  uint64_t epoch = 0;
  for (const auto& [key, value] : request.query) {
    if (key != kSentKey) continue;
    const std::optional<Sent> sent = ParseSent(value);
    if (sent && sent->node == node && sent->cell == cell) epoch = std::max(epoch, sent->epoch);
  }
  return epoch;
}

}  // namespace

std::string Format(const Sent& sent) { return StrCat(sent.node, ":", sent.epoch, ":", sent.cell); }

std::optional<Sent> ParseSent(std::string_view text) {
  const size_t first = text.find(':');
  if (first == text.npos) return std::nullopt;
  const size_t second = text.find(':', first + 1);
  if (second == text.npos) return std::nullopt;
  Sent sent;
  sent.node = text.substr(0, first);
  sent.cell = text.substr(second + 1);
  const std::string number(text.substr(first + 1, second - first - 1));
  if (!absl::SimpleAtoi(number, &sent.epoch)) return std::nullopt;
  return sent;
}

HttpAnswer OtherServers::ErrorOrRedirect(const HttpRequest& request,
                                         const absl::Status& status) const {
  const std::optional<rpc::Elsewhere> elsewhere = rpc::ElsewhereOf(status);
  if (!elsewhere || cells_ == nullptr) return ErrorAnswer(status);
  const std::string& cell = elsewhere->cell;
  const cluster::Route route = cells_->FindSent(cell, SeenEpoch(request, cells_->node(), cell));
  if (route.kind != cluster::RouteKind::kRedirect) {
    return ErrorAnswer(
        absl::UnavailableError("the file is changing its server at the moment: ask again"));
  }
  if (route.http.empty()) {
    return ErrorAnswer(absl::UnavailableError(
        StrCat("the server ", route.listen,
               " of this cluster serves it, and tells no address for "
               "HTTP: it wants http_listen, or http_address in its [cluster] table")));
  }
  // Its token and the bytes would go over the network in plain text.
  if (request.is_tls && !route.http.starts_with("https://")) {
    return ErrorAnswer(absl::UnavailableError(
        StrCat("the server ", route.listen, " of this cluster serves it at ", route.http,
               ", without TLS: a client that came by https is not sent there")));
  }
  const Sent sent = {route.owner, route.epoch, cell};
  // One name stands for several servers, or another server's URL is this one's.
  if (WasSent(request, sent)) {
    return ErrorAnswer(absl::UnavailableError(
        StrCat("http_address = \"", route.http, "\" of the server ", route.owner,
               " leads here: each server wants a URL of its own")));
  }
  HttpAnswer answer = ErrorAnswer(kTemporaryRedirect, status);
  answer.headers.emplace_back("Location", UrlAt(request, route.http, sent));
  return answer;
}

absl::StatusOr<std::vector<std::string>> OtherServers::CellsBelow(
    const std::string& directory) const {
  std::vector<std::string> below;
  if (cells_ == nullptr) return below;
  H5M_ASSIGN_OR_RETURN(const auto routes, cells_->RoutesBelow(directory));
  for (const auto& [cell, route] : routes) {
    if (cell.size() > directory.size()) below.push_back(cell);
  }
  std::sort(below.begin(), below.end(), [](const std::string& one, const std::string& other) {
    return BeginOf(one) < BeginOf(other);
  });
  return below;
}

bool OtherServers::IsOnItsWay(const absl::Status& status) const {
  return cells_ != nullptr && absl::IsUnavailable(status) && !rpc::ElsewhereOf(status);
}

std::string BeginOf(const std::string& cell) { return StrCat(cell, "/"); }

ListPlace PlaceOf(const std::vector<std::string>& cells, const std::string& page_token) {
  ListPlace place;
  while (place.cell < cells.size()) {
    const std::string begin = BeginOf(cells[place.cell]);
    if (page_token.starts_with(begin)) {
      if (page_token != begin) place.after = page_token;
      return place;
    }
    if (page_token < begin) return place;
    ++place.cell;
  }
  return place;
}

}  // namespace h5mirror::server
