// An index of staged bytes that is too large for memory: a sorted, immutable, temporary file. It is
// never synced, because a replay of the stage can make it again. It has no name once it is open.
#ifndef H5MIRROR_ONION_STORE_STAGE_RUN_FILE_H_
#define H5MIRROR_ONION_STORE_STAGE_RUN_FILE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {

// Bytes [offset, end) of the file, which are in the stage from `location` on.
struct StagedEntry {
  uint64_t offset = 0;
  uint64_t end = 0;
  StageLocation location = 0;
};

// Immutable, thread-safe. Costs 8 bytes of memory per 170 entries.
class RunFile {
 public:
  // Returns the entries one after the other, sorted and disjoint; nullopt: no more.
  using Source = std::function<absl::StatusOr<std::optional<StagedEntry>>()>;
  static absl::StatusOr<std::shared_ptr<const RunFile>> Write(EnvTree& tree,
                                                              std::string_view directory,
                                                              const Source& next);

  // The entries that touch `range`, in order, not clipped.
  absl::StatusOr<std::vector<StagedEntry>> Find(Extent range) const;
  // The first entry that ends after `offset`.
  absl::StatusOr<std::optional<StagedEntry>> NextAfter(uint64_t offset) const;

  uint64_t memory_bytes() const { return fences_.size() * sizeof(uint64_t) + sizeof(*this); }

 private:
  absl::StatusOr<std::vector<StagedEntry>> ReadBlock(size_t block) const;
  // The first block that may have an entry that ends after `offset`.
  size_t BlockOf(uint64_t offset) const;

  std::unique_ptr<EnvFile> file_;
  std::vector<uint64_t> fences_;  // offset of the first entry of each block
  uint64_t entry_count_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STAGE_RUN_FILE_H_
