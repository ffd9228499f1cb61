// The rows of `pages`, block by block. A block has the rows of all levels for 256 pages, so that
// runs within each other come together.
#ifndef H5MIRROR_ONION_STORE_PAGES_PAGE_BLOCKS_H_
#define H5MIRROR_ONION_STORE_PAGES_PAGE_BLOCKS_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// Reads the rows of one generation once, in the order of their keys on each level. Not thread-safe.
class PageBlocks {
 public:
  PageBlocks(VersionIndex& index, int64_t generation);

  // The result of Next().
  enum class Found : uint8_t {
    kPart,   // the block is not whole yet: call Next() again
    kBlock,  // rows() are those of one block
    kEnd,
  };
  // Reads about `row_max` rows.
  absl::StatusOr<Found> Next(size_t row_max);

  // The rows of the block, by version, then level, then page. The caller may change them.
  std::vector<PageRun>& rows() { return rows_; }
  uint64_t first_page() const { return block_ * kBlockPages; }

 private:
  struct Level {
    std::vector<PageRun> rows;
    size_t next = 0;
    PagesCursor cursor;
    bool more = true;
    bool at_end() const { return next == rows.size(); }
  };

  // Reads rows until each level has one, or is at its end.
  absl::Status Fill(size_t* rows_read);

  VersionIndex& index_;
  std::array<Level, kPageLevelMax + 1> levels_;
  uint64_t block_ = 0;
  bool in_block_ = false;
  std::vector<PageRun> rows_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PAGE_BLOCKS_H_
