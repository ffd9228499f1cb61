#include "server/mirror/metadata_pages.h"

#include <cstdint>
#include <vector>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr int kRunsMax = 1 << 14;

}  // namespace

absl::Status CheckMetadataPages(const v1::Barrier& barrier) {
  const int pages = barrier.metadata_page_size(), counts = barrier.metadata_page_count_size();
  if (pages == counts && pages <= kRunsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("barrier.metadata_page and metadata_page_count have ",
                                           pages, " and ", counts,
                                           " values: as many of both, at most ", kRunsMax));
}

void NoteMetadataPages(const v1::Barrier& barrier, store::MetadataMap& map) {
  constexpr uint64_t kPageBytes = store::MetadataMap::kPageBytes;
  constexpr uint64_t kPagesMax = (uint64_t{1} << 62) / kPageBytes;
  std::vector<Extent> pages;
  for (int i = 0; i < barrier.metadata_page_size(); ++i) {
    const uint64_t page = barrier.metadata_page(i), count = barrier.metadata_page_count(i);
    if (page >= kPagesMax || count > kPagesMax) continue;
    pages.push_back({page * kPageBytes, count * kPageBytes});
  }
  if (!pages.empty()) map.Add(pages);
}

}  // namespace h5mirror::server
