#include "rpc/client_options.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/server_list.h"
#include "base/status_macros.h"
#include "rpc/client_files.h"
#include "rpc/client_places.h"
#include "rpc/server_address.h"

namespace h5mirror::rpc {
namespace {

// What the user gave, as strings; @FILE and PEM files are still to be read.
ClientFile FromSettings(const ClientSettings& settings) {
  ClientFile given;
  given.server = settings.server;
  if (const char* server = std::getenv(kServerVariable);
      !given.server && server != nullptr && *server != '\0') {
    given.server = server;
  }
  if (settings.ca) given.ca = *settings.ca;
  given.token = settings.token;
  return given;
}

}  // namespace

absl::StatusOr<ClientOptions> ResolveClientOptions(const ClientSettings& settings) {
  return ResolveClientOptionsIn(settings, StandardDirectories());
}

absl::StatusOr<ClientOptions> ResolveClientOptionsIn(
    const ClientSettings& settings, absl::Span<const std::filesystem::path> directories) {
  ClientFile merged = FromSettings(settings);
  for (const std::filesystem::path& directory : directories) {
    H5M_ASSIGN_OR_RETURN(ClientFile file, ReadClientDirectory(directory));
    if (!merged.server) merged.server = std::move(file.server);
    if (!merged.ca) merged.ca = std::move(file.ca);
    if (!merged.token) merged.token = std::move(file.token);
    if (!merged.root) merged.root = std::move(file.root);
  }
  if (merged.server) {
    const ServerList list = ParseServerList(*merged.server);
    if (!list.problem.empty()) {
      return absl::InvalidArgumentError("server '" + *merged.server + "': " + list.problem);
    }
    if (list.servers.size() > 1 && settings.server) {
      return absl::InvalidArgumentError("server '" + *merged.server +
                                        "' is a list, and one is to be asked: name that one");
    }
    merged.server = list.servers[0];
  }
  ClientOptions options;
  options.server = merged.server.value_or("127.0.0.1:" + std::to_string(kDefaultPort));
  H5M_ASSIGN_OR_RETURN(ServerAddress address, ParseServerAddress(options.server));
  options.target = std::move(address.target);
  options.loopback = address.loopback;
  options.root = merged.root.value_or("");
  if (merged.ca && !merged.ca->empty()) {
    H5M_ASSIGN_OR_RETURN(options.ca_pem, ReadCa(*merged.ca));
  }
  if (merged.token && !merged.token->empty()) {
    H5M_ASSIGN_OR_RETURN(options.token, ReadToken(*merged.token));
  }
  if (!options.token.empty() && options.ca_pem.empty() && !options.loopback) {
    return absl::InvalidArgumentError(
        "a token is set, but no CA: it would go to " + options.server +
        " in plain text. Set `ca` to the server's CA file, or the token to \"\"");
  }
  return options;
}

}  // namespace h5mirror::rpc
