// The servers that a file is mirrored to: "node7", or "node7:7447,unix:/run/h5mirror.sock". Each
// may be a cluster, of which any server answers: "a:7447|b:7447".
//
// Header-only and without other libraries: the plugin brings it into other people's processes.
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

// The most servers of a file. The program sends all that it writes to each of them.
inline constexpr size_t kServersMax = 8;
// The most servers of a cluster that a client is told about.
inline constexpr size_t kClusterServersMax = 32;
// server=embedded: the history lies beside the file, and there is no server.
inline constexpr std::string_view kEmbeddedServer = "embedded";

inline std::string_view TrimmedServer(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The parts of a list, without the spaces around them. At least one part, which may be empty.
inline std::vector<std::string> SplitServers(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(TrimmedServer(text.substr(start, end - start)));
    start = end + 1;
  }
  return parts;
}

// The servers of one cluster, or the one server.
inline std::vector<std::string> ClusterServers(std::string_view server) {
  return SplitServers(server, '|');
}

// One text for all ways to write an address: "Node7" and "node7:7447" give the same. A text that is
// no address stays as it is. Names are not looked up. For a cluster: the text of its first server.
inline std::string CanonicalServer(std::string_view server) {
  std::string text = ClusterServers(server).front();
  if (text.starts_with("unix:")) return text;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t bracket = text.rfind(']');
  const size_t host_end = bracket == std::string::npos ? 0 : bracket;
  const bool has_port = text.find(':', host_end) != std::string::npos;
  return has_port || text.empty() || text == kEmbeddedServer ? text : text + ":7447";
}

// Two clusters are the same if they have a server in common: the list grows with the site.
inline bool IsSameServer(std::string_view a, std::string_view b) {
  for (const std::string& one : ClusterServers(a)) {
    for (const std::string& other : ClusterServers(b)) {
      if (CanonicalServer(one) == CanonicalServer(other)) return true;
    }
  }
  return false;
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

// The fault of the servers of a cluster, in words for the user; empty: there is none. A single
// address is not checked.
inline std::string ProblemOfCluster(std::string_view server) {
  const std::vector<std::string> servers = ClusterServers(server);
  if (servers.size() == 1) return "";
  if (servers.size() > kClusterServersMax) {
    return "of a cluster at most " + std::to_string(kClusterServersMax) + " servers are named";
  }
  for (auto one = servers.begin(); one != servers.end(); ++one) {
    if (one->empty()) return "an address is missing beside a '|'";
    if (*one == kEmbeddedServer) return "embedded is no server of a cluster";
    const auto is_this = [one](const std::string& other) { return IsSameServer(*one, other); };
    if (std::any_of(servers.begin(), one, is_this)) return *one + " is there twice";
  }
  return "";
}

// Splits at commas; spaces around an address are not part of it. A list of one address is not
// checked any further.
inline ServerList ParseServerList(std::string_view text) {
  std::vector<std::string> servers = SplitServers(text, ',');
  for (const std::string& server : servers) {
    if (std::string problem = ProblemOfCluster(server); !problem.empty()) {
      return {{}, std::move(problem)};
    }
  }
  if (servers.size() == 1) return {std::move(servers), ""};
  if (servers.size() > kServersMax) {
    return {{}, "a file has at most " + std::to_string(kServersMax) + " mirrors"};
  }
  for (auto one = servers.begin(); one != servers.end(); ++one) {
    if (one->empty()) return {{}, "an address is missing beside a comma"};
    if (*one == kEmbeddedServer) {
      return {{},
              "embedded keeps the history beside the file and cannot be one of several servers"};
    }
    // Two servers of one cluster are one mirror, and no program opens a mirror twice.
    const auto is_this = [one](const std::string& other) {
      return IsSameServer(*one, other) || ServerTag(*one) == ServerTag(other);
    };
    if (std::any_of(servers.begin(), one, is_this)) return {{}, *one + " is there twice"};
  }
  return {std::move(servers), ""};
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SERVER_LIST_H_
