// Where two versions of a file may differ: docs/design/036-reading-a-version.md.
#ifndef H5MIRROR_ONION_STORE_FILE_FILE_CHANGES_H_
#define H5MIRROR_ONION_STORE_FILE_FILE_CHANGES_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "onion_store/file/file_impl.h"

namespace h5mirror::store {

// The pages that have a row at a version of a range, in order. Holds all of them if they fit into
// memory, else asks the index block by block.
class RowChanges {
 public:
  // The range of versions is [version_min, version_end), of one generation.
  RowChanges(std::shared_ptr<VersionIndex> index, int64_t generation, VersionNumber version_min,
             VersionNumber version_end, uint32_t page_size_bytes)
      : index_(std::move(index)),
        generation_(generation),
        version_min_(version_min),
        version_end_(version_end),
        page_size_bytes_(page_size_bytes) {}

  // Holds at most `rows_max` rows in memory.
  absl::Status Load(size_t rows_max);
  // The first range that ends after `offset`, clipped to start at or after it. `offset` rises.
  absl::StatusOr<std::optional<Extent>> NextAt(uint64_t offset);

 private:
  absl::Status LoadBlock(uint64_t first_page);

  const std::shared_ptr<VersionIndex> index_;
  const int64_t generation_;
  const VersionNumber version_min_, version_end_;
  const uint32_t page_size_bytes_;
  std::vector<Extent> extents_;  // sorted, disjoint: all, or those of one block
  size_t next_ = 0;              // the first extent not passed yet
  uint64_t loaded_end_ = 0;      // the extents are all below this; UINT64_MAX: there are no more
};

// Two versions of one generation: the ranges that were written in between.
class WrittenChanges final : public ChangeReader {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;

  // `layers`: the durable cuts in between that the head may not hold yet. The caller must look them
  // up before `rows`.
  WrittenChanges(std::shared_ptr<FileImpl> file, VersionInfo from, VersionInfo to,
                 std::vector<LayerPtr> layers, RowChanges rows, uint32_t page_size_bytes);

  const VersionInfo& from() const override { return from_; }
  const VersionInfo& to() const override { return to_; }
  uint32_t page_size_bytes() const override { return page_size_bytes_; }
  absl::StatusOr<bool> Next(std::vector<Extent>* ranges) override;

 private:
  // The first range of any source that ends after `offset`, in whole pages.
  absl::StatusOr<std::optional<Extent>> NextAt(uint64_t offset);
  // kOutOfRange: one of the versions was dropped, and the rows may be another's.
  absl::Status CheckRetained();

  const std::shared_ptr<FileImpl> file_;
  const VersionInfo from_, to_;
  const std::vector<LayerPtr> layers_;
  RowChanges rows_;
  const uint32_t page_size_bytes_;
  uint64_t shared_bytes_;  // the bytes below the end of both versions
  uint64_t end_bytes_;     // of the larger one
  uint64_t at_ = 0;
};

// Two versions of different generations share no history: compares their bytes.
class ComparedChanges final : public ChangeReader {
 public:
  ComparedChanges(std::unique_ptr<VersionReader> from, std::unique_ptr<VersionReader> to,
                  MemoryBudget& budget);

  const VersionInfo& from() const override { return from_->info(); }
  const VersionInfo& to() const override { return to_->info(); }
  uint32_t page_size_bytes() const override { return from_->page_size_bytes(); }
  absl::StatusOr<bool> Next(std::vector<Extent>* ranges) override;

 private:
  // The offset at which either may have the next byte other than zero; end_bytes_: none.
  absl::StatusOr<uint64_t> NextData();

  const std::unique_ptr<VersionReader> from_, to_;
  const MemoryCharge charge_;
  const uint64_t end_bytes_;
  uint64_t at_ = 0;
  std::vector<char> one_, other_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_FILE_CHANGES_H_
