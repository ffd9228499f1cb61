#include "client_vfd/session/state/metadata_pages.h"

namespace h5mirror::vfd {

void MetadataPages::Add(Extent written) {
  if (written.length == 0) return;
  const uint64_t first = written.offset / kPageBytes;
  const uint64_t last = (written.end() - 1) / kPageBytes;
  const Extent pages{first, last - first + 1};
  const auto known = known_.NextAfter(first);
  if (known && known->offset == first && known->end() >= pages.end()) return;
  known_.Add(pages);
  news_.Add(pages);
}

std::vector<PageRun> MetadataPages::TakeNews() {
  std::vector<PageRun> runs;
  for (const Extent& run : news_.Take(0, UINT64_MAX, kNewsMax)) {
    runs.push_back({run.offset, run.length});
  }
  return runs;
}

}  // namespace h5mirror::vfd
