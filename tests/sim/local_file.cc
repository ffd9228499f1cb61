#include "tests/sim/local_file.h"

#include <algorithm>
#include <cstring>

namespace h5mirror::sim {

void LocalFile::Touch(int64_t time_ns) {
  // A clock that is set back still shows another time.
  time_ns_ = time_ns == time_ns_ ? time_ns + 1 : time_ns;
  ++number_;
  consistent_ = false;
  image_.reset();
}

void LocalFile::Write(uint64_t offset, const std::string& bytes, int64_t time_ns) {
  if (bytes_.size() < offset + bytes.size()) bytes_.resize(offset + bytes.size());
  std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
  Touch(time_ns);
}

void LocalFile::Truncate(uint64_t size_bytes, int64_t time_ns) {
  bytes_.resize(size_bytes);
  Touch(time_ns);
}

FileStat LocalFile::Stat() const {
  return {inode_, static_cast<int64_t>(bytes_.size()), time_ns_, time_ns_};
}

ImagePtr LocalFile::Snapshot() {
  if (!consistent_) return nullptr;
  if (image_ == nullptr) image_ = std::make_shared<const Image>(Image{bytes_, number_});
  return image_;
}

absl::Status SimReader::Read(Extent extent, char* out) const {
  const std::string& bytes = file_->bytes();
  const uint64_t within = extent.offset >= bytes.size()
                              ? 0
                              : std::min<uint64_t>(extent.length, bytes.size() - extent.offset);
  if (within > 0) std::memcpy(out, bytes.data() + extent.offset, within);
  std::memset(out + within, 0, extent.length - within);
  return absl::OkStatus();
}

std::vector<Extent> SimReader::DataExtents() const {
  constexpr uint64_t kBlock = 4096;
  const std::string& bytes = file_->bytes();
  std::vector<Extent> extents;
  for (uint64_t at = 0; at < bytes.size(); at += kBlock) {
    const uint64_t length = std::min<uint64_t>(kBlock, bytes.size() - at);
    const std::string_view block = std::string_view(bytes).substr(at, length);
    if (block.find_first_not_of('\0') == block.npos) continue;
    if (!extents.empty() && extents.back().end() == at) {
      extents.back().length += length;
    } else {
      extents.push_back({at, length});
    }
  }
  return extents;
}

}  // namespace h5mirror::sim
