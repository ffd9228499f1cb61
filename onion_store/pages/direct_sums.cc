#include "onion_store/pages/direct_sums.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/rounding.h"
#include "base/status_macros.h"
#include "onion_store/disk/nameless_file.h"

namespace h5mirror::store {
namespace {

constexpr int64_t kRunBytes = 32;  // of the set of known pages

uint64_t LengthOf(absl::Span<const std::string_view> pieces) {
  uint64_t bytes = 0;
  for (std::string_view piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

DirectSums::DirectSums(MemoryBudget& budget, EnvTree& tree, std::string directory,
                       uint32_t page_size_bytes)
    : budget_(budget),
      tree_(tree),
      directory_(std::move(directory)),
      page_size_bytes_(page_size_bytes),
      zero_crc_(Crc32c(std::string(page_size_bytes, '\0'))),
      charge_(budget) {}

void DirectSums::Note(uint64_t offset, absl::Span<const std::string_view> pieces) {
  const uint64_t length = LengthOf(pieces);
  if (length == 0) return;
  absl::MutexLock lock(&mutex_);
  const uint64_t into_page = offset % page_size_bytes_;
  const bool goes_on =
      tail_.bytes > 0 && into_page == tail_.bytes && offset / page_size_bytes_ == tail_.page;
  Tail at = goes_on ? tail_ : Tail{offset / page_size_bytes_, 0, 0};
  ForgetLocked({offset, length});
  // The rest of a page whose start is not known.
  uint64_t skip = goes_on || into_page == 0 ? 0 : page_size_bytes_ - into_page;
  if (skip > 0) ++at.page;
  const uint64_t first_page = at.page;
  std::vector<uint32_t> sums;
  for (std::string_view piece : pieces) {
    const uint64_t skipped = std::min<uint64_t>(skip, piece.size());
    piece.remove_prefix(skipped);
    skip -= skipped;
    while (!piece.empty()) {
      const std::string_view part = piece.substr(0, page_size_bytes_ - at.bytes);
      at.crc = Crc32cExtend(at.crc, part);
      at.bytes += part.size();
      piece.remove_prefix(part.size());
      if (at.bytes < page_size_bytes_) continue;
      sums.push_back(at.crc ^ zero_crc_);
      at = {at.page + 1, 0, 0};
    }
  }
  tail_ = at;
  if (!sums.empty()) Put(first_page, sums);
}

void DirectSums::Forget(Extent bytes) {
  absl::MutexLock lock(&mutex_);
  ForgetLocked(bytes);
}

void DirectSums::ForgetLocked(Extent bytes) {
  if (bytes.length == 0) return;
  const uint64_t first = bytes.offset / page_size_bytes_;
  const uint64_t last = (bytes.end() - 1) / page_size_bytes_;
  if (tail_.page >= first && tail_.page <= last) tail_ = {};
  known_.Remove({first, last - first + 1});
  if (known_.empty()) {
    ForgetAll();
  } else if (known_.extent_count() > kRunsMax) {
    Thin();
  }
}

void DirectSums::ForgetAll() {
  known_.Clear();
  window_ = {};
  file_.reset();
  charge_.Set(0);
}

void DirectSums::Release(uint64_t end_page) {
  if (end_page == 0) return;
  std::unique_ptr<EnvFile> gone;  // Closed without the lock: the file may be large.
  absl::MutexLock lock(&mutex_);
  known_.Remove({0, end_page});
  if (known_.empty()) {
    gone = std::move(file_);
    return ForgetAll();
  }
  // This only saves space: unknown sums are never read.
  if (file_ != nullptr) file_->Zero({0, end_page * sizeof(uint32_t)}).IgnoreError();
}

void DirectSums::Put(uint64_t first_page, absl::Span<const uint32_t> sums) {
  if (!Store(first_page, sums).ok()) return ForgetAll();
  known_.Add({first_page, sums.size()});
  if (known_.extent_count() > kRunsMax) Thin();
  charge_.Set(static_cast<int64_t>(window_.capacity() * sizeof(uint32_t)) +
              static_cast<int64_t>(known_.extent_count()) * kRunBytes);
}

absl::Status DirectSums::Store(uint64_t first_page, absl::Span<const uint32_t> sums) {
  if (TakeInWindow(first_page, sums)) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(WriteWindow());
  window_first_ = first_page;
  window_.assign(sums.begin(), sums.end());
  if (window_.size() <= kWindowPages) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(WriteWindow());
  window_ = {};
  return absl::OkStatus();
}

bool DirectSums::TakeInWindow(uint64_t first_page, absl::Span<const uint32_t> sums) {
  if (window_.empty()) return false;
  const uint64_t first = std::min(first_page, window_first_);
  const uint64_t end = std::max(first_page + sums.size(), uint64_t{window_first_ + window_.size()});
  if (end - first > (budget_.should_spill() ? 0 : kWindowPages)) return false;
  // A gap would overwrite sums in the file.
  const bool touches = first_page >= window_first_ && first_page <= window_first_ + window_.size();
  if (file_ != nullptr && !touches) return false;
  window_.insert(window_.begin(), window_first_ - first, 0);
  window_first_ = first;
  window_.resize(end - first);
  std::copy(sums.begin(), sums.end(), window_.begin() + static_cast<ptrdiff_t>(first_page - first));
  return true;
}

absl::Status DirectSums::WriteWindow() {
  if (window_.empty()) return absl::OkStatus();
  if (file_ == nullptr) {
    H5M_ASSIGN_OR_RETURN(file_, OpenNameless(tree_, directory_));
  }
  const std::string_view bytes(reinterpret_cast<const char*>(window_.data()),
                               window_.size() * sizeof(uint32_t));
  return WriteAt(*file_, window_first_ * sizeof(uint32_t), bytes);
}

Extent DirectSums::NextPages(uint64_t first, uint64_t end) const {
  absl::MutexLock lock(&mutex_);
  const auto next = known_.NextAfter(first);
  if (!next || next->offset >= end) return {};
  return {next->offset, std::min(next->end(), end) - next->offset};
}

std::vector<uint32_t> DirectSums::Read(uint64_t first_page, uint64_t page_count) {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.NextAfter(first_page);
  if (!known || known->offset != first_page || known->length < page_count) return {};
  std::vector<uint32_t> sums(page_count);
  if (ReadStored(first_page, absl::MakeSpan(sums)).ok()) return sums;
  ForgetAll();
  return {};
}

absl::Status DirectSums::ReadStored(uint64_t first_page, absl::Span<uint32_t> out) {
  if (file_ != nullptr) {
    // The window's sums may be beyond the file's end.
    const absl::Span<char> bytes(reinterpret_cast<char*>(out.data()),
                                 out.size() * sizeof(uint32_t));
    H5M_RETURN_IF_ERROR(ReadOrZeros(*file_, first_page * sizeof(uint32_t), bytes));
  }
  const uint64_t from = std::max(first_page, window_first_);
  const uint64_t end = std::min(first_page + out.size(), uint64_t{window_first_ + window_.size()});
  for (uint64_t page = from; page < end; ++page) {
    out[page - first_page] = window_[page - window_first_];
  }
  return absl::OkStatus();
}

void DirectSums::Thin() {
  std::vector<Extent> runs = known_.ToVector();
  const auto half = runs.begin() + static_cast<ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), half, runs.end(),
                   [](const Extent& a, const Extent& b) { return a.length < b.length; });
  for (auto run = runs.begin(); run != half; ++run) known_.Remove(*run);
}

}  // namespace h5mirror::store
