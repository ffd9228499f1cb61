// States in one word, for logs and reports.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STATE_NAME_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STATE_NAME_H_

#include <array>
#include <cstddef>

#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

inline const char* StateName(H5mState state) {
  constexpr std::array<const char*, 9> kNames = {"off",       "unchanged", "connecting",
                                                 "mirroring", "behind",    "diverged",
                                                 "clean",     "reading",   "resyncing"};
  return static_cast<size_t>(state) < kNames.size() ? kNames[static_cast<size_t>(state)]
                                                    : "unknown";
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STATE_NAME_H_
