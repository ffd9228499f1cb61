#include "client_vfd/plugin/host/told_once.h"

namespace h5mirror::vfd {

bool ToldOnce::IsNews(const std::string& file, const std::string& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (told_.size() >= kEntriesMax) told_.clear();
  return told_.emplace(file, event).second;
}

void ToldOnce::Forget(const std::string& file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto entry = told_.lower_bound({file, std::string()});
  while (entry != told_.end() && entry->first == file) entry = told_.erase(entry);
}

}  // namespace h5mirror::vfd
