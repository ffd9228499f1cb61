#include "server/state/recent_files.h"

#include <algorithm>
#include <utility>

namespace h5mirror::server {

void RecentFiles::Keep(std::shared_ptr<store::File> file) {
  Entries gone;  // Destroyed after the lock is released.
  absl::MutexLock lock(&mutex_);
  const auto same = [&](const Entry& entry) { return entry.file == file; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) entries_.erase(found);  // `file` holds it.
  entries_.push_back({std::move(file), clock_.Monotonic() + kKeep});
  if (entries_.size() > kFilesMax) gone.splice(gone.begin(), entries_, entries_.begin());
}

RecentFiles::Entries RecentFiles::TakeUntil(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  Entries taken;
  const auto later = [&](const Entry& entry) { return entry.until > time; };
  const auto end = std::find_if(entries_.begin(), entries_.end(), later);
  taken.splice(taken.begin(), entries_, entries_.begin(), end);
  return taken;
}

void RecentFiles::OnTimer() { TakeUntil(clock_.Monotonic()); }
void RecentFiles::Clear() { TakeUntil(absl::InfiniteDuration()); }

size_t RecentFiles::size() {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace h5mirror::server
