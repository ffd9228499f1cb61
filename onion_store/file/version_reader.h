// Reads one version: docs/design/036-reading-a-version.md.
#ifndef H5MIRROR_ONION_STORE_FILE_VERSION_READER_H_
#define H5MIRROR_ONION_STORE_FILE_VERSION_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "onion_store/file/file_layers.h"
#include "onion_store/file/version_source.h"

namespace h5mirror::store {

// Takes no lock against writers: whoever changes the head has first put a row into the index.
class VersionReaderImpl final : public VersionReader {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;

  // `layers` (oldest first) are durable cuts up to the version that the head may not hold yet.
  // Their segments' readers were counted by the caller.
  VersionReaderImpl(std::shared_ptr<VersionSource> file, VersionInfo info,
                    std::shared_ptr<Generation> generation, std::vector<LayerPtr> layers,
                    std::shared_ptr<VersionIndex> index, std::shared_ptr<PageSegments> pages,
                    uint64_t prune_epoch);
  ~VersionReaderImpl() override;

  const VersionInfo& info() const override { return info_; }
  uint32_t page_size_bytes() const override { return page_size_bytes_; }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override;
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) override;
  absl::StatusOr<Extent> NextData(uint64_t offset) override;
  absl::StatusOr<std::vector<PlacedRun>> Locate(uint64_t page, PageSums sums) override;

  // Makes `out`, an empty file, the version, with holes where it has zeros; returns the bytes that
  // are not holes. Shares the head's blocks where the file system can, and writes only what
  // differs then. Each page is read and checked. The caller syncs. Errors as Read().
  absl::StatusOr<uint64_t> CopyTo(EnvFile& out);

 private:
  // `head_only`: which pages are what the head holds.
  absl::Status ReadPages(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // The same, once: the rows that it looks up may name segments that a prune removes meanwhile.
  absl::Status TryReadPages(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // Fills those of the pages from `first` on that have a row, and takes them from `head_only`.
  // `owners`: one for each page of `out`; null: it has none.
  absl::Status ReadRows(uint64_t first, const std::vector<const PageRun*>& owners,
                        absl::Span<char> out, std::vector<bool>* head_only);
  // Fills `out` with pages of `row`, from `page` on.
  absl::Status ReadRow(const PageRun& row, uint64_t page, absl::Span<char> out);
  // Asked after a lookup of rows: kOutOfRange where they may be another version's by now.
  absl::Status CheckNotDropped() const;
  // Which rows hold the pages from `first` on; null: none does.
  struct SavedPages {
    uint64_t first = 0;
    std::vector<const PageRun*> owners = {};
  };
  // The part of ReadRanges() for ranges of which one lookup gives the rows. Takes from `out`.
  absl::Status ReadNearRanges(absl::Span<const Extent> ranges, absl::Span<char>* out);
  // Fills `out` with the pages of `range` from segments; false: not all of them are in one, or it
  // is not of whole pages.
  absl::StatusOr<bool> ReadSaved(const SavedPages& saved, Extent range, absl::Span<char> out);
  // The part of CopyTo() for the pages of `bytes`. `shared`: which pages of an `out` that shares
  // the head's blocks are right already; null: `out` holds nothing.
  absl::StatusOr<uint64_t> CopyPages(EnvFile& out, uint64_t offset, std::string_view bytes,
                                     const std::vector<bool>* shared);
  // The head with the layers over it, and which pages are the head's alone.
  absl::Status ReadHead(uint64_t first, absl::Span<char> out, std::vector<bool>* head_only);
  // Appends where the pages [first, first + count) lie.
  absl::Status LocateData(uint64_t first, uint64_t count, PageSums sums,
                          std::vector<PlacedRun>* runs);
  // Where `page` of `row` lies.
  PlacedRun PlaceOfRow(const PageRun& row, uint64_t page) const;
  // Where they lie as far as stage and head are concerned.
  absl::StatusOr<std::vector<PagePlace>> PlacesBelowRows(uint64_t first, uint64_t count);
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

#endif  // H5MIRROR_ONION_STORE_FILE_VERSION_READER_H_
