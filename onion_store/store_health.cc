#include "onion_store/store_health.h"

#include <utility>

#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

constexpr size_t kNoticesMax = 1000;

}  // namespace

void StoreNotices::Add(StoreNotice notice) {
  absl::MutexLock lock(&mutex_);
  if (notices_.size() < kNoticesMax) notices_.push_back(std::move(notice));
}

std::vector<StoreNotice> StoreNotices::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(notices_, {});
}

StoreHealth* StoreHealth::Of(Store& store) { return dynamic_cast<StoreHealth*>(&store); }

}  // namespace h5mirror::store
