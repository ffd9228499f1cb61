#include "rpc/configured_servers.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "rpc/client_files.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The driver takes the last of several values of a key. Unknown keys are ignored here, because the
// driver refuses them itself.
absl::StatusOr<std::string> ServersOfDriverConfig() {
  const std::string config(absl::StripAsciiWhitespace(Variable("HDF5_DRIVER_CONFIG")));
  if (!config.empty() && config.front() == '@') {
    H5M_ASSIGN_OR_RETURN(const std::optional<std::string> server, ReadServerKey(config.substr(1)));
    return server.value_or("");
  }
  std::string servers;
  for (absl::string_view item : absl::StrSplit(config, ';')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(pair.first) == "server") {
      servers = std::string(absl::StripAsciiWhitespace(pair.second));
    }
  }
  return servers;
}

bool IsAmong(const std::vector<std::string>& entries, const std::string& server) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& entry) { return IsSameServer(entry, server); });
}

// A server or a cluster: unites it with the first entry that has one of its servers.
void AddEntry(std::string added, std::vector<std::string>* entries) {
  const auto same = std::find_if(entries->begin(), entries->end(), [&](const std::string& entry) {
    return IsSameServer(entry, added);
  });
  if (same == entries->end()) return entries->push_back(std::move(added));
  for (const std::string& server : ClusterServers(added)) {
    const bool has_room = ClusterServers(*same).size() < kClusterServersMax;
    if (has_room && !IsAmong(*entries, server)) same->append("|").append(server);
  }
}

void AddServers(const std::string& text, std::vector<std::string>* servers) {
  if (text.empty()) return;
  for (std::string& server : ParseServerList(text).servers) {
    if (!server.empty() && server != kEmbeddedServer) AddEntry(std::move(server), servers);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ConfiguredServersIn(
    absl::Span<const std::filesystem::path> directories) {
  std::vector<std::string> servers;
  AddServers(Variable(kServerVariable), &servers);
  H5M_ASSIGN_OR_RETURN(const std::string of_driver, ServersOfDriverConfig());
  AddServers(of_driver, &servers);
  for (const std::filesystem::path& directory : directories) {
    H5M_ASSIGN_OR_RETURN(const ClientFile file, ReadClientDirectory(directory));
    AddServers(file.server.value_or(""), &servers);
  }
  if (servers.empty()) servers.push_back("127.0.0.1:" + std::to_string(kDefaultPort));
  return servers;
}

absl::StatusOr<std::vector<std::string>> ConfiguredServers() {
  return ConfiguredServersIn(StandardDirectories());
}

std::optional<std::string> FindConfigured(absl::Span<const std::string> configured,
                                          std::string_view recorded) {
  std::optional<std::string> found;
  for (const std::string& entry : configured) {
    if (!IsSameServer(entry, recorded)) continue;
    if (found && *found != entry) return std::nullopt;
    found = entry;
  }
  return found;
}

}  // namespace h5mirror::rpc
