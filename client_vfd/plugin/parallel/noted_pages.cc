#include "client_vfd/plugin/parallel/noted_pages.h"

#include <algorithm>
#include <iterator>

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kEndMax = uint64_t{1} << 63;

uint64_t PageBegin(uint64_t offset) { return offset & ~(NotedPages::kPageBytes - 1); }

}  // namespace

void NotedPages::Add(uint64_t offset, uint64_t length) {
  if (length == 0 || offset >= kEndMax) return;
  uint64_t begin = PageBegin(offset);
  uint64_t end = PageBegin(offset + std::min(length, kEndMax - offset) - 1) + kPageBytes;
  auto at = runs_.upper_bound(begin);
  if (at != runs_.begin() && std::prev(at)->second >= begin) --at;
  while (at != runs_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = runs_.erase(at);
  }
  runs_.emplace_hint(at, begin, end);
  if (runs_.size() > kRunsMax) Coarsen();
}

// Down to half, so that it is rare.
void NotedPages::Coarsen() {
  for (uint64_t gap = kPageBytes; runs_.size() > kRunsMax / 2; gap *= 2) {
    auto at = runs_.begin();
    while (std::next(at) != runs_.end()) {
      const auto next = std::next(at);
      if (next->first - at->second > gap) {
        at = next;
        continue;
      }
      at->second = next->second;
      runs_.erase(next);
    }
  }
}

std::vector<NotedPages::Run> NotedPages::Take() {
  std::vector<Run> taken;
  taken.reserve(runs_.size());
  for (const auto& [offset, end] : runs_) taken.push_back({offset, end});
  runs_.clear();
  return taken;
}

}  // namespace h5mirror::vfd
