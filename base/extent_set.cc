#include "base/extent_set.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace h5mirror {

void ExtentSet::Add(Extent extent) {
  if (extent.length == 0) return;
  uint64_t start = extent.offset;
  uint64_t end = extent.end();
  // From the first extent that overlaps or touches; each is merged into the new one.
  auto it = map_.upper_bound(start);
  if (it != map_.begin() && std::prev(it)->second >= start) --it;
  while (it != map_.end() && it->first <= end) {
    start = std::min(start, it->first);
    end = std::max(end, it->second);
    byte_count_ -= it->second - it->first;
    it = map_.erase(it);
  }
  map_.emplace_hint(it, start, end);
  byte_count_ += end - start;
  if (extents_max_ > 0 && map_.size() > extents_max_) Coarsen();
}

void ExtentSet::Remove(Extent extent) {
  if (extent.length == 0) return;
  const uint64_t start = extent.offset;
  const uint64_t end = extent.end();
  auto it = map_.upper_bound(start);
  if (it != map_.begin() && std::prev(it)->second > start) --it;
  while (it != map_.end() && it->first < end) {
    const auto [old_start, old_end] = *it;
    byte_count_ -= old_end - old_start;
    it = map_.erase(it);
    if (old_start < start) {
      it = std::next(map_.emplace_hint(it, old_start, start));
      byte_count_ += start - old_start;
    }
    if (old_end > end) {
      it = map_.emplace_hint(it, end, old_end);
      byte_count_ += old_end - end;
      break;
    }
  }
  if (extents_max_ > 0 && map_.size() > extents_max_) Coarsen();
}

void ExtentSet::AddAll(const ExtentSet& other) {
  for (const auto& [start, end] : other.map_) Add({start, end - start});
}

void ExtentSet::TruncateTo(uint64_t size_bytes) {
  Remove({size_bytes, std::numeric_limits<uint64_t>::max() - size_bytes});
}

void ExtentSet::Clear() {
  map_.clear();
  byte_count_ = 0;
}

uint64_t ExtentSet::end() const { return map_.empty() ? 0 : std::prev(map_.end())->second; }

bool ExtentSet::Intersects(Extent extent) const {
  if (extent.length == 0) return false;
  const std::optional<Extent> next = NextAfter(extent.offset);
  return next && next->offset < extent.end();
}

std::vector<Extent> ExtentSet::Intersection(Extent extent) const {
  std::vector<Extent> parts;
  uint64_t position = extent.offset;
  while (position < extent.end()) {
    const std::optional<Extent> next = NextAfter(position);
    if (!next || next->offset >= extent.end()) break;
    const uint64_t end = std::min(next->end(), extent.end());
    parts.push_back({next->offset, end - next->offset});
    position = end;
  }
  return parts;
}

std::optional<Extent> ExtentSet::NextAfter(uint64_t offset) const {
  auto it = map_.upper_bound(offset);
  if (it != map_.begin() && std::prev(it)->second > offset) --it;
  if (it == map_.end()) return std::nullopt;
  const uint64_t start = std::max(it->first, offset);
  return Extent{start, it->second - start};
}

std::vector<Extent> ExtentSet::Take(uint64_t from, uint64_t bytes_max, size_t extents_max) {
  std::vector<Extent> taken;
  // Taking from the middle of an extent leaves two extents. A full set has no room for that, so it
  // takes from the extent's own start.
  const bool full = extents_max_ > 0 && map_.size() >= extents_max_;
  if (auto it = map_.upper_bound(from);
      full && it != map_.begin() && std::prev(it)->second > from) {
    from = std::prev(it)->first;
  }
  while (bytes_max > 0 && taken.size() < extents_max) {
    std::optional<Extent> next = NextAfter(from);
    if (!next) break;
    next->length = std::min(next->length, bytes_max);
    Remove(*next);
    taken.push_back(*next);
    bytes_max -= next->length;
    from = next->end();
  }
  return taken;
}

std::vector<Extent> ExtentSet::ToVector() const {
  std::vector<Extent> extents;
  extents.reserve(map_.size());
  for (const auto& [start, end] : map_) extents.push_back({start, end - start});
  return extents;
}

// Closes a quarter of the gaps at once, so that many Add()s share the cost of the scan.
void ExtentSet::Coarsen() {
  const size_t target = std::max<size_t>(1, extents_max_ - extents_max_ / 4);
  size_t to_close = map_.size() - target;
  std::vector<uint64_t> gaps;
  gaps.reserve(map_.size());
  for (auto it = map_.begin(); std::next(it) != map_.end(); ++it) {
    gaps.push_back(std::next(it)->first - it->second);
  }
  const auto nth = gaps.begin() + static_cast<ptrdiff_t>(to_close) - 1;
  std::nth_element(gaps.begin(), nth, gaps.end());
  const uint64_t gap_max = *nth;

  absl::btree_map<uint64_t, uint64_t> coarse;
  auto last = coarse.end();
  for (const auto& [start, end] : map_) {
    if (last != coarse.end() && to_close > 0 && start - last->second <= gap_max) {
      byte_count_ += start - last->second;
      last->second = end;
      --to_close;
    } else {
      last = coarse.emplace_hint(coarse.end(), start, end);
    }
  }
  map_ = std::move(coarse);
}

}  // namespace h5mirror
