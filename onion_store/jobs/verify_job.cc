#include "onion_store/jobs/verify_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStepBytes = 4 << 20;  // of a head or of records, in memory at once

}  // namespace

VerifyJobImpl::VerifyJobImpl(std::shared_ptr<VerifySource> file,
                             std::shared_ptr<VersionIndex> index,
                             std::shared_ptr<PageSegments> pages, VerifySubset subset)
    : file_(std::move(file)),
      files_(file_->files()),
      work_lock_(file_->work_lock()),
      index_(std::move(index)),
      pages_(std::move(pages)),
      kept_on_disk_(file_->PinDisk()),
      findings_(subset),
      heads_(*file_, *index_, findings_),
      archive_(*file_, *index_, *pages_, findings_),
      saved_(*file_, *index_, *pages_, archive_, findings_),
      charge_(files_.budget(), kStepBytes) {}

absl::StatusOr<VerifyProgress> VerifyJobImpl::Step() {
  H5M_RETURN_IF_ERROR(file_->dead());
  VerifyProgress& progress = findings_.progress;
  progress.found.clear();
  const absl::StatusOr<bool> more = RunPhase();
  if (absl::IsDataLoss(more.status())) {
    // The index cannot be asked further: that is a finding. On with the next phase.
    ReportIndex(std::string(more.status().message()));
  } else {
    H5M_RETURN_IF_ERROR(more.status());
  }
  if (!more.value_or(false)) phase_ = static_cast<Phase>(static_cast<uint8_t>(phase_) + 1);
  progress.done = phase_ == Phase::kDone;
  progress.total_bytes = std::max(progress.total_bytes, progress.checked_bytes);
  return progress;
}

absl::StatusOr<bool> VerifyJobImpl::RunPhase() {
  if (phase_ == Phase::kArchive) return archive_.Step();
  WorkTurn turn(&work_lock_);
  H5M_RETURN_IF_ERROR(file_->dead());
  return RunLocked();
}

absl::StatusOr<bool> VerifyJobImpl::RunLocked() {
  switch (phase_) {
    case Phase::kIndex:
      H5M_RETURN_IF_ERROR(CheckIndex());
      return false;
    case Phase::kStage:
      H5M_RETURN_IF_ERROR(CheckStage());
      return false;
    case Phase::kHeads:
      return heads_.Step();
    case Phase::kPages:
      return saved_.Step();
    case Phase::kArchive:
    case Phase::kDone:
      break;
  }
  return true;
}

void VerifyJobImpl::ReportIndex(std::string message) {
  findings_.Report(DamagePlace::kIndex, files_.HistoryName("index"), 0, {0, 0}, std::move(message));
}

absl::Status VerifyJobImpl::CheckIndex() {
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> wrong, index_->CheckWhole());
  for (const std::string& message : wrong) ReportIndex(message);
  // Only this check reports it: a file works without it.
  if (const absl::Status check = index_->LastCheck().status(); absl::IsDataLoss(check)) {
    ReportIndex(
        StrCat(ToStd(check.message()),
               "; it counts as never compared, the next h5mirror verify --against mends it"));
  }
  if (const absl::Status sources = index_->CheckSources(); absl::IsDataLoss(sources)) {
    ReportIndex(std::string(sources.message()));
  }
  if (const absl::Status groups = index_->CheckGroups(); absl::IsDataLoss(groups)) {
    ReportIndex(std::string(groups.message()));
  }
  H5M_ASSIGN_OR_RETURN(std::vector<int64_t> generations, index_->Generations());
  if (const absl::Status archive = archive_.Start(); absl::IsDataLoss(archive)) {
    ReportIndex(std::string(archive.message()));
  } else {
    H5M_RETURN_IF_ERROR(archive);
  }
  findings_.progress.total_bytes += archive_.bytes();
  uint64_t bytes = file_->SavedPagesBytes();
  for (int64_t generation : generations) {
    auto stat = files_.tree().Stat(file_->HeadName(generation));
    if (stat.ok()) bytes += stat->size_bytes;
  }
  findings_.progress.total_bytes += findings_.PartOf(bytes);
  heads_.Start(std::move(generations));
  return absl::OkStatus();
}

absl::Status VerifyJobImpl::CheckStage() {
  const FileRow row = file_->row();
  if (row.durable_cut <= row.applied_cut) return absl::OkStatus();
  StageLog log(files_.tree(), files_.directory(), files_.file_id());
  H5M_RETURN_IF_ERROR(log.OpenToCheck(row.stage_first, {row.stage_last, row.stage_end_bytes}));
  const auto pass = [](auto&&...) { return absl::OkStatus(); };
  StageVisitor visitor{pass, pass, pass, pass};
  const absl::Status replayed = log.Replay(visitor);
  findings_.progress.checked_bytes += log.byte_count();
  if (!absl::IsDataLoss(replayed)) return replayed;
  findings_.Report(
      DamagePlace::kStage, files_.HistoryName(absl::StrFormat("stage-%06d", row.stage_first)), 0,
      {row.applied_version + 1, file_->NewestVersion()}, std::string(replayed.message()));
  return absl::OkStatus();
}

}  // namespace h5mirror::store
