// The changes of one cut: ranges that were staged, cut off, or written directly to the head. Layers
// lie over each other, and over the head.
#ifndef H5MIRROR_ONION_STORE_STAGE_STAGED_LAYER_H_
#define H5MIRROR_ONION_STORE_STAGE_STAGED_LAYER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "base/env.h"
#include "base/extent_set.h"
#include "onion_store/shared/memory_budget.h"
#include "onion_store/stage/run_file.h"

namespace h5mirror::store {

// One range of a file and the place of its bytes.
struct Piece {
  enum class Source : uint8_t { kStage, kZeros, kHead };
  Extent extent;
  Source source = Source::kHead;
  StageLocation location = 0;  // kStage
};

// Not thread-safe while it changes. Any thread may read a layer that no longer changes.
class StagedLayer {
 public:
  static constexpr uint64_t kNotTruncated = UINT64_MAX;

  // A layer that does not fit into memory goes to files in `directory` of `tree`.
  StagedLayer(MemoryBudget& budget, EnvTree& tree, std::string directory)
      : charge_(budget), budget_(budget), tree_(tree), directory_(std::move(directory)) {}

  // If extents overlap, the later call wins. Errors: those of writing a file.
  absl::Status Put(Extent extent, StageLocation location);
  // `extent` was written at its place in the head.
  void AddDirect(Extent extent);
  // Removes bytes at or beyond `size_bytes`. They are zeros if the file grows again.
  absl::Status Truncate(uint64_t size_bytes);
  // Puts `newer` over this one.
  absl::Status Absorb(const StagedLayer& newer);

  // Appends to `found` the parts of `wanted` that this layer has, and leaves the rest in `wanted`
  // for the layer below. The parts that one call appends are sorted and disjoint.
  absl::Status Resolve(std::vector<Extent>* wanted, std::vector<Piece>* found) const;
  // The first staged range that ends after `offset`, clipped to start at or after it.
  absl::StatusOr<std::optional<Extent>> NextStaged(uint64_t offset) const;

  // The smallest size that the file was truncated to.
  uint64_t truncated_to() const { return truncated_to_; }
  const ExtentSet& direct() const { return direct_; }
  // One past the last byte that was ever direct. The head still has that byte, even if it was cut
  // off.
  uint64_t direct_end_max() const { return direct_end_max_; }
  bool empty() const {
    return map_.empty() && runs_.empty() && direct_.empty() && truncated_to_ == kNotTruncated;
  }
  // True: a part of the layer is on the disk.
  bool is_spilled() const { return !runs_.empty(); }
  bool has_staged() const { return !map_.empty() || !runs_.empty(); }
  // The number of staged bytes. Bytes written twice count once as long as the layer is in memory.
  uint64_t staged_bytes() const { return staged_bytes_; }

 private:
  struct Target {
    uint64_t end;
    StageLocation location;
  };
  // Entries at or beyond `limit` were truncated after the run was written.
  struct Run {
    std::shared_ptr<const RunFile> file;
    uint64_t limit;
  };
  using Map = absl::btree_map<uint64_t, Target>;

  void Insert(Extent extent, StageLocation location);
  void Erase(Extent extent);
  absl::Status Spill();
  absl::Status MergeRuns();
  // The steps of Resolve(), from the newest to the oldest. Each appends the pieces that it decides
  // to `found`.
  void ResolveMap(Extent want, std::vector<Extent>* rest, std::vector<Piece>* found) const;
  absl::Status ResolveRun(const Run& run, std::vector<Extent>* wanted,
                          std::vector<Piece>* found) const;
  // Returns the rest of `want`.
  std::vector<Extent> ResolveDirect(Extent want, std::vector<Piece>* found) const;
  Extent ResolveTruncated(Extent want, std::vector<Piece>* found) const;
  void Recount();

  MemoryCharge charge_;
  MemoryBudget& budget_;
  EnvTree& tree_;
  std::string directory_;
  Map map_;                // newest
  std::vector<Run> runs_;  // oldest first
  // For checksums and look-ups. May cover more than was written; those bytes are zeros.
  ExtentSet direct_{4096};
  uint64_t truncated_to_ = kNotTruncated;
  uint64_t direct_end_max_ = 0;
  uint64_t staged_bytes_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STAGE_STAGED_LAYER_H_
