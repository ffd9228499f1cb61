#include "ceph/fence.h"

#include <errno.h>

#include "base/strings.h"

namespace h5mirror::ceph {

bool MeansFenced(int error) {
  // Ceph's EBLOCKLISTED is ESHUTDOWN. libcephfs answers EBADF for files of a session before this
  // one, and all of ours belong to one session.
  return error == ESHUTDOWN || error == ENOTCONN || error == EBADF;
}

absl::Status Fence::Check() const {
  if (!is_tripped()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return absl::InternalError(StrCat("this server is fenced off from CephFS: ", why_));
}

absl::Status Fence::Trip(const std::string& why) {
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    is_first = !is_tripped();
    if (is_first) why_ = why;
    is_tripped_.store(true, std::memory_order_release);
  }
  if (is_first && listener_ != nullptr) listener_(why);
  return Check();
}

}  // namespace h5mirror::ceph
