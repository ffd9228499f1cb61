// Which sessions began a new generation, for as long as the server runs: a client that
// resumes one of which no cut survived must begin it again, and not go on from the old head.
#ifndef H5MIRROR_SERVER_SESSION_MEMORY_H_
#define H5MIRROR_SERVER_SESSION_MEMORY_H_

#include <cstddef>
#include <deque>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// Thread-safe. Holds the newest `kept_max` sessions.
class SessionMemory {
 public:
  explicit SessionMemory(size_t kept_max = 65536) : kept_max_(kept_max) {}

  void RememberNew(const store::SessionId& session_id) {
    absl::MutexLock lock(&mutex_);
    if (!sessions_.insert(session_id).second) return;
    order_.push_back(session_id);
    if (order_.size() <= kept_max_) return;
    sessions_.erase(order_.front());
    order_.pop_front();
  }

  bool BeganNew(const store::SessionId& session_id) const {
    absl::MutexLock lock(&mutex_);
    return sessions_.count(session_id) != 0;
  }

 private:
  const size_t kept_max_;
  mutable absl::Mutex mutex_;
  std::set<store::SessionId> sessions_ ABSL_GUARDED_BY(mutex_);
  std::deque<store::SessionId> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SESSION_MEMORY_H_
