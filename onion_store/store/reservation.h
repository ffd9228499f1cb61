// Keeps names from other calls while a call moves, removes or deletes the files of these names.
#ifndef H5MIRROR_ONION_STORE_STORE_RESERVATION_H_
#define H5MIRROR_ONION_STORE_STORE_RESERVATION_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/store/store_impl.h"

namespace h5mirror::store {

class StoreImpl::Reservation {
 public:
  // Waits until no other call loads or moves any of the files. kUnavailable: the store is closed.
  static absl::StatusOr<std::unique_ptr<Reservation>> Take(StoreImpl& store,
                                                           std::vector<std::string> names) {
    absl::MutexLock lock(&store.mutex_);
    auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store.mutex_) {
      return std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store.mutex_) {
                            auto at = store.slots_.find(name);
                            return at != store.slots_.end() && at->second.loading;
                          });
    };
    store.mutex_.Await(absl::Condition(&free));
    if (store.closed_) return absl::UnavailableError("the store is closed");
    for (const std::string& name : names) store.slots_[name].loading = true;
    return std::unique_ptr<Reservation>(new Reservation(store, std::move(names)));
  }
  ~Reservation() {
    absl::MutexLock lock(&store_.mutex_);
    for (const std::string& name : names_) store_.slots_[name].loading = false;
  }

 private:
  Reservation(StoreImpl& store, std::vector<std::string> names)
      : store_(store), names_(std::move(names)) {}
  StoreImpl& store_;
  const std::vector<std::string> names_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_RESERVATION_H_
