#include "server/quotas/space_quotas.h"

#include "base/status_macros.h"

namespace h5mirror::server {
namespace {

// Bytes that may fill holes are measured at the next cut, or after so many.
constexpr uint64_t kMeasureEvery = uint64_t{64} << 20;

}  // namespace

absl::Status SpaceQuotas::MayMove(const std::string& name, const std::string& new_name) {
  if (!ledger.is_on()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::HistorySizes sizes, store.Measure(name, store::WithHead::kYes));
  uint64_t tags = 0;
  if (ledger.LimitsTags(new_name)) {
    H5M_ASSIGN_OR_RETURN(const auto file, store.OpenFile(name));
    H5M_ASSIGN_OR_RETURN(tags, file->CountTags());
  }
  return ledger.MayHold(new_name, {sizes.head, sizes.history(), tags}, name);
}

absl::Status SpaceQuotas::MayUndelete(const store::RemovedFile& removed, const std::string& name) {
  return ledger.MayHold(name, {removed.head_bytes, removed.history_bytes, removed.tags}, "");
}

void SpaceQuotas::Undeleted(const store::RemovedFile& removed, const std::string& name) {
  if (!ledger.is_on()) return;
  ledger.DropRemoved(removed.id);
  ledger.Measured(name, SpaceSizes{removed.head_bytes, removed.history_bytes, removed.tags});
  counter.Changed(name);
}

void SpaceQuotas::Removed(const store::RemovedFile& removed) {
  if (!ledger.is_on()) return;
  ledger.Removed(SpaceOf(removed));
  counter.Changed(removed.name);  // A new one may be there already.
}

absl::StatusOr<store::VersionNumber> SpaceQuotas::Tag(store::File& file,
                                                      store::VersionNumber version,
                                                      std::string_view tag, store::TagMode mode) {
  if (!ledger.LimitsTags(file.name())) return file.Tag(version, tag, mode);
  // A tag that another version has only moves.
  const bool is_new = absl::IsNotFound(file.FindVersionTagged(tag).status());
  if (is_new) H5M_RETURN_IF_ERROR(ledger.AddTag(file.name()));
  const absl::StatusOr<store::VersionNumber> previous = file.Tag(version, tag, mode);
  if (is_new && (!previous.ok() || *previous != 0)) ledger.DropTag(file.name());
  counter.Changed(file.name());
  return previous;
}

absl::StatusOr<store::VersionNumber> SpaceQuotas::Untag(store::File& file, std::string_view tag) {
  const absl::StatusOr<store::VersionNumber> version = file.Untag(tag);
  if (!version.ok() || !ledger.LimitsTags(file.name())) return version;
  ledger.DropTag(file.name());
  counter.Changed(file.name());
  return version;
}

absl::Status SpaceQuotas::MayRollBack(const std::string& name, uint64_t size_bytes,
                                      uint64_t now_bytes) {
  H5M_RETURN_IF_ERROR(ledger.Fill(name, now_bytes));
  const bool has_holes = ledger.HeadOf(name) < now_bytes;
  return has_holes ? absl::OkStatus() : ledger.MayHold(name, {size_bytes, 0}, "");
}

absl::Status WriterSpace::Open(const std::string& name, uint64_t local_bytes, bool may_create) {
  if (quotas_ == nullptr) return absl::OkStatus();
  if (may_create) H5M_RETURN_IF_ERROR(quotas_->ledger.AddFile(name));
  name_ = name;
  return quotas_->ledger.MayBegin(name, local_bytes);
}

void WriterSpace::BeginGeneration() {
  if (!name_.empty()) credit_bytes_ = quotas_->ledger.HeadOf(name_);
}

absl::Status WriterSpace::Write(absl::Span<const Extent> extents) {
  if (quotas_ == nullptr || !quotas_->ledger.is_on()) return absl::OkStatus();
  uint64_t more_bytes = 0;
  uint64_t inside_bytes = 0;
  uint64_t end_bytes = end_bytes_;
  for (const Extent& extent : extents) {
    if (extent.end() < extent.offset) continue;  // It overflows: the store refuses it.
    const uint64_t more = extent.end() - std::min(std::max(extent.offset, end_bytes), extent.end());
    more_bytes += more;
    inside_bytes += extent.length - more;
    end_bytes = std::max(end_bytes, extent.end());
  }
  const uint64_t credit = std::min(credit_bytes_, more_bytes);
  H5M_RETURN_IF_ERROR(quotas_->ledger.Grow(name_, more_bytes - credit, end_bytes));
  if (inside_bytes > 0) H5M_RETURN_IF_ERROR(quotas_->ledger.Fill(name_, end_bytes));
  credit_bytes_ -= credit;
  end_bytes_ = end_bytes;
  inside_bytes_ += inside_bytes;
  if (inside_bytes_ >= kMeasureEvery) {
    inside_bytes_ = 0;
    quotas_->counter.Changed(name_);
  }
  return absl::OkStatus();
}

void WriterSpace::End() {
  if (!name_.empty()) quotas_->counter.Changed(name_);
}

}  // namespace h5mirror::server
