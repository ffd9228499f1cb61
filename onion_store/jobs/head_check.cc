#include "onion_store/jobs/head_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStepBytes = 4 << 20;

}  // namespace

absl::StatusOr<bool> HeadCheck::Step() {
  if (generations_.empty()) return false;
  if (open_ == nullptr) {
    H5M_ASSIGN_OR_RETURN(const bool is_open, Open());
    if (!is_open) {
      Next();
      return true;
    }
  }
  const uint32_t page_bytes = file_.files().page_size_bytes();
  H5M_ASSIGN_OR_RETURN(const uint64_t end_bytes, EndBytes());
  const uint64_t end = file_.files().PagesIn(end_bytes);
  for (uint64_t budget = kStepBytes; budget > 0;) {
    H5M_ASSIGN_OR_RETURN(const uint64_t first, NextPage(next_page_));
    if (first >= end) {
      Next();
      return true;
    }
    next_page_ = std::min(RoundDown(first, kBlockPages) + kBlockPages, end);
    if (!findings_.IsWanted(first)) continue;
    H5M_ASSIGN_OR_RETURN(const uint64_t bytes, Compare(first, next_page_, end_bytes));
    budget -= std::min<uint64_t>(budget, std::max<uint64_t>(bytes, page_bytes));
  }
  return true;
}

absl::StatusOr<bool> HeadCheck::Open() {
  const int64_t number = generations_.back();
  // A prune may have dropped the generation since.
  H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> there, index_.Generations());
  if (std::find(there.begin(), there.end(), number) == there.end()) return false;
  next_page_ = 0;
  auto opened = file_.HeadOf(number);
  if (!opened.ok()) {
    findings_.Report(DamagePlace::kHead, file_.HeadName(number), 0, {0, 0},
                     std::string(opened.status().message()));
    return false;
  }
  open_ = *std::move(opened);
  return open_->sums != nullptr;
}

void HeadCheck::Next() {
  generations_.pop_back();
  open_ = nullptr;
}

absl::StatusOr<uint64_t> HeadCheck::EndBytes() {
  const FileRow row = file_.row();
  if (generations_.back() == row.generation) return row.applied_size_bytes;
  return open_->head->Size();
}

absl::StatusOr<uint64_t> HeadCheck::NextPage(uint64_t page) {
  const uint32_t page_bytes = file_.files().page_size_bytes();
  H5M_ASSIGN_OR_RETURN(const Extent head, open_->head->NextData(page * page_bytes));
  H5M_ASSIGN_OR_RETURN(const Extent sums, open_->sums->NextPages(page));
  uint64_t next = UINT64_MAX;
  if (head.length > 0) next = head.offset / page_bytes;
  if (sums.length > 0) next = std::min(next, sums.offset);
  return std::max(page, next);
}

absl::StatusOr<uint64_t> HeadCheck::Compare(uint64_t first, uint64_t end, uint64_t end_bytes) {
  const uint32_t page_bytes = file_.files().page_size_bytes();
  std::string bytes((end - first) * page_bytes, '\0');
  H5M_RETURN_IF_ERROR(ReadOrZeros(*open_->head, first * page_bytes, absl::MakeSpan(bytes)));
  // A writer's uncut bytes may begin right after the end.
  const uint64_t within = std::min<uint64_t>(bytes.size(), end_bytes - first * page_bytes);
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(within), bytes.end(), '\0');
  H5M_ASSIGN_OR_RETURN(const std::vector<uint32_t> sums, open_->sums->Read(first, end - first));
  const std::vector<uint32_t> now = open_->sums->SumsOf(bytes);
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] != sums[i]) H5M_RETURN_IF_ERROR(Differs(first + i, sums[i], now[i]));
  }
  findings_.progress.checked_bytes += within;
  return bytes.size();
}

absl::Status HeadCheck::Differs(uint64_t page, uint32_t want, uint32_t found) {
  if (file_.HasPartOfApply()) return absl::OkStatus();
  const int64_t generation = generations_.back();
  H5M_ASSIGN_OR_RETURN(const Readers readers, index_.ReadersOf(generation, page, INT64_MAX, 0));
  findings_.Report(DamagePlace::kHead, file_.HeadName(generation),
                   page * file_.files().page_size_bytes(), readers,
                   absl::StrFormat("page %d: checksum 0x%08x, sums-%d says 0x%08x", page, found,
                                   generation, want));
  return absl::OkStatus();
}

}  // namespace h5mirror::store
