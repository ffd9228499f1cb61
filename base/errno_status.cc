#include "base/errno_status.h"

#include <cerrno>
#include <system_error>

#include "base/strings.h"

namespace h5mirror {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case 0:
      return absl::StatusCode::kOk;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EAGAIN:
    case EBUSY:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case EINTR:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOLCK:
    case ENOTCONN:
    case EPIPE:
    case ESTALE:
    case ETIMEDOUT:
    case ETXTBSY:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrnoToStatus(int error, std::string_view what) {
  return absl::Status(CodeOf(error), StrCat(what, ": ", std::generic_category().message(error)));
}

}  // namespace h5mirror
