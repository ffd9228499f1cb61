// Once fenced, always fenced: the memory that this client must touch Ceph no more. Why a server
// is fenced, and by which signs it knows: docs/design/048-ceph.md.
#ifndef H5MIRROR_CEPH_FENCE_H_
#define H5MIRROR_CEPH_FENCE_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::ceph {

// Whether an errno of libcephfs, of a call with a valid handle, says that the session is gone.
bool MeansFenced(int error);

// Thread-safe.
class Fence {
 public:
  // Told once, by the thread that notices, with no lock held. May end the process. Null: nobody is.
  using Listener = std::function<void(const std::string& why)>;
  explicit Fence(Listener listener) : listener_(std::move(listener)) {}

  // kInternal from the first Trip() on. Not kUnavailable, which callers retry.
  absl::Status Check() const;
  bool is_tripped() const { return is_tripped_.load(std::memory_order_acquire); }
  // The first reason counts. The result is that of Check().
  absl::Status Trip(const std::string& why);

 private:
  const Listener listener_;
  std::atomic<bool> is_tripped_{false};
  mutable absl::Mutex mutex_;
  std::string why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_FENCE_H_
