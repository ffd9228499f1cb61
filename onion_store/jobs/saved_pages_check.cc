#include "onion_store/jobs/saved_pages_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStepBytes = 4 << 20;
constexpr uint64_t kRowBytes = 64;  // the cost of a row, in bytes of a step
constexpr size_t kStepRows = 1024;

bool IsStored(const PageRun& run) {
  return run.segment != PageRun::kZeros && run.segment != PageRun::kLost;
}

}  // namespace

absl::StatusOr<bool> SavedPagesCheck::Step() {
  for (uint64_t bytes = 0; bytes < kStepBytes;) {
    if (rows_.empty()) {
      if (!more_rows_) {
        ReportLost();
        return false;
      }
      H5M_ASSIGN_OR_RETURN(more_rows_, index_.ScanPages(kStepRows, &cursor_, &rows_));
      std::reverse(rows_.begin(), rows_.end());  // Rows are taken from the end.
      if (rows_.empty()) continue;
    }
    const RunOfGeneration row = rows_.back();
    rows_.pop_back();
    H5M_ASSIGN_OR_RETURN(const uint64_t checked, CheckRow(row));
    bytes += checked + kRowBytes;
    findings_.progress.checked_bytes += checked;
  }
  return true;
}

bool SavedPagesCheck::IsSane(const PageRun& run) const {
  if (run.level < 0 || run.level > kPageLevelMax) return false;
  if (run.page % (uint64_t{1} << run.level) != 0) return false;
  return !IsStored(run) || run.segment <= pages_.segment();
}

absl::StatusOr<uint64_t> SavedPagesCheck::CheckRow(const RunOfGeneration& row) {
  const PageRun& run = row.run;
  if (!IsSane(run)) {
    H5M_RETURN_IF_ERROR(ReportRow(row, DamagePlace::kIndex, file_.files().HistoryName("index"),
                                  "no such level, page or segment")
                            .status());
    return 0;
  }
  if (archive_.Has(run.segment) || !findings_.IsWanted(run.page)) return 0;
  if (!IsStored(run)) {
    if (run.segment == PageRun::kLost) H5M_RETURN_IF_ERROR(NoteLost(row));
    return 0;
  }
  const absl::Status checked = pages_.Check(run, row.generation);
  if (checked.ok()) return pages_.RecordBytes(run);
  if (!absl::IsDataLoss(checked)) return checked;
  H5M_ASSIGN_OR_RETURN(const bool is_there,
                       ReportRow(row, DamagePlace::kPages, pages_.SegmentName(run.segment),
                                 ToStd(checked.message())));
  return is_there ? pages_.RecordBytes(run) : 0;
}

absl::StatusOr<bool> SavedPagesCheck::ReportRow(const RunOfGeneration& row, DamagePlace place,
                                                std::string file, std::string_view wrong) {
  const PageRun& run = row.run;
  H5M_ASSIGN_OR_RETURN(const bool same, index_.HasRun(row.generation, run));
  if (!same) return false;
  H5M_ASSIGN_OR_RETURN(const Readers readers,
                       index_.ReadersOf(row.generation, run.page, run.version, 0));
  findings_.Report(place, std::move(file), run.offset, readers,
                   absl::StrFormat("pages %d to %d of version %d: %s", run.page, run.page_end() - 1,
                                   run.version, wrong));
  return true;
}

absl::Status SavedPagesCheck::NoteLost(const RunOfGeneration& row) {
  const PageRun& run = row.run;
  const uint64_t offset = run.page * file_.files().page_size_bytes();
  H5M_ASSIGN_OR_RETURN(const Readers readers,
                       index_.ReadersOf(row.generation, run.page, run.version, offset));
  if (readers.second == 0) return absl::OkStatus();  // All versions end before it.
  if (lost_ && lost_->generation == row.generation && lost_->readers == readers &&
      (run.page == lost_->end || run.page + 1 == lost_->first)) {
    lost_->first = std::min(lost_->first, run.page);
    lost_->end = std::max(lost_->end, run.page + 1);
    return absl::OkStatus();
  }
  ReportLost();
  lost_ = LostPages{row.generation, run.page, run.page + 1, readers};
  return absl::OkStatus();
}

void SavedPagesCheck::ReportLost() {
  if (!lost_) return;
  const LostPages lost = *std::exchange(lost_, std::nullopt);
  const bool is_one = lost.end - lost.first == 1;
  findings_.Report(
      DamagePlace::kPages, file_.HeadName(lost.generation),
      lost.first * file_.files().page_size_bytes(), lost.readers,
      absl::StrFormat("%s lost: the head was changed or damaged from outside before %s saved",
                      is_one ? absl::StrFormat("page %d is", lost.first)
                             : absl::StrFormat("pages %d to %d are", lost.first, lost.end - 1),
                      is_one ? "it was" : "they were"));
}

}  // namespace h5mirror::store
