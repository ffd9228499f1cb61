// The pages of a file that the program has written as metadata, and those of them that the server
// has not heard of on this stream.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_METADATA_PAGES_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_METADATA_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "base/extent_set.h"

namespace h5mirror::vfd {

// `page_count` pages of 4096 bytes.
struct PageRun {
  uint64_t page = 0;
  uint64_t page_count = 0;
  bool operator==(const PageRun&) const = default;
};

// A hint for the server: bounded, and may name more pages than were written. Not thread-safe.
class MetadataPages {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kRunsMax = 1 << 16;
  // The most runs in one message.
  static constexpr size_t kNewsMax = 1 << 14;

  // Usually the pages are known; then this costs one look-up.
  void Add(Extent written);
  // At most kNewsMax runs that the server has not heard of, rising and apart. They count as told.
  std::vector<PageRun> TakeNews();
  // A new stream: the server has heard of none.
  void TellAgain() { news_ = known_; }

 private:
  ExtentSet known_{kRunsMax};  // in pages
  ExtentSet news_{kRunsMax};
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_METADATA_PAGES_H_
