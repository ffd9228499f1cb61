// What the end of a reader's call says of its server.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_

#include "absl/status/status.h"
#include "rpc/elsewhere.h"

namespace h5mirror::vfd {

inline bool IsAway(const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) return true;
  return absl::IsUnavailable(status) && !rpc::ElsewhereOf(status).has_value();
}

// The connection broke, or the server has all of its threads at work for others just now.
inline bool IsPassing(const absl::Status& status) {
  if (rpc::ElsewhereOf(status).has_value()) return false;
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// A stream that has begun ends so, and would begin anew, here or at another server.
inline bool IsCutShort(const absl::Status& status) {
  return IsAway(status) || IsPassing(status) || absl::IsUnavailable(status);
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_
