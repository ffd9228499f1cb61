#include "onion_store/file/apply/direct_pass.h"

#include <algorithm>

#include "base/rounding.h"
#include "base/status_macros.h"
#include "onion_store/pages/direct_sums.h"

namespace h5mirror::store {
namespace {

// The sums that one step takes over: those of 256 MiB of pages of 4 KiB.
constexpr uint64_t kKnownPages = 1 << 16;

}  // namespace

DirectPass::DirectPass(const CutLayer& layer, uint32_t page_size_bytes)
    : layer_(layer), page_size_bytes_(page_size_bytes), direct_(layer.data.direct().ToVector()) {}

absl::StatusOr<bool> DirectPass::Step() {
  for (uint64_t cost = 0; cost < kStepBytes;) {
    if (next_ == direct_.size()) return false;
    const Extent& direct = direct_[next_];
    at_ = std::max(at_, RoundDown(direct.offset, page_size_bytes_));
    const uint64_t end = RoundUp(std::min(direct.end(), layer_.size_bytes), page_size_bytes_);
    if (at_ >= end) {
      ++next_;
      continue;
    }
    H5M_ASSIGN_OR_RETURN(const uint64_t some, SumSome(end));
    cost += some;
  }
  return true;
}

absl::StatusOr<uint64_t> DirectPass::SumSome(uint64_t end) {
  const DirectSums* const sums = layer_.generation->direct_sums.get();
  if (sums == nullptr) return ReadBack(end);
  // Whole pages only: in the page that holds the cut's end, the bytes beyond the end are zeros.
  const uint64_t whole = std::min(end, RoundDown(layer_.size_bytes, page_size_bytes_));
  const Extent known = sums->NextPages(PageOf(at_), PageOf(whole));
  if (known.length == 0) return ReadBack(end);
  const uint64_t first = known.offset * page_size_bytes_;
  return first > at_ ? ReadBack(first) : TakeOver(known.end() * page_size_bytes_);
}

absl::StatusOr<uint64_t> DirectPass::TakeOver(uint64_t end) {
  const uint64_t count = std::min(kKnownPages, PageOf(end - at_));
  const std::vector<uint32_t> sums = layer_.generation->direct_sums->Read(PageOf(at_), count);
  if (sums.empty()) return ReadBack(end);  // They were forgotten meanwhile.
  H5M_RETURN_IF_ERROR(layer_.generation->sums->Write(PageOf(at_), sums));
  at_ += count * page_size_bytes_;
  return count * sizeof(uint32_t);
}

absl::StatusOr<uint64_t> DirectPass::ReadBack(uint64_t end) {
  EnvFile& head = *layer_.generation->head;
  if (at_ >= data_.end()) {
    H5M_ASSIGN_OR_RETURN(data_, head.NextData(at_));
  }
  const uint64_t from =
      data_.length == 0 ? end : std::max(at_, RoundDown(data_.offset, page_size_bytes_));
  if (from >= end) {
    at_ = end;
    return page_size_bytes_;
  }
  at_ = from;
  const uint64_t stop = std::min(end, RoundUp(data_.end(), page_size_bytes_));
  buffer_.resize(std::min(kChunkBytes, stop - at_));
  // Staged bytes of the same cut lie over its direct bytes, and are in the head by now.
  H5M_RETURN_IF_ERROR(ReadThrough({}, head, layer_.size_bytes, at_, absl::MakeSpan(buffer_)));
  SumsFile& sums = *layer_.generation->sums;
  H5M_RETURN_IF_ERROR(sums.Write(PageOf(at_), sums.SumsOf(buffer_)));
  at_ += buffer_.size();
  read_bytes_ += buffer_.size();
  return buffer_.size();
}

}  // namespace h5mirror::store
