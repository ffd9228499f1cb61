#include "server/state/write_rates.h"

#include <algorithm>

#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr auto kCount = static_cast<int64_t>(WriteRates::kIntervals);

size_t SlotOf(int64_t interval) { return static_cast<size_t>(interval % kCount); }

}  // namespace

int64_t WriteRates::Now() const { return clock_.Monotonic() / kInterval; }

void WriteRates::Add(const Bytes16& file_id, uint64_t bytes) {
  if (bytes == 0) return;
  const int64_t now = Now();
  absl::MutexLock lock(&mutex_);
  auto place = places_.find(file_id);
  if (place == places_.end()) {
    MakeRoom(now);
    entries_.push_back({file_id, now, {}});
    place = places_.emplace(file_id, std::prev(entries_.end())).first;
  } else {
    entries_.splice(entries_.end(), entries_, place->second);
  }
  Entry& entry = *place->second;
  // Intervals without bytes, since the newest one; all of them, if that is long ago.
  for (int64_t i = std::max(entry.newest, now - kCount) + 1; i <= now; ++i) {
    entry.bytes[SlotOf(i)] = 0;
  }
  entry.newest = std::max(entry.newest, now);
  entry.bytes[SlotOf(now)] += bytes;
}

void WriteRates::MakeRoom(int64_t now) {
  while (!entries_.empty()) {
    const bool is_stale = entries_.front().newest <= now - kCount;
    if (!is_stale && entries_.size() < files_max_) return;
    Erase(entries_.begin());
  }
}

void WriteRates::Erase(Entries::iterator entry) {
  places_.erase(entry->file_id);
  entries_.erase(entry);
}

void WriteRates::Forget(const Bytes16& file_id) {
  absl::MutexLock lock(&mutex_);
  const auto place = places_.find(file_id);
  if (place != places_.end()) Erase(place->second);
}

std::optional<v1::RecentWrites> WriteRates::Of(const Bytes16& file_id) const {
  const int64_t now = Now();
  const absl::Duration left = (now + 1) * kInterval - clock_.Monotonic();
  absl::MutexLock lock(&mutex_);
  const auto place = places_.find(file_id);
  if (place == places_.end()) return std::nullopt;
  const Entry& entry = *place->second;
  const int64_t first = now - kCount + 1;
  if (entry.newest < first) return std::nullopt;
  v1::RecentWrites writes;
  writes.set_interval_seconds(static_cast<int32_t>(absl::ToInt64Seconds(kInterval)));
  *writes.mutable_end_time() = ToProto(clock_.Now() + left);
  writes.mutable_received_bytes()->Reserve(static_cast<int>(kCount));
  for (int64_t i = first; i <= now; ++i) {
    // Before the first interval that ever was, and behind the newest one with bytes.
    const bool is_in = i >= 0 && i <= entry.newest && i > entry.newest - kCount;
    writes.add_received_bytes(is_in ? static_cast<int64_t>(entry.bytes[SlotOf(i)]) : 0);
  }
  return writes;
}

size_t WriteRates::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace h5mirror::server
