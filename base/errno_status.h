// errno -> absl::Status, one mapping for all rooms.
#ifndef H5MIRROR_BASE_ERRNO_STATUS_H_
#define H5MIRROR_BASE_ERRNO_STATUS_H_

#include <string_view>

#include "absl/status/status.h"

namespace h5mirror {

// The message is "`what`: <text of error>"; `what` names the call and the path, e.g. "open
// /data/run7.h5".
//
// kResourceExhausted  no space, quota, memory or descriptors left, file too large
// kNotFound           the path does not exist
// kAlreadyExists      the path exists
// kPermissionDenied   not allowed, or a read-only filesystem
// kInvalidArgument    the path is of a wrong kind, too long or a symlink loop
// kUnavailable        the cause may go away by itself: interrupted, busy, network
// kInternal           all others, among them I/O errors of the device
absl::Status ErrnoToStatus(int error, std::string_view what);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_ERRNO_STATUS_H_
