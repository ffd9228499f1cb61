// The errno that a program sees where a module of ours fails: one table for all of them.
#ifndef H5MIRROR_CLIENT_VFD_API_ERRNO_OF_H_
#define H5MIRROR_CLIENT_VFD_API_ERRNO_OF_H_

#include <cerrno>

#include "absl/status/status.h"

namespace h5mirror::vfd {

// Where the failed call was to be done.
enum class Done { kByServer, kInProgram };

//                                        by a server    in the program (server=embedded)
// kNotFound, kOutOfRange                 ENOENT         ENOENT
// kAlreadyExists                         EEXIST         EEXIST
// kAborted           (moved on)          ESTALE         ESTALE
// kPermissionDenied, kUnauthenticated    EACCES         EACCES
// kFailedPrecondition                    EPERM          EPERM
// kInvalidArgument                       EINVAL         EINVAL
// kResourceExhausted                     EAGAIN (limit) ENOSPC (disk)
// kUnavailable                           ECONNREFUSED   EAGAIN (a file in use, or no threads)
// kDeadlineExceeded                      ETIMEDOUT      ETIMEDOUT
// all others                             EIO            EIO
inline int ErrnoOf(const absl::Status& status, Done done) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return ENOENT;
    case absl::StatusCode::kAlreadyExists:
      return EEXIST;
    case absl::StatusCode::kAborted:
      return ESTALE;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return EACCES;
    case absl::StatusCode::kFailedPrecondition:
      return EPERM;
    case absl::StatusCode::kInvalidArgument:
      return EINVAL;
    case absl::StatusCode::kResourceExhausted:
      return done == Done::kByServer ? EAGAIN : ENOSPC;
    case absl::StatusCode::kUnavailable:
      return done == Done::kByServer ? ECONNREFUSED : EAGAIN;
    case absl::StatusCode::kDeadlineExceeded:
      return ETIMEDOUT;
    default:
      return EIO;
  }
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_API_ERRNO_OF_H_
