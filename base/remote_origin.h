// The path in the origin of a file that is written without a local file (mode=remote). No local
// file can have this path, and each session has a different one.
#ifndef H5MIRROR_BASE_REMOTE_ORIGIN_H_
#define H5MIRROR_BASE_REMOTE_ORIGIN_H_

#include <string>
#include <string_view>

#include "base/hex.h"

namespace h5mirror {

inline constexpr std::string_view kRemoteOrigin = "(mode=remote";

// "(mode=remote, session 3f2a91c0)"
inline std::string RemoteOriginOf(const Bytes16& session_id) {
  std::string path(kRemoteOrigin);
  path += ", session ";
  path.append(HexOf(session_id), 0, 8);
  path += ')';
  return path;
}

inline bool IsRemoteOrigin(std::string_view path) { return path.starts_with(kRemoteOrigin); }

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_REMOTE_ORIGIN_H_
