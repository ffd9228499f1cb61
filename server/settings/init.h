// `h5mirrord init`: everything that TLS between two machines needs, in one directory.
#ifndef H5MIRROR_SERVER_SETTINGS_INIT_H_
#define H5MIRROR_SERVER_SETTINGS_INIT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

struct InitOptions {
  std::filesystem::path directory = "/etc/h5mirror";
  // Names and addresses besides the machine's own under which clients reach the server.
  std::vector<std::string> hosts;
  // The user of h5mirrord, which gets the files that h5mirrord must read; empty: the caller.
  std::string user;
  int valid_days = 3650;
};

// Makes ca.pem, ca.key, server.pem, server.key, tokens, token (the first one, all rights) and
// h5mirrord.toml; all but ca.pem, server.pem and h5mirrord.toml are 0600. If they exist and `hosts`
// is not empty, the existing authority signs a new server certificate, for these hosts too. The old
// pair stays beside it, and nothing else is changed. Returns text for the operator.
// Errors: kAlreadyExists    a file exists, and no host is given. Nothing was changed; the message
//                           says how to go on.
//         kNotFound         no such user; or ca.pem or ca.key is missing for a new certificate.
//         kInvalidArgument  a host that is neither a name nor an address.
absl::StatusOr<std::string> InitDirectory(const InitOptions& options);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_INIT_H_
