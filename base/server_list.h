// The servers that a file is mirrored to: "node7", or "node7:7447,unix:/run/h5mirror.sock".
//
// Header-only and without other libraries: the plugin has it in strangers' processes.
#ifndef H5MIRROR_BASE_SERVER_LIST_H_
#define H5MIRROR_BASE_SERVER_LIST_H_

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace h5mirror {

// The most servers of a file. For each, the program sends all that it writes.
inline constexpr size_t kServersMax = 8;
// server=embedded: the history lies beside the file, and there is no server.
inline constexpr std::string_view kEmbeddedServer = "embedded";

// One text for all ways to write an address: "Node7" and "node7:7447". A text that is no address
// stays as it is. Names are not looked up.
inline std::string CanonicalServer(std::string_view server) {
  std::string text(server);
  if (text.starts_with("unix:")) return text;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t bracket = text.rfind(']');
  const size_t host_end = bracket == std::string::npos ? 0 : bracket;
  const bool has_port = text.find(':', host_end) != std::string::npos;
  return has_port || text.empty() || text == kEmbeddedServer ? text : text + ":7447";
}

inline bool IsSameServer(std::string_view a, std::string_view b) {
  return CanonicalServer(a) == CanonicalServer(b);
}

// The tag of a server in names of files: 8 hex digits, the FNV-1a hash of CanonicalServer()
// (docs/reference/format.md, "Several mirrors").
inline std::string ServerTag(std::string_view server) {
  uint32_t hash = 2166136261u;
  for (const char c : CanonicalServer(server)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string tag;
  for (int shift = 28; shift >= 0; shift -= 4) tag += kDigits[(hash >> shift) & 15];
  return tag;
}

struct ServerList {
  std::vector<std::string> servers;  // as written, in order; empty if there is a problem
  std::string problem;               // in words for the user; empty: none
};

// Splits at commas; spaces around an address are not part of it. A list of one address is not
// checked any further.
inline ServerList ParseServerList(std::string_view text) {
  std::vector<std::string> servers;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    std::string_view one = text.substr(start, end - start);
    while (!one.empty() && std::isspace(static_cast<unsigned char>(one.front())))
      one.remove_prefix(1);
    while (!one.empty() && std::isspace(static_cast<unsigned char>(one.back())))
      one.remove_suffix(1);
    servers.emplace_back(one);
    start = end + 1;
  }
  if (servers.size() == 1) return {std::move(servers), ""};
  if (servers.size() > kServersMax) {
    return {{}, "a file has at most " + std::to_string(kServersMax) + " mirrors"};
  }
  std::vector<std::string> tags;
  for (const std::string& server : servers) {
    if (server.empty()) return {{}, "an address is missing beside a comma"};
    if (server == kEmbeddedServer) {
      return {{},
              "embedded keeps the history beside the file and cannot be one of several servers"};
    }
    const std::string tag = ServerTag(server);
    if (std::find(tags.begin(), tags.end(), tag) != tags.end()) {
      return {{}, server + " is there twice"};
    }
    tags.push_back(tag);
  }
  return {std::move(servers), ""};
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SERVER_LIST_H_
