#include "onion_store/shared/glance_cache.h"

#include <utility>

#include "base/strings.h"

namespace h5mirror::store {
namespace {

// Of the map and the counts of a shared pointer, for each name.
constexpr uint64_t kEntryBytes = 160;

uint64_t BytesOf(const Provenance& who) {
  return who.claimed_user.capacity() + who.verified_user.capacity() + who.host.capacity() +
         who.program.capacity() + who.comment.capacity();
}

uint64_t CostOf(std::string_view name, const FileInfo& info) {
  uint64_t bytes = kEntryBytes + sizeof(FileInfo) + name.size();
  bytes += BytesOf(info.newest_version.provenance) + info.owner.capacity();
  bytes += info.origin.machine_id.capacity() + info.origin.host.capacity();
  bytes += info.origin.path.capacity();
  if (info.forked_from) bytes += info.forked_from->name.capacity();
  return bytes;
}

}  // namespace

GlanceCache::Look GlanceCache::Begin(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  looks_[ToAbsl(name)] = ++last_look_;
  return last_look_;
}

void GlanceCache::Put(const FileSummary& listed, FileInfo info, Look look) {
  absl::MutexLock lock(&mutex_);
  const auto found = looks_.find(listed.name);
  if (found == looks_.end() || found->second != look) return;
  Erase(listed.name);
  const uint64_t cost = CostOf(listed.name, info);
  if (bytes_ + cost > bytes_max_) return;
  bytes_ += cost;
  entries_[listed.name] = {listed.size_bytes, listed.modify_time,
                           std::make_shared<const FileInfo>(std::move(info)), cost};
}

void GlanceCache::End(std::string_view name, Look look) {
  absl::MutexLock lock(&mutex_);
  const auto found = looks_.find(ToAbsl(name));
  if (found != looks_.end() && found->second == look) looks_.erase(found);
}

std::shared_ptr<const FileInfo> GlanceCache::Find(const FileSummary& listed) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(listed.name);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  const bool is_same =
      entry.size_bytes == listed.size_bytes && entry.modify_time == listed.modify_time;
  return is_same ? entry.info : nullptr;
}

void GlanceCache::Forget(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  looks_.erase(ToAbsl(name));
  Erase(name);
}

void GlanceCache::Erase(std::string_view name) {
  const auto found = entries_.find(ToAbsl(name));
  if (found == entries_.end()) return;
  bytes_ -= found->second.cost_bytes;
  entries_.erase(found);
}

}  // namespace h5mirror::store
