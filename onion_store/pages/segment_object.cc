#include "onion_store/pages/segment_object.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kMagic = "H5MARCP1";
constexpr size_t kCrcOffset = 8;  // of the crc32c of all that follows it

}  // namespace

std::string NewSegmentObjectName(const FileId& file_id, uint64_t segment) {
  return StrCat("files/", HexOf(file_id), absl::StrFormat("/pages-%06d-", segment),
                HexOf(RandomBytes16()));
}

std::string SegmentObjectHeader(const FileId& file_id, uint32_t page_size_bytes,
                                const ArchivedSegment& segment) {
  std::string header(kMagic);
  PutInt<uint32_t>(&header, 0);
  PutInt<uint32_t>(&header, page_size_bytes);
  header.append(reinterpret_cast<const char*>(file_id.data()), file_id.size());
  PutInt<uint64_t>(&header, segment.segment);
  PutInt<uint64_t>(&header, segment.length);
  PutInt<uint32_t>(&header, segment.crc32c);
  header.resize(kSegmentObjectHeaderBytes, '\0');
  PutIntAt<uint32_t>(&header, kCrcOffset,
                     Crc32c(std::string_view(header).substr(kCrcOffset + sizeof(uint32_t))));
  return header;
}

absl::Status CheckSegmentObjectHeader(std::string_view header, const FileId& file_id,
                                      uint32_t page_size_bytes, const ArchivedSegment& segment) {
  const std::string wanted = SegmentObjectHeader(file_id, page_size_bytes, segment);
  if (header == wanted) return absl::OkStatus();
  const size_t common = std::min(header.size(), wanted.size());
  const auto differs = std::mismatch(header.begin(), header.begin() + common, wanted.begin());
  return absl::DataLossError(StrCat("its header is another's, or damaged: it differs at offset ",
                                    differs.first - header.begin()));
}

absl::Status SegmentObjectSource::Read(uint64_t offset, absl::Span<char> out) {
  if (offset < header_.size()) {
    const size_t length = header_.copy(out.data(), out.size(), offset);
    offset += length;
    out.remove_prefix(length);
  }
  if (out.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset - header_.size(), out));
  if (got == out.size()) return absl::OkStatus();
  return absl::DataLossError("the segment has become shorter while it was archived");
}

}  // namespace h5mirror::store
