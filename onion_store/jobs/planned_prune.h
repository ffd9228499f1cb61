// Counts from the rows of pages how much one prune would leave: docs/design/032-pruning.md.
#ifndef H5MIRROR_ONION_STORE_JOBS_PLANNED_PRUNE_H_
#define H5MIRROR_ONION_STORE_JOBS_PLANNED_PRUNE_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// Goes through the rows of pages as a prune would.
class PlannedPrune {
 public:
  // `versions`: all, rising. `doomed`: the versions that the prune drops, rising.
  PlannedPrune(const std::vector<VersionSize>& versions, const std::vector<VersionNumber>& doomed,
               uint32_t page_size_bytes);

  // Rows come block by block, each by version and level.
  void BeginBlock(uint64_t first_page);
  // `at`: the newest version of the row's generation that exists and is not newer; nullopt: none.
  // `own`: that version is the row's. `disk_bytes`: of its record.
  void Take(const PageRun& run, std::optional<size_t> at, bool own, uint64_t disk_bytes);

  // The bytes of the records in `segment` that would still have a row.
  uint64_t live_bytes(uint64_t segment) const;
  bool RetainsGeneration(int64_t generation) const { return generations_.contains(generation); }
  size_t memory_bytes() const { return heirs_.size() * (sizeof(int32_t) + sizeof(uint64_t)); }

 private:
  using BlockPages = std::bitset<kBlockPages>;
  static constexpr int32_t kNone = -1;

  BlockPages PagesOf(const PageRun& run) const;

  std::vector<int32_t> heirs_;               // by version: the retained one that gets its rows
  std::vector<uint64_t> limit_pages_;        // by version: bound of retained ones up to it
  std::set<int64_t> generations_;            // with a retained version
  std::map<uint64_t, uint64_t> live_bytes_;  // by segment
  uint64_t first_page_ = 0;                  // of the block
  int32_t heir_ = kNone;                     // of the last row
  BlockPages covered_;                       // by rows of heir_, in the block
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_PLANNED_PRUNE_H_
