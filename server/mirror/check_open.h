// Bounds on the first message of a session.
#ifndef H5MIRROR_SERVER_MIRROR_CHECK_OPEN_H_
#define H5MIRROR_SERVER_MIRROR_CHECK_OPEN_H_

#include "absl/status/status.h"
#include "h5mirror/v1/mirror.pb.h"

namespace h5mirror::server {

// kInvalidArgument names the field and the value.
absl::Status CheckOpen(const v1::OpenSession& open);
// The same of a `join`.
absl::Status CheckJoin(const v1::JoinSession& join);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_CHECK_OPEN_H_
