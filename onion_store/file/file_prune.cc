// Dropping versions: docs/design/032-pruning.md.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_names.h"
#include "onion_store/history_sizes.h"

namespace h5mirror::store {
namespace {

constexpr size_t kDropVersions = 256;
constexpr size_t kMoveRows = 2048;
constexpr size_t kScanRows = 4096;
constexpr uint64_t kCopyBytes = 8 << 20;  // by one step
// Rows of segments that are to be copied, held in memory at once; a segment that has more is done
// in parts.
constexpr size_t kHeldRowsMin = 64, kHeldRowsMax = 1 << 18;

}  // namespace

// One phase after the other; each step holds work_lock_, as whoever changes rows, segments and the
// head does. What is left to do is found anew by each job, so that none needs the one before.
class PruneJobImpl final : public PruneJob {
 public:
  PruneJobImpl(std::shared_ptr<PruneSource> file, std::shared_ptr<VersionIndex> index,
               std::shared_ptr<PageSegments> pages, std::vector<VersionNumber> versions)
      : file_(std::move(file)),
        files_(file_->files()),
        work_lock_(file_->work_lock()),
        index_(std::move(index)),
        pages_(std::move(pages)),
        versions_(std::move(versions)),
        charge_(files_.budget()) {
    progress_.versions_to_drop = static_cast<int64_t>(versions_.size());
  }
  ~PruneJobImpl() override { file_->PruneEnded(); }

  absl::StatusOr<PruneProgress> Step() override {
    WorkTurn turn(&work_lock_);
    H5M_RETURN_IF_ERROR(file_->dead());
    absl::Status status = RunPhase();
    if (!status.ok()) {
      // After a failed sync nobody knows what the disk holds.
      if (!absl::IsResourceExhausted(status)) file_->Die(status);
      return status;
    }
    progress_.freed_bytes = static_cast<uint64_t>(std::max<int64_t>(0, freed_bytes_));
    progress_.done = phase_ == Phase::kDone;
    if (progress_.done) files_.RemoveMark(kPruneMarks);
    return progress_;
  }

 private:
  enum class Phase : uint8_t {
    kMove,
    kDrop,
    kCount,
    kCollect,
    kCopy,
    kGenerations,
    kShrink,
    kDone
  };
  struct Segment {
    uint64_t size_bytes = 0;
    uint64_t live_bytes = 0;
    uint64_t live_rows = 0;
  };

  absl::Status RunPhase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    switch (phase_) {
      case Phase::kMove:
        return Move();
      case Phase::kDrop:
        return Drop();
      case Phase::kCount:
        return Count();
      case Phase::kCollect:
        return Collect();
      case Phase::kCopy:
        return Copy();
      case Phase::kGenerations:
        return RemoveGenerations();
      case Phase::kShrink:
        return Shrink();
      case Phase::kDone:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Move() {
    int64_t done = 0;
    H5M_ASSIGN_OR_RETURN(const bool more, index_->MoveDropped(files_.page_size_bytes(), kMoveRows,
                                                              &move_cursor_, &done));
    // Some versions have no rows, some that have are an earlier job's.
    progress_.versions_dropped = std::min(progress_.versions_dropped + done, dropped_);
    if (more) return absl::OkStatus();
    progress_.versions_dropped = dropped_;
    phase_ = next_ < versions_.size() ? Phase::kDrop : Phase::kCount;
    return absl::OkStatus();
  }

  absl::Status Drop() {
    std::vector<VersionNumber> chunk;
    while (next_ < versions_.size() && chunk.size() < kDropVersions) {
      chunk.push_back(versions_[next_++]);
    }
    // Before any row moves: a reader that still sees the old number looked up its rows before that.
    // And not only before the versions go: who opens one of them in between must notice too.
    absl::Status dropped = index_->DropVersions(chunk);
    file_->dropped_versions().Advance();
    H5M_RETURN_IF_ERROR(dropped);
    dropped_ = static_cast<int64_t>(next_);
    move_cursor_ = MoveCursor();
    phase_ = Phase::kMove;
    return absl::OkStatus();
  }

  // Counts what is live in each segment.
  absl::Status Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    std::vector<RunOfGeneration> runs;
    H5M_ASSIGN_OR_RETURN(const bool more, index_->ScanPages(kScanRows, &scan_cursor_, &runs));
    for (const RunOfGeneration& row : runs) {
      const uint64_t bytes = pages_->DiskBytes(row.run);
      if (bytes == 0) continue;
      Segment& segment = segments_[row.run.segment];
      segment.live_bytes += bytes;
      ++segment.live_rows;
    }
    if (more) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(ListSegments());
    phase_ = Phase::kCollect;
    return absl::OkStatus();
  }

  // Chooses the segments that are dead enough, the emptiest first, and seals the newest if it is
  // one.
  absl::Status ListSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    H5M_ASSIGN_OR_RETURN(auto entries, files_.tree().List(files_.directory()));
    std::map<uint64_t, Segment> found;
    for (const DirectoryEntry& entry : entries) {
      const auto number = NumberAfter(entry.name, "pages-");
      if (!number) continue;
      H5M_ASSIGN_OR_RETURN(const FileStat stat, files_.tree().Stat(files_.HistoryName(entry.name)));
      Segment segment = segments_[*number];
      segment.size_bytes = stat.size_bytes;
      if (IsDeadEnough(segment.size_bytes, segment.live_bytes)) found[*number] = segment;
    }
    segments_ = std::move(found);
    if (segments_.contains(pages_->segment())) H5M_RETURN_IF_ERROR(SealNewest());
    for (const auto& [number, segment] : segments_) order_.push_back(number);
    std::stable_sort(order_.begin(), order_.end(), [this](uint64_t a, uint64_t b) {
      return segments_[a].live_bytes < segments_[b].live_bytes;
    });
    return absl::OkStatus();
  }

  absl::Status SealNewest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (pages_->end_bytes() == 0) {
      segments_.erase(pages_->segment());
      return absl::OkStatus();
    }
    H5M_RETURN_IF_ERROR(pages_->Sync());  // What an apply that failed left, for no row.
    FileRow row = file_->row();
    row.pages_segment = pages_->segment() + 1;
    row.pages_end_bytes = 0;
    H5M_RETURN_IF_ERROR(index_->WriteFileRow(row));
    pages_->Rotate();
    file_->SetRow(row);
    return absl::OkStatus();
  }

  // The rows of as many of the chosen segments as memory is for, or a part of those of one.
  absl::Status Collect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (group_.empty()) {
      held_rows_max_ = std::clamp<size_t>(files_.budget().room_bytes() / sizeof(RunOfGeneration),
                                          kHeldRowsMin, kHeldRowsMax);
      size_t rows = 0;
      while (!order_.empty()) {
        const uint64_t wanted = segments_[order_.front()].live_rows;
        if (!group_.empty() && rows + wanted > held_rows_max_) break;
        rows += wanted;
        group_.push_back(order_.front());
        in_group_.insert(order_.front());
        order_.erase(order_.begin());
      }
      if (group_.empty()) {
        phase_ = Phase::kGenerations;
        return absl::OkStatus();
      }
      scan_cursor_ = PagesCursor();
    }
    std::vector<RunOfGeneration> runs;
    H5M_ASSIGN_OR_RETURN(const bool more, index_->ScanPages(kScanRows, &scan_cursor_, &runs));
    for (const RunOfGeneration& row : runs) {
      if (!in_group_.contains(row.run.segment)) continue;
      std::vector<RunOfGeneration>& rows = rows_[row.run.segment];
      if (rows.size() < held_rows_max_) {
        rows.push_back(row);
      } else {
        in_part_.insert(row.run.segment);
      }
    }
    size_t held = 0;
    for (auto& [number, rows] : rows_) held += rows.capacity() * sizeof(RunOfGeneration);
    charge_.Set(static_cast<int64_t>(held + kCopyBytes));
    if (more) return absl::OkStatus();
    for (auto& [number, rows] : rows_) {  // So that it is read in order; taken from the back.
      std::sort(rows.begin(), rows.end(), [](const RunOfGeneration& a, const RunOfGeneration& b) {
        return a.run.offset > b.run.offset;
      });
    }
    phase_ = Phase::kCopy;
    return absl::OkStatus();
  }

  // Copies a part of the first segment of the group, or removes it where nothing is left in it.
  absl::Status Copy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (group_.empty()) {
      in_group_.clear();
      rows_.clear();
      charge_.Set(0);
      phase_ = Phase::kCollect;
      return absl::OkStatus();
    }
    const uint64_t number = group_.front();
    std::vector<RunOfGeneration>& rows = rows_[number];
    if (rows.empty()) {
      if (in_part_.erase(number) > 0) {
        order_.insert(order_.begin(), number);  // For the others.
      } else {
        H5M_RETURN_IF_ERROR(RemoveSegment(number));
      }
      Skip();
      return absl::OkStatus();
    }
    if (number != copying_) {
      H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, files_.tree().FreeBytes());
      const uint64_t live_bytes = segments_[number].live_bytes;
      if (live_bytes > RoomToCopy(free_bytes)) {
        progress_.left = StrCat("to write ", pages_->SegmentName(number), " anew takes ",
                                live_bytes, " bytes for a while, and ", free_bytes, " are free");
        Skip();
        return absl::OkStatus();
      }
      copying_ = number;
    }
    absl::Status copied = CopySome(&rows);
    if (copied.ok()) return copied;
    // Nothing is lost and nothing given back: the segment stays as it is.
    if (!absl::IsDataLoss(copied) && !absl::IsResourceExhausted(copied)) return copied;
    progress_.left = ToStd(copied.message());
    Skip();
    return absl::OkStatus();
  }

  void Skip() {
    in_part_.erase(group_.front());
    rows_.erase(group_.front());
    group_.erase(group_.begin());
  }

  absl::Status CopySome(std::vector<RunOfGeneration>* rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    std::vector<MovedRun> moved;
    uint64_t bytes = 0;
    for (auto row = rows->rbegin(); row != rows->rend() && bytes < kCopyBytes; ++row) {
      H5M_ASSIGN_OR_RETURN(const PageRun to, pages_->Copy(row->run, row->generation));
      moved.push_back({row->generation, row->run, to.segment, to.offset});
      bytes += pages_->RecordBytes(to);
    }
    H5M_RETURN_IF_ERROR(pages_->Sync());
    FileRow row = file_->row();
    row.pages_segment = pages_->segment();
    row.pages_end_bytes = pages_->end_bytes();
    H5M_RETURN_IF_ERROR(index_->MoveRuns(row, moved));
    rows->resize(rows->size() - moved.size());
    freed_bytes_ -= static_cast<int64_t>(bytes);
    file_->SetRow(row);
    return absl::OkStatus();
  }

  absl::Status RemoveSegment(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    if (file_->HasReverts()) {
      progress_.left = "a rollback is not in the head yet, or still read: prune again later";
      return absl::OkStatus();
    }
    // A reader that still sees the old number, and then no segment, has met real damage.
    file_->dropped_versions().Advance();
    H5M_RETURN_IF_ERROR(pages_->Remove(number));
    freed_bytes_ += static_cast<int64_t>(segments_[number].size_bytes);
    file_->SegmentRemoved();
    return absl::OkStatus();
  }

  absl::Status RemoveGenerations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_) {
    const int64_t newest = file_->row().generation;
    H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> unused, index_->UnusedGenerations(newest));
    for (int64_t generation : unused) {
      H5M_RETURN_IF_ERROR(index_->DropGeneration(generation));
    }
    file_->ForgetGenerations(unused);
    H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> kept, index_->Generations());
    H5M_ASSIGN_OR_RETURN(auto entries, files_.tree().List(files_.directory()));
    for (const DirectoryEntry& entry : entries) {
      const auto number = GenerationOfEntry(entry.name);
      if (!number || *number >= newest ||
          std::find(kept.begin(), kept.end(), *number) != kept.end()) {
        continue;
      }
      const std::string name = files_.HistoryName(entry.name);
      const uint64_t bytes = DataBytes(files_.tree(), name);
      H5M_RETURN_IF_ERROR(files_.tree().Remove(name));
      freed_bytes_ += static_cast<int64_t>(bytes);
    }
    phase_ = Phase::kShrink;
    return absl::OkStatus();
  }

  absl::Status Shrink() {
    H5M_ASSIGN_OR_RETURN(const bool more, index_->Shrink());
    if (more) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(index_->Checkpoint());
    phase_ = Phase::kDone;
    return absl::OkStatus();
  }

  const std::shared_ptr<PruneSource> file_;
  const HistoryFiles& files_;
  WorkLock& work_lock_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  const std::vector<VersionNumber> versions_;  // rising
  size_t next_ = 0;                            // of versions_
  int64_t dropped_ = 0;
  Phase phase_ = Phase::kMove;  // what an earlier one left
  MoveCursor move_cursor_;
  PagesCursor scan_cursor_;
  std::map<uint64_t, Segment> segments_;  // all with rows; then those to give back
  std::vector<uint64_t> order_;           // those that are left to do
  std::vector<uint64_t> group_;           // those that are being done
  std::set<uint64_t> in_group_;
  uint64_t copying_ = 0;  // the one that room was found for; no segment has this number
  size_t held_rows_max_ = 0;
  std::set<uint64_t> in_part_;  // those of the group that have more rows than are held
  std::map<uint64_t, std::vector<RunOfGeneration>> rows_;  // of the group, the first one last
  int64_t freed_bytes_ = 0;
  PruneProgress progress_;
  MemoryCharge charge_;
};

FileRow FileImpl::row() {
  absl::MutexLock lock(&mutex_);
  return row_;
}

void FileImpl::SetRow(const FileRow& row) {
  absl::MutexLock lock(&mutex_);
  row_ = row;
}

void FileImpl::SegmentRemoved() {
  absl::MutexLock lock(&mutex_);
  saved_.CountAnew();
}

void FileImpl::ForgetGenerations(absl::Span<const int64_t> generations) {
  absl::MutexLock lock(&mutex_);
  for (int64_t generation : generations) old_generations_.erase(generation);
}

void FileImpl::PruneEnded() {
  absl::MutexLock lock(&mutex_);
  pruning_ = false;
}

absl::StatusOr<VersionNumber> FileImpl::OldestNeeded() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  // Before the first apply nothing is in the head: all are needed.
  return row_.applied_version == 0 ? std::min<VersionNumber>(newest_.version, 1)
                                   : row_.applied_version;
}

absl::StatusOr<std::unique_ptr<PruneJob>> FileImpl::StartPrune(
    std::vector<VersionNumber> versions) {
  H5M_ASSIGN_OR_RETURN(const VersionNumber needed, OldestNeeded());
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) {
    return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  std::vector<VersionNumber> there;
  for (VersionNumber version : versions) {
    if (version >= needed) break;  // It only rises.
    H5M_ASSIGN_OR_RETURN(const bool has, index->HasVersion(version));
    if (has) there.push_back(version);
  }
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (pruning_) {
      return absl::FailedPreconditionError(
          StrCat(files_.name(), ": a prune of it is under way already"));
    }
    pruning_ = true;
    pages = Pages();
  }
  auto job = std::make_unique<PruneJobImpl>(shared_from_this(), index, pages, std::move(there));
  // Only so that a server goes on with it after a crash: without it, the next prune does.
  files_.SetMark(kPruneMarks);
  return job;
}

}  // namespace h5mirror::store
