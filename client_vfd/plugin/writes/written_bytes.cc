#include "client_vfd/plugin/writes/written_bytes.h"

#include <algorithm>
#include <iterator>

namespace h5mirror::vfd {

void WrittenBytes::Add(uint64_t offset, uint64_t length) {
  if (length == 0) return;
  uint64_t end = offset + length;
  auto next = runs_.upper_bound(offset);
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= end) return;
    if (before->second >= offset) {
      offset = before->first;
      next = before;
    }
  }
  while (next != runs_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = runs_.erase(next);
  }
  runs_.emplace_hint(next, offset, end);
}

void WrittenBytes::TruncateTo(uint64_t size_bytes) {
  const auto first = runs_.lower_bound(size_bytes);
  if (first != runs_.begin()) {
    uint64_t& end = std::prev(first)->second;
    end = std::min(end, size_bytes);
  }
  runs_.erase(first, runs_.end());
}

WrittenBytes::Run WrittenBytes::RunFrom(uint64_t offset, uint64_t end) const {
  const auto next = runs_.upper_bound(offset);
  if (next != runs_.begin() && std::prev(next)->second > offset) {
    return {offset, std::min(end, std::prev(next)->second), true};
  }
  return {offset, next == runs_.end() ? end : std::min(end, next->first), false};
}

}  // namespace h5mirror::vfd
