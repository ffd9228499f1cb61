#include "onion_store/file/pins/pins.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {

std::shared_ptr<PinnedCut> Pins::Hold(CutNumber cut) {
  const auto found = pins_.find(cut);
  if (found == pins_.end()) return nullptr;
  ++found->second->holder_count;
  return found->second;
}

std::shared_ptr<PinnedCut> Pins::Pin(const CutInfo& info, std::shared_ptr<Generation> generation,
                                     std::vector<std::shared_ptr<CutLayer>> layers,
                                     uint32_t page_size_bytes) {
  auto pin = std::make_shared<PinnedCut>();
  pin->info = info;
  pin->holder_count = 1;
  const uint64_t first_pages = pages_.Start(generation->number, page_size_bytes);
  {
    absl::MutexLock lock(&pin->mutex);
    pin->content_or_null = std::make_shared<const PinnedContent>(std::move(generation),
                                                                 std::move(layers), first_pages);
  }
  pins_[info.cut] = pin;
  return pin;
}

bool Pins::Release(const std::shared_ptr<PinnedCut>& pin) {
  return --pin->holder_count == 0 && Has(pin);
}

bool Pins::Has(const std::shared_ptr<PinnedCut>& pin) const {
  const auto found = pins_.find(pin->info.cut);
  return found != pins_.end() && found->second == pin;
}

std::optional<CutNumber> Pins::oldest() const {
  if (pins_.empty()) return std::nullopt;
  return pins_.begin()->first;
}

std::shared_ptr<const PinnedContent> Pins::Drop(CutNumber cut) {
  const auto found = pins_.find(cut);
  std::shared_ptr<const PinnedContent> dropped = found->second->Expire();
  pins_.erase(found);
  uint64_t first = UINT64_MAX;
  for (const auto& [other, pin] : pins_) {
    if (const auto content = pin->content()) first = std::min(first, content->first_pages);
  }
  pages_.DropBefore(first);
  return dropped;
}

PagesToPin Pins::PagesBefore(CutNumber next, int64_t generation, uint32_t page_size_bytes) const {
  PagesToPin wanted;
  for (const auto& [cut, pin] : pins_) {
    if (cut >= next) break;
    if (pin->info.generation != generation) continue;
    wanted.limit_pages = std::max(wanted.limit_pages,
                                  RoundUp(pin->info.size_bytes, page_size_bytes) / page_size_bytes);
  }
  if (wanted.limit_pages > 0) wanted.pages = pages_.NewestOf(generation);
  return wanted;
}

uint64_t Pins::DiskBytes(const StageSegments& staged) const {
  absl::flat_hash_map<const StageSegment*, uint64_t> segments;
  for (const auto& [cut, pin] : pins_) {
    const auto content = pin->content();
    if (content == nullptr) continue;
    for (const auto& segment : content->segments) {
      segments.try_emplace(segment.get(), segment->file->Size().value_or(0));
    }
  }
  for (const auto& segment : staged) segments.erase(segment.get());
  uint64_t bytes = pages_.disk_bytes();
  for (const auto& [segment, size_bytes] : segments) bytes += size_bytes;
  return bytes;
}

}  // namespace h5mirror::store
