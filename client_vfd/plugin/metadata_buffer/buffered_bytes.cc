#include "client_vfd/plugin/metadata_buffer/buffered_bytes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

namespace h5mirror::vfd {
namespace {

// The memory of one node of the map, with the allocator's overhead.
constexpr uint64_t kNodeBytes = 80;

// A gap of this size costs as much to write as to skip. HDF5 takes room for metadata by 2 KiB, and
// writes it later than the raw data around it.
constexpr uint64_t kFilledGapMax = 4096;

}  // namespace

BufferedBytes::Pieces::const_iterator BufferedBytes::At(uint64_t offset) const {
  auto at = pieces_.upper_bound(offset);
  if (at != pieces_.begin() && EndOf(std::prev(at)) > offset) --at;
  return at;
}

uint64_t BufferedBytes::memory_bytes() const {
  return arena_.taken_bytes() + pieces_.size() * kNodeBytes;
}

void BufferedBytes::Buffer(uint64_t offset, std::string_view bytes) {
  auto next = pieces_.upper_bound(offset);
  auto at = next == pieces_.begin() ? pieces_.end() : std::prev(next);
  while (!bytes.empty()) {
    const uint64_t end = at == pieces_.end() ? 0 : EndOf(at);
    const bool over = at != pieces_.end() && offset < end;
    const uint64_t room = over                    ? end - offset
                          : next == pieces_.end() ? std::numeric_limits<uint64_t>::max()
                                                  : next->first - offset;
    const size_t count = std::min<uint64_t>(bytes.size(), room);
    const std::string_view part = bytes.substr(0, count);
    if (over) {
      std::memcpy(at->second.data + (offset - at->first), part.data(), count);
    } else if (at != pieces_.end() && offset == end &&
               arena_.Grow(at->second.data + at->second.size, count)) {
      std::memcpy(at->second.data + at->second.size, part.data(), count);
      at->second.size += count;
      live_bytes_ += count;
    } else {
      char* const data = arena_.Take(count);
      std::memcpy(data, part.data(), count);
      at = pieces_.emplace_hint(next, offset, Piece{data, count});
      live_bytes_ += count;
    }
    offset += count;
    bytes.remove_prefix(count);
    if (next != pieces_.end() && offset == next->first) at = next++;
  }
}

void BufferedBytes::Drop(Extent extent) {
  if (extent.length == 0) return;
  // Made mutable by an erase of nothing.
  const auto found = At(extent.offset);
  auto at = pieces_.erase(found, found);
  while (at != pieces_.end() && at->first < extent.end()) {
    const uint64_t end = EndOf(at);
    if (end > extent.end()) {
      const size_t skipped = extent.end() - at->first;
      pieces_.emplace_hint(std::next(at), extent.end(),
                           Piece{at->second.data + skipped, at->second.size - skipped});
    }
    live_bytes_ -= std::min(end, extent.end()) - std::max(at->first, extent.offset);
    if (at->first < extent.offset) {
      at->second.size = extent.offset - at->first;
      ++at;
    } else {
      at = pieces_.erase(at);
    }
  }
  if (pieces_.empty()) arena_.Clear();
}

void BufferedBytes::TruncateTo(uint64_t size_bytes) {
  if (end() > size_bytes) Drop({size_bytes, end() - size_bytes});
}

void BufferedBytes::Compact() {
  if (pieces_.empty() || dead_bytes() == 0) return;
  BufferArena compact;
  char* to = nullptr;
  try {
    to = compact.Take(live_bytes_);  // In one: nothing has moved where this fails.
  } catch (const std::bad_alloc&) {
    return;
  }
  for (auto& [offset, piece] : pieces_) {
    std::memcpy(to, piece.data, piece.size);
    piece.data = std::exchange(to, to + piece.size);
  }
  arena_.Swap(compact);
}

void BufferedBytes::CopyOver(Extent extent, char* out) const {
  for (auto at = At(extent.offset); at != pieces_.end() && at->first < extent.end(); ++at) {
    const uint64_t from = std::max(at->first, extent.offset);
    const uint64_t to = std::min(EndOf(at), extent.end());
    std::memcpy(out + (from - extent.offset), at->second.data + (from - at->first), to - from);
  }
}

bool BufferedBytes::Intersects(Extent extent) const {
  const auto at = At(extent.offset);
  return extent.length > 0 && at != pieces_.end() && at->first < extent.end();
}

bool BufferedBytes::Covers(Extent extent) const {
  uint64_t covered = extent.offset;
  for (auto at = At(covered); covered < extent.end(); ++at) {
    if (at == pieces_.end() || at->first > covered) return false;
    covered = EndOf(at);
  }
  return true;
}

std::optional<BufferedBytes::Run> BufferedBytes::NextRun(uint64_t from, uint64_t to,
                                                         uint64_t blank_from,
                                                         Scratch& scratch) const {
  const auto at = At(from);
  if (at == pieces_.end() || at->first >= to) return std::nullopt;
  const uint64_t start = std::max(at->first, from);
  const uint64_t end_max = std::min(to, start + scratch.size_bytes());
  uint64_t end = std::min(EndOf(at), end_max);
  const auto joins = [&](Pieces::const_iterator next) {
    if (next == pieces_.end() || next->first >= end_max) return false;
    return next->first == end || (end >= blank_from && next->first - end <= kFilledGapMax);
  };
  if (!joins(std::next(at))) {
    return Run{start, at->second.bytes().substr(start - at->first, end - start)};
  }
  for (auto next = std::next(at); joins(next); ++next) {
    std::memset(scratch.data() + (end - start), 0, next->first - end);
    end = std::min(EndOf(next), end_max);
  }
  CopyOver({start, end - start}, scratch.data());
  return Run{start, std::string_view(scratch.data(), end - start)};
}

uint64_t BufferedBytes::end() const {
  return pieces_.empty() ? 0 : EndOf(std::prev(pieces_.end()));
}

}  // namespace h5mirror::vfd
