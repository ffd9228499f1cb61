// Which pages of a file the program has written as metadata, and which of them the server was not
// told of on this stream.
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

// A hint for the server, so it may name more than was written, and is bounded. Not thread-safe.
class MetadataPages {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kRunsMax = 1 << 16;
  // Of one message.
  static constexpr size_t kNewsMax = 1 << 14;

  // Costs a look-up where the pages are known, as they mostly are.
  void Add(Extent written);
  // The runs that were not told of, at most kNewsMax, rising and apart; from now on they are.
  std::vector<PageRun> TakeNews();
  // Somebody is to be told who knows of none.
  void TellAgain() { news_ = known_; }

 private:
  ExtentSet known_{kRunsMax};  // in pages
  ExtentSet news_{kRunsMax};
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_METADATA_PAGES_H_
