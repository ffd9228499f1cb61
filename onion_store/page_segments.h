// Pre-images: what pages held at older versions. On disk: docs/format.md, "pages-NNNNNN".
#ifndef H5MIRROR_ONION_STORE_PAGE_SEGMENTS_H_
#define H5MIRROR_ONION_STORE_PAGE_SEGMENTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "onion_store/stage_log.h"
#include "onion_store/version_index.h"

namespace h5mirror::store {

constexpr uint64_t kPageSegmentBytesMax = uint64_t{256} << 20;

// Read() is thread-safe; Append() and Sync() are for one thread at a time.
class PageSegments {
 public:
  // Goes on at `segment`, `end_bytes`; what lies beyond is cut off at the first Append.
  PageSegments(EnvTree& tree, std::string directory, FileId file_id, uint32_t page_size_bytes,
               uint64_t segment, uint64_t end_bytes)
      : tree_(tree),
        directory_(std::move(directory)),
        file_id_(file_id),
        page_size_bytes_(page_size_bytes),
        segment_(segment),
        end_bytes_(end_bytes) {}

  // Appends the 2^level pages of `bytes`, whose crc32c are `crcs`; returns the row for the index.
  // They are in the file after Sync(). After an error of either the rows since the last Sync() are
  // worth nothing.
  absl::StatusOr<PageRun> Append(int64_t generation, int level, uint64_t page,
                                 VersionNumber version, std::string_view bytes,
                                 absl::Span<const uint32_t> crcs);
  // Makes what was appended durable, names included.
  absl::Status Sync();

  // Fills `out` with the pages [first, first + out.size() / page size), which `run` holds.
  // kDataLoss names the segment and the offset.
  absl::Status Read(const PageRun& run, int64_t generation, uint64_t first, absl::Span<char> out);

  // Where the bytes of page `first` of `run` lie; kZeros too. Constant once the row is committed.
  StageLocation LocationOf(const PageRun& run, uint64_t first) const;
  // Fills `out` with the bytes from `at` on, unchecked.
  absl::Status ReadAt(StageLocation at, absl::Span<char> out);

  // The file of a segment, relative to the root.
  std::string SegmentName(uint64_t number) const;
  uint64_t segment() const { return segment_; }
  uint64_t end_bytes() const { return end_bytes_; }

 private:
  absl::Status Write();  // buffer_
  absl::StatusOr<std::shared_ptr<EnvFile>> Segment(uint64_t number, OpenKind kind);

  EnvTree& tree_;
  const std::string directory_;
  const FileId file_id_;
  const uint32_t page_size_bytes_;
  uint64_t segment_;
  uint64_t end_bytes_;  // buffer_ included, whose bytes are the last ones
  std::string buffer_;
  bool checked_ = false;   // the tail of segment_ was cut off
  bool new_name_ = false;  // segment_ was made since the last Sync()
  absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<EnvFile>> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGE_SEGMENTS_H_
