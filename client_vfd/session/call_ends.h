// Classifies the status that ended a reader's call: is its server away, lost or only busy?
#ifndef H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_

#include "absl/status/status.h"
#include "rpc/elsewhere.h"

namespace h5mirror::vfd {

inline bool IsAway(const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) return true;
  return absl::IsUnavailable(status) && !rpc::ElsewhereOf(status).has_value();
}

// The server knows nobody by this token, or gives its user no right. kNotFound: none at all to that
// name.
inline bool RefusesUser(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsNotFound(status);
}

// The connection broke, or the server has all of its threads at work for others just now.
inline bool IsPassing(const absl::Status& status) {
  if (rpc::ElsewhereOf(status).has_value()) return false;
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// True: a stream that had begun was cut short. It can begin anew, here or at another server.
inline bool IsCutShort(const absl::Status& status) {
  return IsAway(status) || IsPassing(status) || absl::IsUnavailable(status);
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_CALL_ENDS_H_
