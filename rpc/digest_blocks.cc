#include "rpc/digest_blocks.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::rpc {

absl::Status DigestBlocks::Take(const v1::DigestFileResponse& message) {
  if (message.has_version()) H5M_RETURN_IF_ERROR(TakeVersion(message.version()));
  pending_ += message.digests();
  BlockDigest digest;
  size_t used = 0;
  for (; pending_.size() - used >= digest.size(); used += digest.size()) {
    if (range_ >= ranges_.size()) return BadCount("more");
    std::memcpy(digest.data(), pending_.data() + used, digest.size());
    Extent& left = ranges_[range_];
    const Extent block{left.offset, std::min<uint64_t>(request_.block_size_bytes(), left.length)};
    H5M_RETURN_IF_ERROR(sink_(block, digest));
    left = {block.end(), left.length - block.length};
    if (left.length == 0) ++range_;
  }
  pending_.erase(0, used);
  return absl::OkStatus();
}

absl::StatusOr<v1::Version> DigestBlocks::Finish() const {
  if (version_.version() == 0 || !pending_.empty() || range_ != ranges_.size()) {
    return BadCount("fewer");
  }
  return version_;
}

absl::Status DigestBlocks::TakeVersion(const v1::Version& version) {
  if (version_.version() != 0 || version.version() <= 0 || version.size_bytes() < 0) {
    return BadCount("other");
  }
  version_ = version;
  for (const v1::ByteRange& range : request_.ranges()) {
    ranges_.push_back({range.offset(), range.length_bytes()});
  }
  if (ranges_.empty() && version.size_bytes() > 0) {
    ranges_.push_back({0, static_cast<uint64_t>(version.size_bytes())});
  }
  return absl::OkStatus();
}

absl::Status DigestBlocks::BadCount(std::string_view what) const {
  return absl::DataLossError(StrCat("compare with ", request_.name(), ": the server sent ", what,
                                    " digests than a version of ", version_.size_bytes(),
                                    " bytes has; check the server with h5mirror doctor"));
}

}  // namespace h5mirror::rpc
