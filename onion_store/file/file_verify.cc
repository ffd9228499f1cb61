// Checking a history: docs/design/036-reading-a-version.md.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kStepBytes = 4 << 20;
constexpr size_t kStepRows = 1024;

}  // namespace

// Each step has work_lock_: nobody applies, prunes or rolls back meanwhile, so that head and sums
// are of one cut, and rows and records of one moment. Writers and readers go on.
class VerifyJobImpl final : public VerifyJob {
 public:
  VerifyJobImpl(std::shared_ptr<VerifySource> file, std::shared_ptr<VersionIndex> index,
                std::shared_ptr<PageSegments> pages, VerifySubset subset)
      : file_(std::move(file)),
        files_(file_->files()),
        work_lock_(file_->work_lock()),
        index_(std::move(index)),
        pages_(std::move(pages)),
        subset_(subset),
        charge_(files_.budget(), kStepBytes) {}

  absl::StatusOr<VerifyProgress> Step() override {
    WorkTurn turn(&work_lock_);
    H5M_RETURN_IF_ERROR(file_->dead());
    progress_.found.clear();
    const absl::Status status = RunPhase();
    if (absl::IsDataLoss(status)) {
      // The index cannot be asked further: that is what was looked for. On with the next phase.
      Report(DamagePlace::kIndex, files_.HistoryName("index"), 0, {0, 0},
             std::string(status.message()));
      phase_ = static_cast<Phase>(static_cast<uint8_t>(phase_) + 1);
      return progress_;
    }
    H5M_RETURN_IF_ERROR(status);
    progress_.total_bytes = std::max(progress_.total_bytes, progress_.checked_bytes);
    return progress_;
  }

 private:
  struct LostPages {
    int64_t generation = 0;
    uint64_t first = 0, end = 0;
    std::pair<VersionNumber, VersionNumber> readers;
  };
  enum class Phase : uint8_t { kIndex, kStage, kHeads, kPages, kDone };

  absl::Status RunPhase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    switch (phase_) {
      case Phase::kIndex:
        return CheckIndex();
      case Phase::kStage:
        return CheckStage();
      case Phase::kHeads:
        return CheckHead();
      case Phase::kPages:
        return CheckPages();
      case Phase::kDone:
        break;
    }
    progress_.done = true;
    return absl::OkStatus();
  }

  bool Wanted(uint64_t page) const {
    return static_cast<int64_t>(page / kBlockPages % subset_.count) == subset_.part - 1;
  }

  void Report(DamagePlace place, std::string file, uint64_t offset,
              std::pair<VersionNumber, VersionNumber> readers, std::string message) {
    progress_.found.push_back(
        {place, std::move(file), offset, readers.first, readers.second, std::move(message)});
  }

  absl::Status CheckIndex() {
    H5M_ASSIGN_OR_RETURN(const std::vector<std::string> wrong, index_->CheckWhole());
    for (const std::string& message : wrong) {
      Report(DamagePlace::kIndex, files_.HistoryName("index"), 0, {0, 0}, message);
    }
    // Nothing else names it: a file goes on without it.
    if (const absl::Status check = index_->LastCheck().status(); absl::IsDataLoss(check)) {
      Report(DamagePlace::kIndex, files_.HistoryName("index"), 0, {0, 0},
             StrCat(ToStd(check.message()),
                    "; it counts as never compared, the next h5mirror verify --against mends it"));
    }
    H5M_ASSIGN_OR_RETURN(generations_, index_->Generations());
    for (int64_t generation : generations_) {
      auto stat = files_.tree().Stat(file_->HeadName(generation));
      if (stat.ok()) progress_.total_bytes += stat->size_bytes / subset_.count;
    }
    progress_.total_bytes += file_->SavedPagesBytes() / subset_.count;
    phase_ = Phase::kStage;
    return absl::OkStatus();
  }

  // What is durable and not in the head has no other copy.
  absl::Status CheckStage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    phase_ = Phase::kHeads;
    const FileRow row = file_->row();
    if (row.durable_cut <= row.applied_cut) return absl::OkStatus();
    StageLog log(files_.tree(), files_.directory(), files_.file_id());
    H5M_RETURN_IF_ERROR(log.OpenToCheck(row.stage_first, {row.stage_last, row.stage_end_bytes}));
    const auto pass = [](auto&&...) { return absl::OkStatus(); };
    StageVisitor visitor{pass, pass, pass, pass};
    const absl::Status replayed = log.Replay(visitor);
    progress_.checked_bytes += log.byte_count();
    if (replayed.ok()) return absl::OkStatus();
    if (!absl::IsDataLoss(replayed)) return replayed;
    Report(DamagePlace::kStage, files_.HistoryName(absl::StrFormat("stage-%06d", row.stage_first)),
           0, {row.applied_version + 1, file_->NewestVersion()}, std::string(replayed.message()));
    return absl::OkStatus();
  }

  // A part of a head against its sums.
  absl::Status CheckHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (generations_.empty()) {
      phase_ = Phase::kPages;
      return absl::OkStatus();
    }
    const int64_t number = generations_.back();
    if (generation_ == nullptr) {
      // A prune may have dropped it since.
      H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> there, index_->Generations());
      const bool dropped = std::find(there.begin(), there.end(), number) == there.end();
      if (dropped || !OpenHead(number)) return NextHead();
    }
    const uint32_t page_bytes = files_.page_size_bytes();
    const FileRow row = file_->row();
    uint64_t end_bytes = row.applied_size_bytes;
    if (number != row.generation) {
      H5M_ASSIGN_OR_RETURN(end_bytes, generation_->head->Size());
    }
    const uint64_t end = files_.PagesIn(end_bytes);
    std::string bytes;
    for (uint64_t budget = kStepBytes; budget > 0;) {
      H5M_ASSIGN_OR_RETURN(const uint64_t first, NextPage(next_page_));
      if (first >= end) return NextHead();
      const uint64_t block_end = RoundDown(first, kBlockPages) + kBlockPages;
      next_page_ = std::min(block_end, end);
      if (!Wanted(first)) continue;
      bytes.resize((next_page_ - first) * page_bytes);
      H5M_RETURN_IF_ERROR(
          ReadOrZeros(*generation_->head, first * page_bytes, absl::MakeSpan(bytes)));
      // A writer's uncut bytes may begin right behind the end.
      const uint64_t within = std::min<uint64_t>(bytes.size(), end_bytes - first * page_bytes);
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(within), bytes.end(), '\0');
      H5M_ASSIGN_OR_RETURN(const std::vector<uint32_t> sums,
                           generation_->sums->Read(first, next_page_ - first));
      const std::vector<uint32_t> now = generation_->sums->SumsOf(bytes);
      for (size_t i = 0; i < now.size(); ++i) {
        if (now[i] != sums[i]) H5M_RETURN_IF_ERROR(HeadDiffers(number, first + i, sums[i], now[i]));
      }
      progress_.checked_bytes += within;
      budget -= std::min<uint64_t>(budget, std::max<uint64_t>(bytes.size(), page_bytes));
    }
    return absl::OkStatus();
  }

  bool OpenHead(int64_t number) {
    next_page_ = 0;
    auto opened = file_->HeadOf(number);
    if (!opened.ok()) {
      Report(DamagePlace::kHead, file_->HeadName(number), 0, {0, 0},
             std::string(opened.status().message()));
      return false;
    }
    generation_ = *std::move(opened);
    return generation_->sums != nullptr;
  }
  absl::Status NextHead() {
    generations_.pop_back();
    generation_ = nullptr;
    return absl::OkStatus();
  }

  // The first page at or after `page` that is not a hole both of the head and of its sums.
  absl::StatusOr<uint64_t> NextPage(uint64_t page) {
    H5M_ASSIGN_OR_RETURN(const Extent head,
                         generation_->head->NextData(page * files_.page_size_bytes()));
    H5M_ASSIGN_OR_RETURN(const Extent sums, generation_->sums->NextPages(page));
    uint64_t next = UINT64_MAX;
    if (head.length > 0) next = head.offset / files_.page_size_bytes();
    if (sums.length > 0) next = std::min(next, sums.offset);
    return std::max(page, next);
  }

  absl::Status HeadDiffers(int64_t generation, uint64_t page, uint32_t want, uint32_t found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (file_->HasPartOfApply()) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const auto readers, index_->ReadersOf(generation, page, INT64_MAX, 0));
    Report(DamagePlace::kHead, file_->HeadName(generation), page * files_.page_size_bytes(),
           readers,
           absl::StrFormat("page %d: checksum 0x%08x, sums-%d says 0x%08x", page, found, generation,
                           want));
    return absl::OkStatus();
  }

  // Some records against the rows that name them.
  absl::Status CheckPages() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    for (uint64_t bytes = 0; bytes < kStepBytes;) {
      if (rows_.empty()) {
        if (!more_rows_) {
          ReportLost();
          phase_ = Phase::kDone;
          progress_.done = true;
          return absl::OkStatus();
        }
        H5M_ASSIGN_OR_RETURN(more_rows_, index_->ScanPages(kStepRows, &cursor_, &rows_));
        std::reverse(rows_.begin(), rows_.end());  // They are taken from the end.
        if (rows_.empty()) continue;
      }
      const RunOfGeneration row = rows_.back();
      rows_.pop_back();
      H5M_ASSIGN_OR_RETURN(const uint64_t checked, CheckRow(row));
      bytes += checked + 64;
      progress_.checked_bytes += checked;
    }
    return absl::OkStatus();
  }

  // Whether there can be such a row: its level, its first page and its segment.
  bool IsSane(const PageRun& run) const {
    if (run.level < 0 || run.level > kPageLevelMax) return false;
    if (run.page % (uint64_t{1} << run.level) != 0) return false;
    return !IsStored(run) || run.segment <= pages_->segment();
  }
  static bool IsStored(const PageRun& run) {
    return run.segment != PageRun::kZeros && run.segment != PageRun::kLost;
  }

  // Returns the bytes that were checked.
  absl::StatusOr<uint64_t> CheckRow(const RunOfGeneration& row) {
    const PageRun& run = row.run;
    if (!IsSane(run)) {
      auto reported = ReportRow(row, DamagePlace::kIndex, files_.HistoryName("index"),
                                "no such level, page or segment");
      if (!reported.ok()) return reported.status();
      return 0;
    }
    if (!Wanted(run.page)) return 0;
    if (run.segment == PageRun::kLost) return NoteLost(row);
    if (!IsStored(run)) return 0;
    const absl::Status checked = pages_->Check(run, row.generation);
    if (checked.ok()) return pages_->RecordBytes(run);
    if (!absl::IsDataLoss(checked)) return checked;
    H5M_ASSIGN_OR_RETURN(const bool is_there,
                         ReportRow(row, DamagePlace::kPages, pages_->SegmentName(run.segment),
                                   ToStd(checked.message())));
    return is_there ? pages_->RecordBytes(run) : 0;
  }

  // Reports what is wrong with `row`. False, and no report: it was moved since it was looked up;
  // where it is now it was checked.
  absl::StatusOr<bool> ReportRow(const RunOfGeneration& row, DamagePlace place, std::string file,
                                 std::string_view wrong) {
    const PageRun& run = row.run;
    H5M_ASSIGN_OR_RETURN(const bool same, index_->HasRun(row.generation, run));
    if (!same) return false;
    H5M_ASSIGN_OR_RETURN(const auto readers,
                         index_->ReadersOf(row.generation, run.page, run.version, 0));
    Report(place, std::move(file), run.offset, readers,
           absl::StrFormat("pages %d to %d of version %d: %s", run.page, run.page_end() - 1,
                           run.version, wrong));
    return true;
  }

  // Lost pages come in thousands, one row each: what lies side by side is one finding.
  absl::StatusOr<uint64_t> NoteLost(const RunOfGeneration& row) {
    const PageRun& run = row.run;
    H5M_ASSIGN_OR_RETURN(const auto readers,
                         index_->ReadersOf(row.generation, run.page, run.version,
                                           run.page * files_.page_size_bytes()));
    if (readers.second == 0) return 0;  // Versions that end before it.
    if (lost_ && lost_->generation == row.generation && lost_->readers == readers &&
        (run.page == lost_->end || run.page + 1 == lost_->first)) {
      lost_->first = std::min(lost_->first, run.page);
      lost_->end = std::max(lost_->end, run.page + 1);
      return 0;
    }
    ReportLost();
    lost_ = LostPages{row.generation, run.page, run.page + 1, readers};
    return 0;
  }
  void ReportLost() {
    if (!lost_) return;
    const LostPages lost = *std::exchange(lost_, std::nullopt);
    Report(DamagePlace::kPages, file_->HeadName(lost.generation),
           lost.first * files_.page_size_bytes(), lost.readers,
           absl::StrFormat("%s lost: the head was changed or damaged from outside before %s saved",
                           lost.end - lost.first == 1
                               ? absl::StrFormat("page %d is", lost.first)
                               : absl::StrFormat("pages %d to %d are", lost.first, lost.end - 1),
                           lost.end - lost.first == 1 ? "it was" : "they were"));
  }

  const std::shared_ptr<VerifySource> file_;
  const HistoryFiles& files_;
  WorkLock& work_lock_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  const VerifySubset subset_;
  Phase phase_ = Phase::kIndex;
  std::vector<int64_t> generations_;  // those to check, the last one first
  std::shared_ptr<Generation> generation_;
  uint64_t next_page_ = 0;
  PagesCursor cursor_;
  std::vector<RunOfGeneration> rows_;
  bool more_rows_ = true;
  std::optional<LostPages> lost_;  // the last ones, not reported yet
  VerifyProgress progress_;
  MemoryCharge charge_;
};

VersionNumber FileImpl::NewestVersion() {
  absl::MutexLock lock(&mutex_);
  return newest_.version;
}

uint64_t FileImpl::SavedPagesBytes() {
  absl::MutexLock lock(&mutex_);
  return saved_.SealedBytes(row_) + row_.pages_end_bytes;
}

bool FileImpl::HasPartOfApply() {
  absl::MutexLock lock(&mutex_);
  return std::any_of(layers_.begin(), layers_.end(),
                     [](const LayerPtr& layer) { return layer->durable && layer->recovered; });
}

absl::StatusOr<std::shared_ptr<Generation>> FileImpl::HeadOf(int64_t number) {
  const std::string name = HeadName(number);
  absl::MutexLock lock(&mutex_);
  if (base_ != nullptr && base_->number == number) return base_;
  return OpenGeneration(number, name, OpenKind::kRead);
}

absl::StatusOr<std::unique_ptr<VerifyJob>> FileImpl::StartVerify(VerifySubset subset) {
  if (subset.count < 1 || subset.count > 1'000'000 || subset.part < 1 ||
      subset.part > subset.count) {
    return absl::InvalidArgumentError(StrCat("part ", subset.part, " of ", subset.count,
                                             " is none: 1 <= part <= count <= 1000000"));
  }
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  absl::MutexLock lock(&mutex_);
  return std::make_unique<VerifyJobImpl>(shared_from_this(), index, Pages(), subset);
}

}  // namespace h5mirror::store
