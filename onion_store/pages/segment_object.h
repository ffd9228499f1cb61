// The object of an archive that holds one segment of saved pages. On disk:
// docs/reference/format.md, "Objects of an archive".
#ifndef H5MIRROR_ONION_STORE_PAGES_SEGMENT_OBJECT_H_
#define H5MIRROR_ONION_STORE_PAGES_SEGMENT_OBJECT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/env.h"
#include "onion_store/index/version_index.h"
#include "onion_store/object_store.h"
#include "onion_store/types.h"

namespace h5mirror::store {

inline constexpr uint64_t kSegmentObjectHeaderBytes = 64;

// A name that no object has: "files/FILEID/pages-NNNNNN-RANDOM".
std::string NewSegmentObjectName(const FileId& file_id, uint64_t segment);

// The header, for the values of `segment`.
std::string SegmentObjectHeader(const FileId& file_id, uint32_t page_size_bytes,
                                const ArchivedSegment& segment);
// kDataLoss: `header` differs from the one that SegmentObjectHeader() makes; the message says
// where.
absl::Status CheckSegmentObjectHeader(std::string_view header, const FileId& file_id,
                                      uint32_t page_size_bytes, const ArchivedSegment& segment);

// The object of the segment in `file`, which is as long as its row says.
class SegmentObjectSource final : public ObjectSource {
 public:
  SegmentObjectSource(std::string header, std::shared_ptr<EnvFile> file, uint64_t file_bytes)
      : header_(std::move(header)), file_(std::move(file)), file_bytes_(file_bytes) {}

  uint64_t size_bytes() const override { return header_.size() + file_bytes_; }
  // kDataLoss: the segment has become shorter.
  absl::Status Read(uint64_t offset, absl::Span<char> out) override;

 private:
  const std::string header_;
  const std::shared_ptr<EnvFile> file_;
  const uint64_t file_bytes_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_SEGMENT_OBJECT_H_
