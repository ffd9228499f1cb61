#include "client_vfd/plugin/held_bytes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

namespace h5mirror::vfd {
namespace {

// An extent that is longer gets no more appended: growing it copies it.
constexpr size_t kGrowBytesMax = 256 << 10;
// A node of the map, and what the allocator adds to it and to its bytes.
constexpr uint64_t kNodeBytes = 112;

}  // namespace

HeldBytes::Extents::const_iterator HeldBytes::At(uint64_t offset) const {
  auto at = extents_.upper_bound(offset);
  if (at != extents_.begin() && EndOf(std::prev(at)) > offset) --at;
  return at;
}

HeldBytes::Extents::iterator HeldBytes::Insert(Extents::const_iterator before, uint64_t offset,
                                               std::string_view bytes) {
  const auto made = extents_.emplace_hint(before, offset, std::string(bytes));
  memory_bytes_ += kNodeBytes + made->second.capacity();
  return made;
}

void HeldBytes::Append(Extents::iterator at, std::string_view bytes) {
  const size_t before = at->second.capacity();
  at->second.append(bytes);
  memory_bytes_ += at->second.capacity() - before;
}

void HeldBytes::Shorten(Extents::iterator at, uint64_t end) { at->second.resize(end - at->first); }

HeldBytes::Extents::iterator HeldBytes::Erase(Extents::iterator at) {
  memory_bytes_ -= kNodeBytes + at->second.capacity();
  return extents_.erase(at);
}

void HeldBytes::Hold(uint64_t offset, std::string_view bytes) {
  auto next = extents_.upper_bound(offset);
  auto at = next == extents_.begin() ? extents_.end() : std::prev(next);
  while (!bytes.empty()) {
    const uint64_t end = at == extents_.end() ? 0 : EndOf(at);
    const bool over = at != extents_.end() && offset < end;
    const uint64_t room = over                     ? end - offset
                          : next == extents_.end() ? std::numeric_limits<uint64_t>::max()
                                                   : next->first - offset;
    const size_t count = std::min<uint64_t>(bytes.size(), room);
    const std::string_view part = bytes.substr(0, count);
    if (over) {
      std::memcpy(at->second.data() + (offset - at->first), part.data(), count);
    } else if (at != extents_.end() && offset == end &&
               at->second.size() + count <= kGrowBytesMax) {
      Append(at, part);
    } else {
      at = Insert(next, offset, part);
    }
    offset += count;
    bytes.remove_prefix(count);
    if (next != extents_.end() && offset == next->first) at = next++;
  }
}

void HeldBytes::Drop(Extent extent) {
  if (extent.length == 0) return;
  // Made mutable by an erase of nothing.
  const auto found = At(extent.offset);
  auto at = extents_.erase(found, found);
  while (at != extents_.end() && at->first < extent.end()) {
    const uint64_t end = EndOf(at);
    if (end > extent.end()) {
      Insert(std::next(at), extent.end(),
             std::string_view(at->second).substr(extent.end() - at->first));
    }
    if (at->first < extent.offset) {
      Shorten(at, extent.offset);
      ++at;
    } else {
      at = Erase(at);
    }
  }
}

void HeldBytes::TruncateTo(uint64_t size_bytes) {
  if (end() > size_bytes) Drop({size_bytes, end() - size_bytes});
}

void HeldBytes::CopyOver(Extent extent, char* out) const {
  for (auto at = At(extent.offset); at != extents_.end() && at->first < extent.end(); ++at) {
    const uint64_t from = std::max(at->first, extent.offset);
    const uint64_t to = std::min(EndOf(at), extent.end());
    std::memcpy(out + (from - extent.offset), at->second.data() + (from - at->first), to - from);
  }
}

bool HeldBytes::Intersects(Extent extent) const {
  const auto at = At(extent.offset);
  return extent.length > 0 && at != extents_.end() && at->first < extent.end();
}

bool HeldBytes::Covers(Extent extent) const {
  uint64_t covered = extent.offset;
  for (auto at = At(covered); covered < extent.end(); ++at) {
    if (at == extents_.end() || at->first > covered) return false;
    covered = EndOf(at);
  }
  return true;
}

std::optional<HeldBytes::Run> HeldBytes::NextRun(uint64_t from, uint64_t to, char* scratch,
                                                 size_t scratch_bytes) const {
  auto at = At(from);
  if (at == extents_.end() || at->first >= to) return std::nullopt;
  const uint64_t start = std::max(at->first, from);
  const uint64_t end_max = std::min(to, start + scratch_bytes);
  const auto follower = std::next(at);
  const bool alone =
      EndOf(at) >= end_max || follower == extents_.end() || follower->first != EndOf(at);
  if (alone) {
    const std::string_view bytes = at->second;
    return Run{start, bytes.substr(start - at->first, end_max - start)};
  }
  uint64_t end = start;
  for (; at != extents_.end() && end < end_max && at->first <= end; ++at) {
    end = std::min(EndOf(at), end_max);
  }
  CopyOver({start, end - start}, scratch);
  return Run{start, std::string_view(scratch, end - start)};
}

uint64_t HeldBytes::end() const { return extents_.empty() ? 0 : EndOf(std::prev(extents_.end())); }

}  // namespace h5mirror::vfd
