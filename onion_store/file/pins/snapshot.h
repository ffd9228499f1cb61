// Reads one pinned cut: docs/design/003-cuts-and-pins.md.
#ifndef H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_H_
#define H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_H_

#include <memory>
#include <vector>

#include "onion_store/file.h"
#include "onion_store/file/pins/snapshot_source.h"

namespace h5mirror::store {

// Takes no lock against writers: an apply saves the bytes of a page before it changes the page.
class SnapshotImpl final : public Snapshot {
 public:
  // The caller has counted it as a holder of `pin`.
  SnapshotImpl(std::shared_ptr<SnapshotSource> file, std::shared_ptr<PinnedCut> pin, CutInfo info)
      : file_(std::move(file)), pin_(std::move(pin)), info_(info) {}
  ~SnapshotImpl() override { file_->Unpin(pin_); }
  SnapshotImpl(const SnapshotImpl&) = delete;

  const CutInfo& info() const override { return info_; }
  uint32_t page_size_bytes() const override { return file_->page_size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) const override;
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) const override;
  void StartReading(Extent extent) const override;
  absl::StatusOr<Extent> NextData(uint64_t offset) const override;
  void Expire() override { file_->ExpirePin(pin_); }
  bool expired() const override { return !CheckPinned().ok(); }

 private:
  using LayerPtr = std::shared_ptr<CutLayer>;
  struct StagedPiece {
    Piece piece;
    const CutLayer* layer;
  };
  // The places of a range's bytes: staged pieces and zeros, and the head for the rest.
  struct Places {
    std::vector<StagedPiece> staged;
    std::vector<Extent> head;
    std::vector<bool> is_head_only;  // for each page: only the head has it, with its checksum
  };

  void StartReadingAll(absl::Span<const Extent> ranges) const;
  // Reads `ranges` and the bytes between them. `buffer` has room for all of that, in whole pages.
  absl::Status ReadTogether(absl::Span<const Extent> ranges, char* buffer,
                            absl::Span<char> out) const;
  absl::Status ReadOneByOne(absl::Span<const Extent> ranges, absl::Span<char> out) const;
  // Fills `out`, whole pages from `first` on, clipped to the cut's end.
  absl::Status ReadPages(const PinnedContent& content, uint64_t first, absl::Span<char> out) const;
  absl::StatusOr<Places> Find(const PinnedContent& content, Extent pages) const;
  // Finds the part of `wanted` that layers decide, and removes it from `wanted`.
  absl::Status FindStaged(const PinnedContent& content, Extent pages, std::vector<Extent>* wanted,
                          Places* places) const;
  // Fills `out`, whole pages from `first` on, with the head's bytes as of the pin.
  absl::Status ReadHead(const PinnedContent& content, uint64_t first, const Places& places,
                        absl::Span<char> out) const;
  absl::Status ReadStagedPiece(const PinnedContent& content, const StagedPiece& staged,
                               absl::Span<char> out) const;
  // Fills those pages of `out`, from `first` on, that were saved since the cut was pinned. Returns
  // which pages these are. Call it after reading the head.
  absl::StatusOr<std::vector<bool>> ReadPinned(const PinnedContent& content, uint64_t first,
                                               absl::Span<char> out) const;
  // Where the layers of `content` have the first bytes at or after `offset`.
  absl::StatusOr<std::vector<Extent>> NextStaged(const PinnedContent& content,
                                                 uint64_t offset) const;
  // Called after a read. kOutOfRange: the pin has expired, and the bytes may be of a later cut.
  absl::Status CheckPinned() const;
  absl::Status Expired() const;
  absl::Status Damaged(uint64_t page, std::string_view what) const;

  const std::shared_ptr<SnapshotSource> file_;
  const std::shared_ptr<PinnedCut> pin_;
  const CutInfo info_;  // as of the pin; the cut may have become a version since
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_H_
