// The files whose commits make no version at the moment: Store::StopHistory().
#ifndef H5MIRROR_ONION_STORE_SHARED_HISTORY_STOPS_H_
#define H5MIRROR_ONION_STORE_SHARED_HISTORY_STOPS_H_

#include <atomic>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::store {

// Thread-safe. "" stands for all files.
class HistoryStops {
 public:
  void Stop(std::string_view name);
  void Resume(std::string_view name);
  // Costs one load if nothing is stopped.
  bool Has(const std::string& name) const;

 private:
  mutable absl::Mutex mutex_;
  std::atomic<bool> any_{false};
  absl::flat_hash_set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_HISTORY_STOPS_H_
