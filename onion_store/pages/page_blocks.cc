#include "onion_store/pages/page_blocks.h"

#include <algorithm>
#include <tuple>

#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

constexpr size_t kReadRows = 1024;  // of one level in one read

}  // namespace

PageBlocks::PageBlocks(VersionIndex& index, int64_t generation) : index_(index) {
  for (int level = 0; level <= kPageLevelMax; ++level) {
    levels_[level].cursor = {generation, level, 0, 0};  // No row is of version 0.
  }
}

absl::Status PageBlocks::Fill(size_t* rows_read) {
  for (Level& level : levels_) {
    if (!level.at_end() || !level.more) continue;
    level.rows.clear();
    level.next = 0;
    H5M_ASSIGN_OR_RETURN(level.more, index_.ScanLevel(kReadRows, &level.cursor, &level.rows));
    *rows_read += level.rows.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<PageBlocks::Found> PageBlocks::Next(size_t row_max) {
  for (size_t rows_read = 0; rows_read < row_max;) {
    H5M_RETURN_IF_ERROR(Fill(&rows_read));
    if (!in_block_) {
      bool any = false;
      for (const Level& level : levels_) {
        if (level.at_end()) continue;
        const uint64_t block = level.rows[level.next].page / kBlockPages;
        block_ = any ? std::min(block_, block) : block;
        any = true;
      }
      if (!any) return Found::kEnd;
      rows_.clear();
      in_block_ = true;
    }
    bool more = false;
    for (Level& level : levels_) {
      while (!level.at_end() && level.rows[level.next].page / kBlockPages == block_) {
        rows_.push_back(level.rows[level.next++]);
      }
      more = more || (level.at_end() && level.more);
    }
    if (more) continue;
    in_block_ = false;
    std::sort(rows_.begin(), rows_.end(), [](const PageRun& a, const PageRun& b) {
      return std::tie(a.version, a.level, a.page) < std::tie(b.version, b.level, b.page);
    });
    return Found::kBlock;
  }
  return Found::kPart;
}

}  // namespace h5mirror::store
