#include "swmr_agent/block_splitter.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"
#include "swmr_agent/block_pool.h"

namespace h5mirror::agent {

uint64_t BlockSplitter::BlockBegin() const { return at_ / kBlockBytes * kBlockBytes; }

uint64_t BlockSplitter::BlockEnd() const { return std::min(BlockBegin() + kBlockBytes, end_); }

absl::Status BlockSplitter::Take(uint64_t offset, std::string_view data) {
  if (offset < begin_ || offset > end_ || data.size() > end_ - offset) {
    return absl::InternalError(StrCat("the server sent bytes [", offset, ", +", data.size(),
                                      "), and [", begin_, ", ", end_, ") was asked for"));
  }
  const uint64_t known = std::min<uint64_t>(data.size(), at_ - std::min(at_, offset));
  data.remove_prefix(known);
  offset += known;
  if (data.empty()) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(FeedZeros(offset - at_));
  while (!data.empty()) {
    const std::string_view part = data.substr(0, BlockEnd() - at_);
    data.remove_prefix(part.size());
    H5M_RETURN_IF_ERROR(Feed(part));
  }
  return absl::OkStatus();
}

absl::Status BlockSplitter::FeedZeros(uint64_t length) {
  static const std::string* const zeros = new std::string(kBlockBytes, '\0');
  while (length > 0) {
    const auto part = std::string_view(*zeros).substr(0, std::min(length, BlockEnd() - at_));
    length -= part.size();
    H5M_RETURN_IF_ERROR(Feed(part));
  }
  return absl::OkStatus();
}

absl::Status BlockSplitter::Feed(std::string_view bytes) {
  const uint64_t begin = BlockBegin(), end = BlockEnd();
  at_ += bytes.size();
  if (bytes.size() == end - begin) return keep_(begin / kBlockBytes, bytes);
  started_.append(bytes);
  if (at_ < end) return absl::OkStatus();
  const absl::Status kept = keep_(begin / kBlockBytes, started_);
  started_.clear();
  return kept;
}

}  // namespace h5mirror::agent
