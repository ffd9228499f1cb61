#include "sync/local_blocks.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "cli/process/io.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kBlockBytesMax = 1 << 20;

}  // namespace

LocalBlocks::LocalBlocks(int fd, uint64_t size_bytes, std::string path,
                         std::function<bool()> stopped)
    : fd_(fd),
      size_bytes_(size_bytes),
      path_(std::move(path)),
      stopped_(std::move(stopped)),
      buffer_(kBlockBytesMax, '\0'),
      zeros_(kBlockBytesMax) {}

absl::StatusOr<BlockDigest> LocalBlocks::DigestOf(Extent block) {
  if (IsHole(block)) return zeros_.Of(block.length);
  H5M_ASSIGN_OR_RETURN(const std::string_view bytes, Read(block));
  return h5mirror::DigestOf(bytes);
}

absl::StatusOr<bool> LocalBlocks::IsZeros(Extent block) {
  if (IsHole(block)) return true;
  H5M_ASSIGN_OR_RETURN(const std::string_view bytes, Read(block));
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

absl::StatusOr<std::string_view> LocalBlocks::Read(Extent block) {
  if (stopped_ && stopped_()) return absl::CancelledError("stopped");
  const uint64_t there = size_bytes_ > block.offset ? size_bytes_ - block.offset : 0;
  const size_t wanted = std::min(block.length, there);
  const absl::StatusOr<size_t> got = PreadUpTo(fd_, block.offset, buffer_.data(), wanted, path_);
  if (!got.ok()) return AsUnreadable(path_, got.status());
  std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(*got),
            buffer_.begin() + static_cast<std::ptrdiff_t>(block.length), '\0');
  return std::string_view(buffer_).substr(0, block.length);
}

std::optional<uint64_t> LocalBlocks::NextDataOffset(uint64_t from) {
  const bool known = searched_ && from >= searched_from_ && (!data_ || from < data_->end());
  if (!known) {
    data_ = NextData(fd_, from, size_bytes_);
    searched_from_ = from;
    searched_ = true;
  }
  if (!data_) return std::nullopt;
  return std::max(from, data_->offset);
}

bool LocalBlocks::IsHole(Extent block) {
  const std::optional<uint64_t> data = NextDataOffset(block.offset);
  return !data || *data >= block.end();
}

}  // namespace h5mirror::tools
