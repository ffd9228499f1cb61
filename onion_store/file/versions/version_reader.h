// Reads the bytes of one version, while a writer, an apply, a prune or a rollback goes on.
//
// WHERE THE BYTES ARE
//
// A version V of generation G has its bytes in up to three places. For each page the first of these
// holds:
//
//   1. pages-N, by the row of the index with the smallest version >= V that covers the page
//   2. the stage, in the layers of durable cuts up to V that the head did not hold at the open
//   3. the head of G, with its checksum in sums-G
//
// Why the smallest version >= V: a row of version W says what the page held at W. It is written
// when the next change after W reaches the head (file_apply.cc). So a page without a row in
// [V, W) did not change from V to W.
//
// THE ORDER OF A READ
//
// TryReadPages() goes this way, without a lock against writers:
//
//   1. head with the layers over it          ReadHead()
//   2. sums of the head
//   3. rows                                  VersionIndex::FindPages()
//   4. is the file's object still alive, and V still there?   dead(), CheckNotDropped()
//   5. pages that have a row, from pages-N; their record's checksums are compared
//   6. the other pages, if the head alone holds them, against their sums
//
// 1 and 2 must come before 3. An apply commits the row before it changes the page. So if a row is
// not there at 3, the head was still old at 1. In the other order a reader could find no row, and
// then read a page that has changed since.
//
// A page that changes between 1 and 2 does no harm: its row is there by then, and 5 overwrites what
// 1 has read. Locate() keeps the same order, for a reader that fetches the bytes itself.
// ReadRanges() may look rows up first, because an existing row stays true. Pages without a row go
// the way above.
//
// PRUNES
//
// A prune drops versions, moves their rows to older versions and removes segments. It raises
// FileImpl::prune_epoch() when versions are dropped and before a segment is removed.
//
// - V itself may be dropped: its rows become another version's. If the epoch was raised, step 4
//   asks the index whether V still exists; if not, the read fails with kOutOfRange.
// - A segment may go after 3 and before 5. Then 5 fails, the epoch has changed, and ReadPages()
//   repeats all steps: the rows name another segment by now.
// - Bytes of a record never change, and no segment number is used twice. So a row that was looked
//   up before leads to the right bytes, or to no segment.
//
// INVARIANTS
//
// - The layers are fixed at the open. An apply that moves their bytes into the head meanwhile
//   changes nothing for this reader: the layers lie over the head in 1.
// - Segments of the stage that the layers name are counted (StageSegment::reader_count), so that
//   their bytes stay until the destructor.
// - Each page is compared with a checksum: its record's, or the head's. Only a page with staged
//   bytes is not: it has no checksum before the apply.
// - A row "lost" means that the page was damaged before it could be saved: kDataLoss. A reader
//   never invents a page.
//
// docs/design/036-reading-a-version.md tells of verifying and comparing, too.
#ifndef H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_READER_H_
#define H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/file/versions/version_source.h"

namespace h5mirror::store {

// Thread-compatible; any number at once beside a writer. Keeps its file alive.
class VersionReaderImpl final : public VersionReader {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;

  // `layers` (oldest first) are durable cuts up to the version that the head may not hold yet. The
  // caller has counted the readers of their segments.
  VersionReaderImpl(std::shared_ptr<VersionSource> file, VersionInfo info,
                    std::shared_ptr<Generation> generation, std::vector<LayerPtr> layers,
                    std::shared_ptr<VersionIndex> index, std::shared_ptr<PageSegments> pages,
                    uint64_t prune_epoch);
  ~VersionReaderImpl() override;

  const VersionInfo& info() const override { return info_; }
  uint32_t page_size_bytes() const override { return page_size_bytes_; }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override;
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) override;
  void StartReading(Extent extent) override;
  absl::StatusOr<Extent> NextData(uint64_t offset) override;
  absl::StatusOr<std::vector<PlacedRun>> Locate(uint64_t page, PageSums sums) override;

  // Fills the empty file `out` with the version; pages of zeros become holes. Returns how many
  // bytes are not holes. If the file system can, `out` shares the head's blocks, and only pages
  // that differ are written. Each page is read and checked. The caller syncs. Errors as Read(), and
  // kCancelled.
  absl::StatusOr<uint64_t> CopyTo(EnvFile& out, const IsCancelled& is_cancelled = nullptr);
  // An upper bound of the bytes that CopyTo() writes to a file that shares no blocks: all bytes but
  // holes. Reads no page. Errors as NextData(), and kCancelled.
  absl::StatusOr<uint64_t> BytesToCopy(const IsCancelled& is_cancelled);
  // Whether CopyTo() can share blocks with a new file of `tree`. Errors as EnvTree::CanShare().
  absl::StatusOr<bool> CanShareIn(EnvTree& tree);

 private:
  // Fills `out` with whole pages from `first` on. Sets `head_only`, one entry for each page: true:
  // the page is the head's.
  absl::Status ReadPages(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // One attempt of ReadPages(). May fail if a prune removes a segment meanwhile.
  absl::Status TryReadPages(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // Fills the pages from `first` on that have a row, and clears them in `head_only`. `owners`: the
  // row of each page of `out`; null: it has none.
  absl::Status ReadRows(uint64_t first, const std::vector<const PageRun*>& owners,
                        absl::Span<char> out, std::vector<bool>* head_only);
  // Fills `out` with pages of `row`, from `page` on.
  absl::Status ReadRow(const PageRun& row, uint64_t page, absl::Span<char> out);
  // Called after a lookup of rows. kOutOfRange: the rows may be another version's by now.
  absl::Status CheckNotDropped() const;
  // For each page from `first` on, the row that holds it; null: none does.
  struct SavedPages {
    uint64_t first = 0;
    std::vector<const PageRun*> owners = {};
  };
  // The part of ReadRanges() for ranges whose rows come with one lookup. Consumes `out` from the
  // front.
  absl::Status ReadNearRanges(absl::Span<const Extent> ranges, absl::Span<char>* out);
  // Fills `out` with the pages of `range` from pages-N. False: a page has no row, or `range` is not
  // of whole pages.
  absl::StatusOr<bool> ReadSaved(const SavedPages& saved, Extent range, absl::Span<char> out);
  // The part of CopyTo() for the pages of `bytes`. `shared`: the pages that are right already,
  // because `out` shares the head's blocks; null: `out` holds nothing.
  absl::StatusOr<uint64_t> CopyPages(EnvFile& out, uint64_t offset, std::string_view bytes,
                                     const std::vector<bool>* shared);
  // Reads the head with the layers over it, and notes which pages are only the head's.
  absl::Status ReadHead(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // Appends the places of the pages [first, first + count).
  absl::Status LocateData(uint64_t first, uint64_t count, PageSums sums,
                          std::vector<PlacedRun>* runs);
  // The place of `page` of `row`.
  PlacedRun PlaceOfRow(const PageRun& row, uint64_t page) const;
  // The places of pages in stage and head, without a look at rows.
  absl::StatusOr<std::vector<PagePlace>> PlacesBelowRows(uint64_t first, uint64_t count);
  // Compares the pages of `bytes` that `check` names with `sums`. kDataLoss: one differs.
  absl::Status Check(uint64_t first, std::string_view bytes, const std::vector<bool>& check,
                     const std::vector<uint32_t>& sums);

  const std::shared_ptr<VersionSource> file_;
  const VersionInfo info_;
  const std::shared_ptr<Generation> generation_;
  const std::vector<LayerPtr> layers_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  const uint64_t prune_epoch_;  // when the version was opened
  const uint32_t page_size_bytes_;
  std::string buffer_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_READER_H_
