// The directories of a client's configuration.
#ifndef H5MIRROR_RPC_CLIENT_PLACES_H_
#define H5MIRROR_RPC_CLIENT_PLACES_H_

#include <filesystem>
#include <vector>

namespace h5mirror::rpc {

inline constexpr char kServerVariable[] = "H5MIRROR_SERVER";

// ~/.config/h5mirror and /etc/h5mirror, the most important one first.
std::vector<std::filesystem::path> StandardDirectories();

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLIENT_PLACES_H_
