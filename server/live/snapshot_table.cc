#include "server/live/snapshot_table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/status_macros.h"

namespace h5mirror::server {

absl::StatusOr<SnapshotTable::SnapshotPtr> SnapshotTable::Open(store::File& file,
                                                               const std::string& reader) {
  H5M_ASSIGN_OR_RETURN(SnapshotPtr snapshot, file.PinNewestCut());
  // It can be read as long as the version is kept, and then by nobody.
  if (snapshot->info().version == 0) Pin(file, snapshot, reader);
  return snapshot;
}

void SnapshotTable::Pin(store::File& file, const SnapshotPtr& snapshot, const std::string& reader) {
  Put(file, snapshot, reader, std::nullopt);
}

SnapshotTable::CallId SnapshotTable::NewCall() {
  absl::MutexLock lock(&mutex_);
  return ++last_call_;
}

void SnapshotTable::PinInCall(store::File& file, const SnapshotPtr& snapshot,
                              const std::string& reader, CallId call) {
  Put(file, snapshot, reader, call);
}

// A thousand calls may end at once, each with hundreds of cuts. So each looks only at its own cuts.
void SnapshotTable::EndCall(std::string_view name, CallId call) {
  absl::MutexLock lock(&mutex_);
  const auto ended = calls_.extract(call);
  if (ended.empty()) return;
  const absl::Duration until = clock_.Monotonic() + keep_;
  for (const store::CutNumber cut : ended.mapped().cuts) {
    const auto entry = entries_.find(Key(name, cut));
    if (entry == entries_.end()) continue;
    const auto reader = entry->second.readers.find(ended.mapped().reader);
    if (reader == entry->second.readers.end() || !reader->second.HasCall(call)) continue;
    auto& calls = reader->second.calls;
    calls.erase(std::remove(calls.begin(), calls.end(), call), calls.end());
    if (calls.empty()) LetGoAt(until, reader->second, entry->second);
  }
}

bool SnapshotTable::Reader::HasCall(CallId call) const {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

void SnapshotTable::LetGoAt(absl::Duration until, Reader& reader, Entry& entry) {
  reader.until = until;
  entry.first_until = std::min(entry.first_until, until);
}

void SnapshotTable::NoteCall(const std::string& name, store::CutNumber cut,
                             const std::string& reader, CallId id) {
  Call& call = calls_[id];
  call.reader = reader;
  // Cuts before the oldest one in the table have expired.
  const auto oldest = entries_.lower_bound(Key(name, 0));
  while (!call.cuts.empty() && call.cuts.front() < oldest->first.second) call.cuts.pop_front();
  call.cuts.push_back(cut);
}

void SnapshotTable::Put(store::File& file, const SnapshotPtr& snapshot, const std::string& reader,
                        std::optional<CallId> call) {
  const store::CutNumber cut = snapshot->info().cut;
  SnapshotPtr stale;  // let go of without the lock
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[Key(file.name(), cut)];
    // The entry's snapshot may have expired, or be of a file that was opened again since.
    if (entry.snapshot != nullptr) stale = std::move(entry.snapshot);
    if (entry.file_id != file.file_id()) entry = Entry();
    entry.file_id = file.file_id();
    entry.snapshot = snapshot;
    entry.until = absl::InfiniteDuration();
    Reader& holder = entry.readers[reader];
    holder.until = absl::InfiniteDuration();
    if (call && !holder.HasCall(*call)) {
      holder.calls.push_back(*call);
      NoteCall(file.name(), cut, reader, *call);
    }
  }
  // A newer cut that came before the entry was there told it nothing.
  const store::CutNumber newest = file.NewestCut();
  if (newest != cut) OnCut(file.name(), newest);
}

std::optional<SnapshotTable::Pinned> SnapshotTable::OpenAt(std::string_view name,
                                                           const store::FileId& file_id,
                                                           absl::Time time,
                                                           const std::string& reader) {
  absl::MutexLock lock(&mutex_);
  auto at = entries_.upper_bound(Key(name, INT64_MAX));
  while (at != entries_.begin()) {
    --at;
    if (at->first.first != name) break;
    Entry& entry = at->second;
    if (entry.file_id != file_id) continue;  // of a file that had the name before
    if (entry.snapshot->info().time > time || entry.snapshot->expired()) continue;
    if (entry.followed <= time) break;  // By then there was a newer one, which nobody has.
    entry.readers[reader].until = absl::InfiniteDuration();
    return Pinned{entry.snapshot, entry.file_id};
  }
  return std::nullopt;
}

std::optional<SnapshotTable::Pinned> SnapshotTable::Find(std::string_view name,
                                                         store::CutNumber cut,
                                                         std::string_view file_id,
                                                         const std::string& reader) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(Key(name, cut));
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (!file_id.empty() && file_id != std::string(entry.file_id.begin(), entry.file_id.end())) {
    return std::nullopt;
  }
  if (reader.empty()) return Pinned{entry.snapshot, entry.file_id};
  const auto [holder, is_new] = entry.readers.try_emplace(reader);
  const bool by_reading = is_new || holder->second.until != absl::InfiniteDuration();
  if (by_reading) LetGoAt(clock_.Monotonic() + keep_, holder->second, entry);
  return Pinned{entry.snapshot, entry.file_id};
}

void SnapshotTable::Close(std::string_view name, store::CutNumber cut, const std::string& reader) {
  SnapshotPtr released;  // let go of without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(Key(name, cut));
  if (found == entries_.end() || found->second.readers.erase(reader) == 0) return;
  if (!found->second.readers.empty()) return;
  released = std::move(found->second.snapshot);
  entries_.erase(found);
}

void SnapshotTable::OnCut(std::string_view name, store::CutNumber cut) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration until = clock_.Monotonic() + keep_;
  for (auto at = entries_.lower_bound(Key(name, 0));
       at != entries_.end() && at->first.first == name && at->first.second < cut; ++at) {
    at->second.until = std::min(at->second.until, until);
    at->second.followed = std::min(at->second.followed, clock_.Now());
  }
}

void SnapshotTable::Entry::DropReaders(absl::Duration now) {
  first_until = absl::InfiniteDuration();
  std::erase_if(readers, [&](const auto& entry) {
    const Reader& reader = entry.second;
    if (!reader.calls.empty()) return false;
    if (reader.until > now) first_until = std::min(first_until, reader.until);
    return reader.until <= now;
  });
}

void SnapshotTable::OnTimer() {
  std::vector<SnapshotPtr> expired, released;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Monotonic();
    for (auto at = entries_.begin(); at != entries_.end();) {
      if (at->second.first_until <= now) at->second.DropReaders(now);
      if (at->second.until > now && !at->second.readers.empty()) {
        ++at;
        continue;
      }
      // If only its readers have gone, others such as followers may still hold the snapshot.
      const bool is_expired = at->second.until <= now;
      (is_expired ? expired : released).push_back(std::move(at->second.snapshot));
      at = entries_.erase(at);
    }
  }
  // A call that is reading it holds it too, and must not find other bytes.
  for (const SnapshotPtr& snapshot : expired) snapshot->Expire();
}

void SnapshotTable::Clear() {
  std::map<Key, Entry> entries;
  absl::MutexLock lock(&mutex_);
  entries.swap(entries_);
  calls_.clear();
}

SnapshotTable::Count SnapshotTable::count() {
  absl::MutexLock lock(&mutex_);
  Count count;
  count.cuts = entries_.size();
  for (const auto& [key, entry] : entries_) count.readers += entry.readers.size();
  return count;
}

}  // namespace h5mirror::server
