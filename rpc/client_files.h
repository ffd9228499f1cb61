// The places of a client's options, and the files that hold them.
#ifndef H5MIRROR_RPC_CLIENT_FILES_H_
#define H5MIRROR_RPC_CLIENT_FILES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::rpc {

inline constexpr char kServerVariable[] = "H5MIRROR_SERVER";

// The directories of a client's configuration: ~/.config/h5mirror and /etc/h5mirror, the most
// important one first.
std::vector<std::filesystem::path> StandardDirectories();

// Where `h5mirror login` keeps the token for a server: tokens/SERVER in `directory`, SERVER as
// CanonicalServer() of base/server_list.h gives it, with %XX for characters other than letters,
// digits, '.' and '-'.
std::filesystem::path LoginToken(const std::filesystem::path& directory, std::string_view server);

// True: the file exists and is meant for this user. `h5mirrord init` puts the administrator's token
// into /etc/h5mirror, where all users of the host look for their own.
bool IsOursToRead(const std::filesystem::path& path);

// The options of one directory; unset: it has none. An empty string means "none", and hides the
// value of less important directories.
struct ClientFile {
  std::optional<std::string> server;
  std::optional<std::filesystem::path> ca;
  std::optional<std::string> token;  // the token, @FILE, or IsMungeSource()
  std::optional<std::string> root;   // names are relative to it; absolute, or empty
  // The client's own certificate, and its private key; both or neither.
  std::optional<std::filesystem::path> certificate;
  std::optional<std::filesystem::path> key;
};

// Reads `directory`/client.toml; relative paths in it start from `directory`. `ca.pem` and
// `token` beside it stand in for keys that are not set; `client.pem` and `client.key` are the
// client's certificate. Nothing there: nothing set. The driver's
// other keys may stand there too; it checks them itself.
// Errors: kInvalidArgument names file, key and value; kPermissionDenied client.toml holds a
//         token and others may read it, or it cannot be read.
absl::StatusOr<ClientFile> ReadClientDirectory(const std::filesystem::path& directory);

// The key `server` of another TOML file for the driver, several joined with commas; unset: it has
// none. Errors as above; kNotFound: no such file.
absl::StatusOr<std::optional<std::string>> ReadServerKey(const std::filesystem::path& path);

// Reads a PEM file. kInvalidArgument: it holds no certificate.
absl::StatusOr<std::string> ReadCa(const std::filesystem::path& path);

// Reads a private key, or the certificate that goes with it. Messages never show them.
// Errors: kNotFound; kPermissionDenied others may read the file of the key.
absl::StatusOr<std::string> ReadClientKey(const std::filesystem::path& path);
absl::StatusOr<std::string> ReadClientCertificate(const std::filesystem::path& path);

// The token itself, or the content of @FILE, without white space around it. Messages never show it.
// Errors: kNotFound; kPermissionDenied others may read the file; kInvalidArgument not
//         1..12288 visible ASCII characters.
absl::StatusOr<std::string> ReadToken(const std::string& token);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLIENT_FILES_H_
