#include "server/quotas/space_quotas.h"

#include "base/status_macros.h"

namespace h5mirror::server {

absl::Status SpaceQuotas::MayMove(const std::string& name, const std::string& new_name) {
  if (!ledger.is_on()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::HistorySizes sizes, store.Measure(name, store::WithHead::kYes));
  return ledger.MayHold(new_name, {sizes.head, sizes.history()}, name);
}

absl::Status SpaceQuotas::MayUndelete(const store::RemovedFile& removed, const std::string& name) {
  return ledger.MayHold(name, {removed.disk_bytes, 0}, "");
}

absl::Status SpaceQuotas::MayRollBack(const std::string& name, uint64_t head_bytes) {
  return ledger.MayHold(name, {head_bytes, 0}, "");
}

absl::Status WriterSpace::Open(const std::string& name, uint64_t local_bytes) {
  if (quotas_ == nullptr) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(quotas_->ledger.AddFile(name));
  name_ = name;
  return quotas_->ledger.MayBegin(name, local_bytes);
}

void WriterSpace::Begin(uint64_t head_bytes) {
  end_bytes_ = head_bytes;
  if (head_bytes == 0 && !name_.empty()) quotas_->ledger.BeginGeneration(name_);
}

absl::Status WriterSpace::Write(absl::Span<const Extent> extents) {
  if (quotas_ == nullptr || !quotas_->ledger.is_on()) return absl::OkStatus();
  uint64_t more_bytes = 0;
  uint64_t end_bytes = end_bytes_;
  for (const Extent& extent : extents) {
    // One that overflows is the store's to refuse.
    if (extent.end() < extent.offset || extent.end() <= end_bytes) continue;
    more_bytes += extent.end() - std::max(extent.offset, end_bytes);
    end_bytes = extent.end();
  }
  H5M_RETURN_IF_ERROR(quotas_->ledger.Grow(name_, more_bytes, end_bytes));
  end_bytes_ = end_bytes;
  return absl::OkStatus();
}

void WriterSpace::End() {
  if (!name_.empty()) quotas_->counter.Changed(name_);
}

}  // namespace h5mirror::server
