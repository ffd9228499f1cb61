// Pre-images: the bytes of pages at older versions. On disk:
// docs/reference/format.md, "Pages records".
#ifndef H5MIRROR_ONION_STORE_PAGES_PAGE_SEGMENTS_H_
#define H5MIRROR_ONION_STORE_PAGES_PAGE_SEGMENTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/archived_segments.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {

constexpr uint64_t kPageSegmentBytesMax = uint64_t{256} << 20;

// Read() is thread-safe; Append() and Sync() are for one thread at a time.
class PageSegments {
 public:
  // Goes on in `segment` at `end_bytes`. The first Append() cuts off the bytes after that.
  // `archive`: has the segments that are not on the disk, and must outlive this; null: there are
  // none.
  PageSegments(EnvTree& tree, std::string directory, FileId file_id, uint32_t page_size_bytes,
               uint64_t segment, uint64_t end_bytes, ObjectCache* archive = nullptr)
      : tree_(tree),
        directory_(std::move(directory)),
        file_id_(file_id),
        page_size_bytes_(page_size_bytes),
        segment_(segment),
        end_bytes_(end_bytes) {
    if (archive != nullptr) archived_ = std::make_unique<ArchivedSegments>(*archive);
  }

  // The index that knows which segments are archived.
  void UseIndex(const std::shared_ptr<VersionIndex>& index) {
    if (archived_ != nullptr) archived_->UseIndex(index);
  }

  // Appends the 2^level pages of `bytes`, whose crc32c are `crcs`. Returns the row for the index,
  // which may be committed after Sync(). After an error of Append() or Sync() the rows since the
  // last Sync() are void.
  absl::StatusOr<PageRun> Append(int64_t generation, int level, uint64_t page,
                                 VersionNumber version, std::string_view bytes,
                                 absl::Span<const uint32_t> crcs);
  // The same, for pages that PackPages() has packed into `packed`.
  absl::StatusOr<PageRun> AppendPacked(int64_t generation, int level, uint64_t page,
                                       VersionNumber version, std::string_view packed,
                                       absl::Span<const uint32_t> crcs);
  // Appends the record of `run` as it is, from another segment. Returns the row of the copy. Errors
  // as Append(); kDataLoss: the record does not match its checksums.
  absl::StatusOr<PageRun> Copy(const PageRun& run, int64_t generation);
  // Reads the record of `run`. kDataLoss: it is damaged, or has other pages than `run`.
  absl::Status Check(const PageRun& run, int64_t generation);
  // Makes the appended records durable, and the names of new segments.
  absl::Status Sync();
  // Later records go to a new segment. No record may wait for a Sync().
  void Rotate();
  // Removes a segment from the disk. No staged revert may name it, and no row, unless it is
  // archived.
  absl::Status Remove(uint64_t number);
  // Whether a segment is on the disk.
  absl::StatusOr<bool> IsOnDisk(uint64_t number) { return tree_.Exists(SegmentName(number)); }

  // Fills `out` with the pages [first, first + out.size() / page size), which `run` holds. If the
  // segment is not on the disk, asks the archive. kDataLoss names the segment, the offset and the
  // object. Errors of an archive: as ObjectCache::Read().
  absl::Status Read(const PageRun& run, int64_t generation, uint64_t first, absl::Span<char> out);

  // The place of page `first` of `run`, which must be plain or kZeros. Constant once the row is
  // committed.
  StageLocation LocationOf(const PageRun& run, uint64_t first) const;
  // Fills `out` with the bytes from `at` on. Compares no checksum. The segment must be on the disk.
  absl::Status ReadAt(StageLocation at, absl::Span<char> out);

  // The length of the record of `run` in its segment.
  uint64_t RecordBytes(const PageRun& run) const;
  // How many bytes dropping the row frees, once its segment is rewritten.
  uint64_t DiskBytes(const PageRun& run) const {
    return run.segment == PageRun::kZeros || run.segment == PageRun::kLost ? 0 : RecordBytes(run);
  }
  // The file of a segment, relative to the root.
  std::string SegmentName(uint64_t number) const;
  uint64_t segment() const { return segment_; }
  uint64_t end_bytes() const { return end_bytes_; }

 private:
  // The header of a record of `run`, checksums included.
  std::string Header(const PageRun& run, int64_t generation, absl::Span<const uint32_t> crcs) const;
  // Appends `header` and `bytes`, a record, to segment_.
  absl::StatusOr<PageRun> AppendRecord(PageRun run, std::string_view header,
                                       std::string_view bytes);
  // The record of `run`, its header checked.
  absl::StatusOr<std::string> ReadRecord(const PageRun& run, int64_t generation);
  absl::Status ReadOnce(const PageRun& run, int64_t generation, uint64_t first,
                        absl::Span<char> out);
  absl::Status CheckOnce(const PageRun& run, int64_t generation);
  // The result of `read`. If the bytes came from the archive and are damaged, calls `read` once
  // more, which asks the archive again: a cache or a connection may have done the damage.
  absl::Status TwiceIfArchived(const PageRun& run, absl::FunctionRef<absl::Status()> read);
  // Reads the header of `run`, and `out` from `skip` pages behind it. Returns the header.
  absl::StatusOr<std::string> ReadPlain(const PageRun& run, int64_t generation, uint64_t skip,
                                        absl::Span<char> out);
  // kDataLoss: a page of `record` does not match its checksum.
  absl::Status CheckRecord(const PageRun& run, std::string_view record) const;
  // Fills `all` with the pages of `record`, a whole record of `run`.
  absl::Status Unpack(const PageRun& run, std::string_view record, absl::Span<char> all) const;
  // Compares `bytes`, the pages of `run` from `skip` on, with the checksums behind its header.
  absl::Status CheckPages(const PageRun& run, std::string_view header, uint64_t skip,
                          std::string_view bytes) const;
  // Makes room for one more record in segment_, or goes on to the next one.
  absl::Status NeedRoom();
  // kDataLoss: `header`, read at `run.offset`, is not that of `run`.
  absl::Status CheckHeader(const PageRun& run, int64_t generation, std::string_view header) const;
  absl::StatusOr<std::shared_ptr<EnvFile>> SegmentOfRun(const PageRun& run);
  uint64_t HeaderBytes(const PageRun& run) const;
  uint64_t PagesBytes(const PageRun& run) const { return run.page_count() * page_size_bytes_; }
  absl::Status Damaged(const PageRun& run, std::string_view what) const;
  absl::Status Write();  // buffer_
  absl::StatusOr<std::shared_ptr<EnvFile>> Segment(uint64_t number, OpenKind kind);

  EnvTree& tree_;
  std::unique_ptr<ArchivedSegments> archived_;  // null: there is no archive. Constant
  const std::string directory_;
  const FileId file_id_;
  const uint32_t page_size_bytes_;
  uint64_t segment_;
  uint64_t end_bytes_;  // with buffer_, whose bytes are the last ones
  std::string buffer_;
  bool checked_ = false;   // the tail of segment_ was cut off
  bool new_name_ = false;  // segment_ was made since the last Sync()
  absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<EnvFile>> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PAGE_SEGMENTS_H_
