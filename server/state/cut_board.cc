#include "server/state/cut_board.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace h5mirror::server {

uint64_t CutBoard::Wait(std::string_view name, absl::Duration timeout, Waiter waiter) {
  uint64_t id;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_id_;
    if (!stopped_) {
      waiting_[std::string(name)].push_back(
          {id, clock_.Monotonic() + timeout, std::exchange(waiter, nullptr)});
    }
  }
  if (waiter != nullptr) waiter(Why::kStopped);
  return id;
}

bool CutBoard::Cancel(std::string_view name, uint64_t id) {
  Waiter cancelled;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = waiting_.find(name);
  if (found == waiting_.end()) return false;
  Entries& entries = found->second;
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& each) { return each.id == id; });
  if (entry == entries.end()) return false;
  cancelled = std::move(entry->waiter);
  entries.erase(entry);
  if (entries.empty()) waiting_.erase(found);
  return true;
}

void CutBoard::OnCut(std::string_view name) {
  Entries due;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) return;
    due = std::move(found->second);
    waiting_.erase(found);
  }
  for (const Entry& entry : due) entry.waiter(Why::kCut);
}

void CutBoard::OnCutBelow(std::string_view prefix) {
  Entries due;
  {
    absl::MutexLock lock(&mutex_);
    auto at = waiting_.lower_bound(prefix);
    while (at != waiting_.end() && at->first.starts_with(prefix)) {
      std::move(at->second.begin(), at->second.end(), std::back_inserter(due));
      at = waiting_.erase(at);
    }
  }
  for (const Entry& entry : due) entry.waiter(Why::kCut);
}

void CutBoard::OnTimer() {
  Entries due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Monotonic();
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      Entries& entries = at->second;
      const auto late = std::stable_partition(
          entries.begin(), entries.end(), [&](const Entry& entry) { return entry.until > now; });
      std::move(late, entries.end(), std::back_inserter(due));
      entries.erase(late, entries.end());
      at = entries.empty() ? waiting_.erase(at) : std::next(at);
    }
  }
  for (const Entry& entry : due) entry.waiter(Why::kTimeout);
}

void CutBoard::Stop() {
  std::map<std::string, Entries, std::less<>> waiting;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& [name, entries] : waiting) {
    for (const Entry& entry : entries) entry.waiter(Why::kStopped);
  }
}

size_t CutBoard::size() {
  absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [name, entries] : waiting_) count += entries.size();
  return count;
}

}  // namespace h5mirror::server
