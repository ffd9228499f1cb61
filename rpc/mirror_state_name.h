// The names of mirror states, for all programs of h5mirror.
#ifndef H5MIRROR_RPC_MIRROR_STATE_NAME_H_
#define H5MIRROR_RPC_MIRROR_STATE_NAME_H_

#include "h5mirror/v1/types.pb.h"

namespace h5mirror::rpc {

// "connected", "degraded", "resyncing", "in sync", "diverged"; "unknown".
inline const char* MirrorStateName(v1::MirrorState state) {
  switch (state) {
    case v1::MIRROR_STATE_CONNECTED:
      return "connected";
    case v1::MIRROR_STATE_DEGRADED:
      return "degraded";
    case v1::MIRROR_STATE_RESYNCING:
      return "resyncing";
    case v1::MIRROR_STATE_IN_SYNC:
      return "in sync";
    case v1::MIRROR_STATE_DIVERGED:
      return "diverged";
    default:
      return "unknown";
  }
}

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_MIRROR_STATE_NAME_H_
