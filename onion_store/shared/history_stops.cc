#include "onion_store/shared/history_stops.h"

namespace h5mirror::store {

void HistoryStops::Stop(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  names_.insert(std::string(name));
  any_ = true;
}

void HistoryStops::Resume(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  names_.erase(std::string(name));
  any_ = !names_.empty();
}

bool HistoryStops::Has(const std::string& name) const {
  if (!any_) return false;
  absl::MutexLock lock(&mutex_);
  return names_.contains("") || names_.contains(name);
}

}  // namespace h5mirror::store
