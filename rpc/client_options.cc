#include "rpc/client_options.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/server_list.h"
#include "base/status_macros.h"
#include "rpc/client_files.h"
#include "rpc/munge_token.h"
#include "rpc/server_address.h"

namespace h5mirror::rpc {
namespace {

// The user's settings as strings; @FILE and PEM files are read later.
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

struct MergedSettings : ClientFile {
  std::string origin = "the default: nothing names a server";
  std::vector<std::optional<std::string>> tokens = {};  // of each directory
};

// The first of the settings and `directories` that has a key decides it.
absl::StatusOr<MergedSettings> Merge(const ClientSettings& settings,
                                     absl::Span<const std::filesystem::path> directories) {
  MergedSettings merged{FromSettings(settings)};
  if (merged.server) merged.origin = settings.server ? settings.server_origin : kServerVariable;
  for (const std::filesystem::path& directory : directories) {
    H5M_ASSIGN_OR_RETURN(ClientFile file, ReadClientDirectory(directory));
    if (!merged.server && file.server) {
      merged.server = std::move(file.server);
      merged.origin = "server in " + (directory / "client.toml").native();
    }
    if (!merged.ca) merged.ca = std::move(file.ca);
    merged.tokens.push_back(std::move(file.token));
    if (!merged.root) merged.root = std::move(file.root);
    if (!merged.certificate) {
      merged.certificate = std::move(file.certificate);
      merged.key = std::move(file.key);
    }
  }
  return merged;
}

// The server of `text` that is asked, or its cluster: the first of a list, which only files may
// have.
absl::StatusOr<std::string> ChooseServer(const std::string& text, const ClientSettings& settings) {
  const ServerList list = ParseServerList(text);
  if (!list.problem.empty()) {
    return absl::InvalidArgumentError("server '" + text + "': " + list.problem);
  }
  if (list.servers.size() > 1 && settings.server) {
    return absl::InvalidArgumentError("server '" + text +
                                      "' is a list, and one is to be asked: name that one");
  }
  return list.servers[0];
}

// The token of a login at one of the servers of `cluster`. Unset: there is none in `directory`.
std::optional<std::string> FindLogin(const std::filesystem::path& directory,
                                     const std::string& cluster) {
  for (const std::string& server : ClusterServers(cluster)) {
    const std::filesystem::path login = LoginToken(directory, server);
    if (IsOursToRead(login)) return "@" + login.native();
  }
  return std::nullopt;
}

// The token of the most important directory that has one: of a login at `server`, or its other one.
void FindToken(const std::string& server, absl::Span<const std::filesystem::path> directories,
               MergedSettings* merged) {
  for (size_t i = 0; i < directories.size() && !merged->token; ++i) {
    merged->token = FindLogin(directories[i], server);
    if (!merged->token) merged->token = merged->tokens[i];
  }
}

absl::Status SetAddresses(ClientOptions* options) {
  const std::vector<std::string> servers = ClusterServers(options->server);
  H5M_ASSIGN_OR_RETURN(const ServerAddress first, ParseServerAddress(servers.front()));
  options->target = first.target;
  options->loopback = first.loopback;
  for (size_t i = 1; i < servers.size(); ++i) {
    H5M_ASSIGN_OR_RETURN(options->others.emplace_back(), ParseServerAddress(servers[i]));
    options->loopback = options->loopback && options->others.back().loopback;
  }
  return absl::OkStatus();
}

// A program that is not ours waits so long for munged when it opens a file.
constexpr absl::Duration kMungeWait = absl::Seconds(1);

absl::StatusOr<std::string> TokenOf(const std::string& source, const std::string& target,
                                    bool may_miss_munge) {
  if (!IsMungeSource(source)) return ReadToken(source);
  if (!may_miss_munge) return MakeMungeToken(source, target);
  absl::StatusOr<std::string> token = MakeMungeToken(source, target, kMungeWait);
  if (absl::IsUnavailable(token.status())) return "";
  return token;
}

// Reads the files that `merged` names.
absl::Status ReadCredentials(const ClientFile& merged, bool may_miss_munge,
                             ClientOptions* options) {
  if (merged.ca && !merged.ca->empty()) {
    H5M_ASSIGN_OR_RETURN(options->ca_pem, ReadCa(*merged.ca));
  }
  if (merged.token && !merged.token->empty()) {
    H5M_ASSIGN_OR_RETURN(options->token, TokenOf(*merged.token, options->target, may_miss_munge));
    if (IsMungeSource(*merged.token) || merged.token->starts_with('@')) {
      options->token_source = *merged.token;
    }
  }
  if (merged.certificate && !options->ca_pem.empty()) {
    H5M_ASSIGN_OR_RETURN(options->certificate_pem, ReadClientCertificate(*merged.certificate));
    H5M_ASSIGN_OR_RETURN(options->key_pem, ReadClientKey(*merged.key));
  }
  const bool has_token = !options->token.empty() || IsMungeSource(options->token_source);
  if (has_token && options->ca_pem.empty() && !options->loopback) {
    return absl::InvalidArgumentError(
        "a token is set, but no CA: it would go to " + options->server +
        " in plain text. Set `ca` to the server's CA file, or the token to \"\"");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClientOptions> ResolveClientOptions(const ClientSettings& settings) {
  return ResolveClientOptionsIn(settings, StandardDirectories());
}

absl::StatusOr<ClientOptions> ResolveClientOptionsIn(
    const ClientSettings& settings, absl::Span<const std::filesystem::path> directories) {
  H5M_ASSIGN_OR_RETURN(MergedSettings merged, Merge(settings, directories));
  ClientOptions options;
  options.origin = merged.origin;
  options.server = "127.0.0.1:" + std::to_string(kDefaultPort);
  if (merged.server) {
    H5M_ASSIGN_OR_RETURN(options.server, ChooseServer(*merged.server, settings));
  }
  H5M_RETURN_IF_ERROR(SetAddresses(&options));
  options.root = merged.root.value_or("");
  FindToken(options.server, directories, &merged);
  H5M_RETURN_IF_ERROR(ReadCredentials(merged, settings.may_miss_munge, &options));
  return options;
}

}  // namespace h5mirror::rpc
