#include "onion_store/jobs/planned_prune.h"

#include <algorithm>

#include "onion_store/disk/coding.h"

namespace h5mirror::store {

PlannedPrune::PlannedPrune(const std::vector<VersionSize>& versions,
                           const std::vector<VersionNumber>& doomed, uint32_t page_size_bytes)
    : heirs_(versions.size(), kNone), limit_pages_(versions.size(), 0) {
  auto next = doomed.begin();
  for (size_t i = 0; i < versions.size(); ++i) {
    const VersionSize& version = versions[i];
    const bool follows = i > 0 && versions[i - 1].generation == version.generation;
    while (next != doomed.end() && *next < version.version) ++next;
    const bool goes = next != doomed.end() && *next == version.version;
    limit_pages_[i] = follows ? limit_pages_[i - 1] : 0;
    if (goes) {
      heirs_[i] = follows ? heirs_[i - 1] : kNone;
      continue;
    }
    heirs_[i] = static_cast<int32_t>(i);
    generations_.insert(version.generation);
    limit_pages_[i] =
        std::max(limit_pages_[i], RoundUp(version.size_bytes, page_size_bytes) / page_size_bytes);
  }
}

void PlannedPrune::BeginBlock(uint64_t first_page) {
  first_page_ = first_page;
  heir_ = kNone;
}

void PlannedPrune::Take(const PageRun& run, std::optional<size_t> at, bool own,
                        uint64_t disk_bytes) {
  const int32_t heir = at.has_value() ? heirs_[*at] : kNone;
  if (heir == kNone) return;
  if (heir != heir_) covered_.reset();
  heir_ = heir;
  const BlockPages pages = PagesOf(run);
  const bool stays = own && heir == static_cast<int32_t>(*at);
  if (!stays && run.page >= limit_pages_[static_cast<size_t>(heir)]) return;
  if (!stays && (pages & ~covered_).none()) return;
  covered_ |= pages;
  if (disk_bytes > 0) live_bytes_[run.segment] += disk_bytes;
}

uint64_t PlannedPrune::live_bytes(uint64_t segment) const {
  const auto found = live_bytes_.find(segment);
  return found == live_bytes_.end() ? 0 : found->second;
}

PlannedPrune::BlockPages PlannedPrune::PagesOf(const PageRun& run) const {
  const uint64_t first = run.page - first_page_;
  const uint64_t count = std::min(run.page_count(), kBlockPages - first);
  return (~BlockPages() >> (kBlockPages - count)) << first;
}

}  // namespace h5mirror::store
