// The server's address and credentials, from flags, environment and files.
#ifndef H5MIRROR_RPC_CLIENT_OPTIONS_H_
#define H5MIRROR_RPC_CLIENT_OPTIONS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rpc/server_address.h"

namespace h5mirror::rpc {

inline constexpr int kDefaultPort = 7447;

// Settings that the user gave; unset ones come from the files.
struct ClientSettings {
  // HOST[:PORT], [V6]:PORT or unix:PATH; of a cluster several, with '|' between two.
  std::optional<std::string> server = std::nullopt;
  std::optional<std::string> ca = std::nullopt;     // PEM file; TLS is spoken when it is set
  std::optional<std::string> token = std::nullopt;  // the token, @FILE, or IsMungeSource()
  // Where `server` comes from, for messages: "--server", or a file.
  std::string server_origin = "--server";
  // True: a munged that does not answer is no error. The token is then empty; ask for it later.
  bool may_miss_munge = false;
};

// Complete and checked: the CA and the token are read.
struct ClientOptions {
  std::string server;  // as given, for messages
  std::string origin;  // where the server's address comes from, for messages
  std::string target;  // for gRPC, e.g. "dns:///node7:7447"; of a cluster the first server's
  // The other servers of the cluster: any of them may be asked (rpc/server_route.h).
  std::vector<ServerAddress> others = {};
  std::string ca_pem;  // empty: plain text
  std::string token;   // empty: none
  // Where `token` came from, if there may be a newer one: "@FILE", which a login renews, or
  // IsMungeSource(). Empty: it stays.
  std::string token_source = {};
  // The client's certificate and its key, PEM; empty: none. Shown where TLS is spoken.
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::string root;       // names are relative to it; empty: HOST/absolute/path
  bool loopback = false;  // all: 127.0.0.0/8, ::1, localhost or a Unix socket
};

// Fills unset fields from H5MIRROR_SERVER, then client.toml in ~/.config/h5mirror and
// /etc/h5mirror (keys `server`, `ca`, `token`, `root`; `ca.pem`, `token`, `client.pem` with
// `client.key` beside it are used when they exist), then 127.0.0.1:7447. In each directory, the
// token of a login at that server (LoginToken()), or at the first server of a cluster that has one,
// goes before its other one. A token is refused where the channel to any of the servers is plain
// text and not loopback. If environment or file name several mirrors (base/server_list.h), the
// first counts; `settings` may name only one. An empty string for `ca` or `token` means none, and
// hides the files' value. Errors: kInvalidArgument names file, key and value; kNotFound a named
// file is missing;
//         kPermissionDenied a token file that others can read;
//         as MakeMungeToken(), which may wait for munged.
absl::StatusOr<ClientOptions> ResolveClientOptions(const ClientSettings& settings);

// The same, with the files in `directories`, the most important one first.
absl::StatusOr<ClientOptions> ResolveClientOptionsIn(
    const ClientSettings& settings, absl::Span<const std::filesystem::path> directories);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLIENT_OPTIONS_H_
