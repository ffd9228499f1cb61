// The metadata of one cut in memory that the readers of this host map:
// docs/design/011-metadata-in-shared-memory.md.
#ifndef H5MIRROR_SWMR_AGENT_CUT_MEMORY_H_
#define H5MIRROR_SWMR_AGENT_CUT_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "swmr_agent/block_pool.h"

namespace h5mirror::agent {

// Memory without a name, of which nobody can change a byte any more. It is the pool's as long as it
// is here; readers that have mapped it keep it beyond that. Thread-safe.
class SealedMemory {
 public:
  // `pieces` one after the other. Errors: kResourceExhausted the pool has no room for it.
  static absl::StatusOr<std::shared_ptr<const SealedMemory>> Make(
      std::shared_ptr<BlockPool> pool, absl::Span<const std::string_view> pieces);
  ~SealedMemory();
  SealedMemory(const SealedMemory&) = delete;

  int fd() const { return fd_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  SealedMemory(std::shared_ptr<BlockPool> pool, uint64_t size_bytes)
      : pool_(std::move(pool)), size_bytes_(size_bytes) {}
  absl::Status Fill(absl::Span<const std::string_view> pieces);

  const std::shared_ptr<BlockPool> pool_;
  const uint64_t size_bytes_;
  int fd_ = -1;
};

// The known metadata of a cut at one moment. Immutable: of the next cut, and when more is
// known, another one is made, which shares the parts of this one that are still right.
class CutMemory {
 public:
  // Blocks rise, and know some page each. `before` may be null.
  struct Block {
    uint64_t index;
    BlockPool::Known known;
  };
  static absl::StatusOr<std::shared_ptr<const CutMemory>> Make(std::shared_ptr<BlockPool> pool,
                                                               uint64_t size_bytes,
                                                               const std::vector<Block>& blocks,
                                                               bool has_all,
                                                               const CutMemory* before);

  // The index, and then its parts: as readers get them.
  std::vector<int> descriptors() const;
  uint64_t page_count() const { return page_count_; }
  bool has_all() const { return has_all_; }

 private:
  struct Place {
    std::weak_ptr<const std::string> bytes;  // whose pages these are
    uint32_t pages = 0;
    uint16_t part = 0;
    uint64_t offset = 0;
  };

  CutMemory() = default;
  // Where this one has the block, if it has it as it is; null: it does not.
  const Place* Find(const Block& block) const;
  // Takes over the parts of `before` if most bytes in them are wanted.
  void TakeOver(const std::vector<Block>& blocks, const CutMemory* before);
  absl::Status AddPart(std::shared_ptr<BlockPool> pool, uint64_t size_bytes,
                       const std::vector<Block>& blocks);
  absl::Status MakeIndex(std::shared_ptr<BlockPool> pool, uint64_t size_bytes);

  std::map<uint64_t, Place> places_;
  std::vector<std::shared_ptr<const SealedMemory>> parts_;
  std::shared_ptr<const SealedMemory> index_;
  uint64_t page_count_ = 0;
  bool has_all_ = false;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CUT_MEMORY_H_
