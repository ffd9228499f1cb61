#include "onion_store/pages/pinned_pages.h"

#include <utility>

#include "base/status_macros.h"
#include "onion_store/disk/nameless_file.h"

namespace h5mirror::store {
namespace {

constexpr int64_t kEntryBytes = 20;

}  // namespace

PinnedPages::PinnedPages(MemoryBudget& budget, EnvTree& tree, std::string directory,
                         int64_t generation, uint32_t page_size_bytes)
    : tree_(tree),
      directory_(std::move(directory)),
      generation_(generation),
      page_size_bytes_(page_size_bytes),
      charge_(budget) {}

bool PinnedPages::Has(uint64_t page) const {
  absl::MutexLock lock(&mutex_);
  return places_.contains(page);
}

absl::Status PinnedPages::Save(uint64_t first_page, std::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  if (file_ == nullptr) {
    H5M_ASSIGN_OR_RETURN(file_, OpenNameless(tree_, directory_));
  }
  H5M_RETURN_IF_ERROR(WriteAt(*file_, end_bytes_, bytes));
  const uint64_t count = bytes.size() / page_size_bytes_;
  for (uint64_t i = 0; i < count; ++i) {
    places_.try_emplace(first_page + i, end_bytes_ + i * page_size_bytes_);
  }
  end_bytes_ += bytes.size();
  charge_.Set(static_cast<int64_t>(places_.size()) * kEntryBytes);
  return absl::OkStatus();
}

void PinnedPages::SaveLoss(uint64_t page) {
  absl::MutexLock lock(&mutex_);
  places_.try_emplace(page, kLoss);
}

absl::StatusOr<PinnedPages::Found> PinnedPages::Read(uint64_t page, absl::Span<char> out) const {
  EnvFile* file;
  uint64_t offset;
  {
    absl::MutexLock lock(&mutex_);
    const auto place = places_.find(page);
    if (place == places_.end()) return Found::kNo;
    if (place->second == kLoss) return Found::kLost;
    offset = place->second;
    file = file_.get();
  }
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(offset, out));
  if (got != out.size()) return absl::InternalError("a file of kept pages became shorter");
  return Found::kYes;
}

uint64_t PinnedPages::NextPage(uint64_t page) const {
  absl::MutexLock lock(&mutex_);
  const auto next = places_.lower_bound(page);
  return next == places_.end() ? UINT64_MAX : next->first;
}

bool PinnedPages::empty() const {
  absl::MutexLock lock(&mutex_);
  return places_.empty();
}

uint64_t PinnedPages::disk_bytes() const {
  absl::MutexLock lock(&mutex_);
  return end_bytes_;
}

}  // namespace h5mirror::store
