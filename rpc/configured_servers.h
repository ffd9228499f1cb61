// The servers that the user has configured. A token goes to no other server, also if a file's
// record names one: any user with write access beside a file could write that name.
#ifndef H5MIRROR_RPC_CONFIGURED_SERVERS_H_
#define H5MIRROR_RPC_CONFIGURED_SERVERS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror::rpc {

// The servers and clusters of H5MIRROR_SERVER, of `server` in HDF5_DRIVER_CONFIG (or in the file
// @FILE that it names), and of client.toml in ~/.config/h5mirror and /etc/h5mirror. Each may name
// several. If none does: 127.0.0.1:7447. "embedded" does not count. Two lists of one cluster are
// united, but a server that another entry has stays there: mirrors do not become one. Errors: those
// of ReadClientDirectory().
absl::StatusOr<std::vector<std::string>> ConfiguredServers();

// The same, with the files in `directories`.
absl::StatusOr<std::vector<std::string>> ConfiguredServersIn(
    absl::Span<const std::filesystem::path> directories);

// The entry of `configured` that has a server in common with `recorded`, which is what a file's
// record names. Ask this entry, never `recorded`: with `recorded`, a login at one of its servers
// would be sent to all of them. Unset: no entry has one, or several have.
std::optional<std::string> FindConfigured(absl::Span<const std::string> configured,
                                          std::string_view recorded);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CONFIGURED_SERVERS_H_
