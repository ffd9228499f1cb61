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
  // The user that h5mirrord runs as gets what it must read; empty: the caller.
  std::string user;
  int valid_days = 3650;
};

// Makes ca.pem, ca.key, server.pem, server.key, tokens, token (the first one, all rights) and
// h5mirrord.toml; all but ca.pem, server.pem and h5mirrord.toml are 0600. Where they are there and
// `hosts` is not empty, the authority that is there signs a new server certificate, for these hosts
// too; the old pair is kept beside it, and nothing else is changed. Returns what to tell the
// operator. Errors: kAlreadyExists    one of them is there, and no host is given; nothing was
// changed, and the message
//                           says how to go on.
//         kNotFound         no such user; a new certificate is wanted, and ca.pem or ca.key is
//         missing. kInvalidArgument  a host that is neither a name nor an address.
absl::StatusOr<std::string> InitDirectory(const InitOptions& options);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_INIT_H_
