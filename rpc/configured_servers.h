// Which servers are the user's own. A token goes to no other one, whatever a file's record says:
// whoever can write beside a file could name any.
#ifndef H5MIRROR_RPC_CONFIGURED_SERVERS_H_
#define H5MIRROR_RPC_CONFIGURED_SERVERS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror::rpc {

// All servers of H5MIRROR_SERVER, of `server` in HDF5_DRIVER_CONFIG (or in the file @FILE that it
// names), and of client.toml in ~/.config/h5mirror and /etc/h5mirror; each may name several.
// Nothing of that: 127.0.0.1:7447. "embedded" is none.
// Errors: those of ReadClientDirectory().
absl::StatusOr<std::vector<std::string>> ConfiguredServers();

// The same, with the files in `directories`.
absl::StatusOr<std::vector<std::string>> ConfiguredServersIn(
    absl::Span<const std::filesystem::path> directories);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CONFIGURED_SERVERS_H_
