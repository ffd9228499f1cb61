// Apply: the way of a durable cut into the head. The old content of each page is saved first.
//
// Apply() takes the oldest durable cut that the head does not hold. It works in rounds of at most
// 64 MiB of touched pages, of less where memory is short. FinishApply() ends it. The order:
//
//   each round   SavePages()    1. append pre-images to pages-N (pre_images.h)
//                               2. fdatasync pages-N
//                               3. index transaction: the rows of the pre-images
//                round.Write()  4. write pages to the head, and their checksums to sums; no sync
//   in steps     SumDirect()    5. write the sums of direct bytes: as the writes gave them, or of
//                                  what is read back (direct_pass.h)
//   then once    FinishApply()     cut the head off at the cut's size
//                               6. fdatasync head and sums
//                               7. index transaction: applied cut, stage_first, stat of the head
//                               8. remove or empty the stage (stage_log.h)
//
// 2 before 3: a row must never name bytes that a power loss can take. 3 before 4: a page must not
// change before its old content can be found; readers rely on that too (version_reader.h).
// 6 before 7 before 8: until then the stage is the only other copy. Between two rounds or steps,
// cuts that are due become durable, as their writers wait. A closing store stops there.
//
// A pre-image is saved of a page that differs, lies below the largest version of its generation,
// and has no row of the newest applied version yet. A page that a reader's pinned cut needs is also
// saved in a file that is never synced, as no pin outlives the process (SavePinned()).
// Invariants:
// - A page of the head differs from the newest applied version only where that has a row of it.
// - Sums match the head at the applied cut, but for pages that went bad on the disk. The pre-image
//   of a bad page is a row that says "lost". Overwritten in part, the page keeps the sum that it
//   does not match: a new sum would pass the damage off as the writer's bytes (SaveDamage()).
// - An attempt that failed or stopped is done again from the start, with `recovered` set. Bytes of
//   the head may be new then and look old, so older pins expire. Pages are written, summed, cleared
//   and cut off again where that seems done: no later sync covers what a failed one should have.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/apply/direct_pass.h"
#include "onion_store/file/file_impl.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kChunkBytes = ApplyRound::kChunkBytes;
constexpr uint64_t kRoundBytes = uint64_t{64} << 20;

}  // namespace

FileImpl::LayerPtr FileImpl::OldestUnapplied() {
  return !cuts_.layers.empty() && cuts_.layers.front()->durable ? cuts_.layers.front() : nullptr;
}

absl::StatusOr<std::unique_ptr<EnvLock>> FileImpl::LockHead(const Generation& generation) {
  if (!context_->locks_heads) return nullptr;
  // No program has a head open that is not there, or not yet under this name.
  H5M_ASSIGN_OR_RETURN(const bool is_there, context_->tree->Exists(HeadName(generation.number)));
  if (!is_there) return nullptr;
  auto lock = context_->tree->Lock(HeadName(generation.number), LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::ResourceExhaustedError(
        StrCat(files_.name(),
               " is open in another program, which reads it as a plain file; what the file "
               "is to become is safe beside it, and gets into it once that has ended"));
  }
  return lock.ok() ? *std::move(lock) : nullptr;  // Not every file system has locks.
}

absl::StatusOr<ApplyBasis> FileImpl::BeginApply(const LayerPtr& layer) {
  ApplyBasis basis;
  basis.layer = layer;
  basis.page_size_bytes = files_.page_size_bytes();
  basis.compression = context_->options.page_compression;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(layer->generation->CutHeadAgain());
    basis.index = index_;
    basis.pages = Pages();
    basis.version = row_.applied_version;
    basis.old_size_bytes = row_.applied_size_bytes;
    basis.may_have_rows = saved_.newest_rows() == NewestRows::kMaybe;
    // From here on it may, also if this attempt ends early.
    saved_.SetNewestRows(NewestRows::kMaybe);
  }
  if (basis.version == 0) return basis;
  H5M_ASSIGN_OR_RETURN(const VersionRow version, basis.index->GetVersion(basis.version));
  if (version.info.generation == layer->generation->number) {
    H5M_ASSIGN_OR_RETURN(const uint64_t size_max, basis.index->SizeMax(version.info.generation));
    basis.limit_pages = files_.PagesIn(size_max);
  } else {
    basis.version = 0;
  }
  return basis;
}

absl::Status FileImpl::Apply(const LayerPtr& layer, Rounds rounds) {
  H5M_ASSIGN_OR_RETURN(const auto head_lock, LockHead(*layer->generation));
  if (layer->recovered) ExpireBefore(layer->cut);
  MemoryCharge charge(context_->budget), pinned(context_->budget);
  H5M_ASSIGN_OR_RETURN(ApplyBasis basis, BeginApply(layer));
  ApplyRound round(std::move(basis));
  // The next attempt takes what is in the head for somebody else's: sums may be ahead of it.
  absl::Cleanup not_finished = [&layer] { layer->recovered = true; };
  for (uint64_t at = 0;;) {
    pinned.Set(0);
    const uint64_t round_bytes =
        std::clamp(context_->budget.room_bytes(), kChunkBytes, kRoundBytes);
    H5M_RETURN_IF_ERROR(round.Fill(round_bytes, &at));
    if (round.empty()) break;
    charge.Set(2 * kChunkBytes);  // Old bytes, and pre-images to write.
    pinned.Set(round.touched_bytes());
    H5M_RETURN_IF_ERROR(SavePages(round));
    H5M_RETURN_IF_ERROR(round.Write());
    H5M_ASSIGN_OR_RETURN(const bool goes_on, Pause(rounds));
    if (!goes_on) return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(const bool is_summed, SumDirect(*layer, rounds));
  if (!is_summed) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(FinishApply(layer, round.changed_pages()));
  std::move(not_finished).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<bool> FileImpl::Pause(Rounds rounds) {
  H5M_RETURN_IF_ERROR(MakeDurableBetweenRounds());
  ExpireOverBudget();
  if (rounds == Rounds::kUntilStopped && context_->stops_applying) return false;
  H5M_RETURN_IF_ERROR(dead());
  return true;
}

absl::Status FileImpl::MakeDurableBetweenRounds() {
  const absl::Time now = context_->env.Now();
  {
    absl::MutexLock lock(&mutex_);
    if (!IsDue(now)) return absl::OkStatus();
  }
  const absl::Status made = MakeDurable(now);  // A writer waits for its ack.
  // On a full disk the apply goes on, and may make room.
  return absl::IsResourceExhausted(made) ? dead() : made;
}

absl::Status FileImpl::SavePages(ApplyRound& round) {
  const LayerPtr& layer = round.basis().layer;
  std::vector<PageRun> runs;
  PagesToPin to_pin = PagesToSave(*layer);
  round.PlaceRuns();
  for (ApplyChunk& chunk : round.chunks()) {
    H5M_RETURN_IF_ERROR(round.Load(chunk));
    if (to_pin.pages != nullptr && !round.SavePinned(chunk, to_pin).ok()) {
      // The head goes on; readers of the cuts before must open it again.
      ExpireBefore(layer->cut);
      to_pin = PagesToPin();
    }
    H5M_RETURN_IF_ERROR(round.SavePreImages(chunk, &runs));
  }
  const absl::Cleanup tell = [&] {
    TellDamage(round.basis().version, round.TakeLost(), round.TakeBad());
  };
  return runs.empty() ? absl::OkStatus() : CommitPreImages(round.basis(), runs);
}

absl::Status FileImpl::CommitPreImages(const ApplyBasis& basis, absl::Span<const PageRun> runs) {
  const bool stored = std::any_of(runs.begin(), runs.end(), [](const PageRun& run) {
    return run.segment != PageRun::kZeros && run.segment != PageRun::kLost;
  });
  if (stored) H5M_RETURN_IF_ERROR(basis.pages->Sync());
  FileRow row;
  {
    absl::MutexLock lock(&mutex_);
    row = row_;
  }
  row.pages_segment = basis.pages->segment();
  row.pages_end_bytes = basis.pages->end_bytes();
  H5M_RETURN_IF_ERROR(basis.index->AddPages(row, runs));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

absl::StatusOr<bool> FileImpl::SumDirect(const CutLayer& layer, Rounds rounds) {
  MemoryCharge charge(context_->budget, DirectPass::kChunkBytes);
  DirectPass pass(layer, files_.page_size_bytes());
  while (true) {
    H5M_ASSIGN_OR_RETURN(const bool has_more, pass.Step());
    if (!has_more) return true;
    H5M_ASSIGN_OR_RETURN(const bool goes_on, Pause(rounds));
    if (!goes_on) return false;
  }
}

// What an earlier attempt cleared may be clear in memory only.
absl::Status FileImpl::ClearAgain(const CutLayer& layer) {
  const uint64_t from = layer.data.truncated_to();
  uint64_t end = 0;
  {
    absl::MutexLock lock(&mutex_);
    end = CutOffEnd(layer, row_.applied_size_bytes);
  }
  if (from >= end) return absl::OkStatus();
  std::vector<Extent> wanted{{from, end - from}};
  std::vector<Piece> pieces;
  H5M_RETURN_IF_ERROR(layer.data.Resolve(&wanted, &pieces));
  for (const Piece& piece : pieces) {
    if (piece.source != Piece::Source::kZeros) continue;
    H5M_RETURN_IF_ERROR(layer.generation->head->Zero(piece.extent));
    const uint64_t first =
        RoundUp(piece.extent.offset, files_.page_size_bytes()) / files_.page_size_bytes();
    // Beyond the end there is nothing: the page there is whole, too.
    const uint64_t last =
        piece.extent.end() == end ? files_.PagesIn(end) : files_.PageOf(piece.extent.end());
    if (first < last) H5M_RETURN_IF_ERROR(layer.generation->sums->Clear(first, last - first));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::FitHead(const CutLayer& layer) {
  EnvFile& head = *layer.generation->head;
  H5M_ASSIGN_OR_RETURN(uint64_t size, head.Size());
  if (size == layer.size_bytes && !layer.recovered) return absl::OkStatus();
  const LayerPtr& open = open_.layer();
  bool direct_beyond =
      open != nullptr && open->generation == layer.generation && !open->data.direct().empty();
  for (const LayerPtr& later : cuts_.layers) {
    if (later.get() != &layer && later->generation == layer.generation &&
        !later->data.direct().empty()) {
      direct_beyond = true;
    }
  }
  if (size > layer.size_bytes && direct_beyond) return absl::OkStatus();
  return head.Truncate(layer.size_bytes);
}

absl::Status FileImpl::FinishApply(const LayerPtr& layer, uint64_t changed_pages) {
  Generation& generation = *layer->generation;
  if (layer->recovered) H5M_RETURN_IF_ERROR(ClearAgain(*layer));
  FileRow row;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(FitHead(*layer));
    index = index_;
  }
  H5M_RETURN_IF_ERROR(
      generation.sums->Truncate(files_.PagesIn(layer->size_bytes), layer->recovered));
  // The next open compares the head's times with those that the index gets now.
  const FileSync syncs[] = {{generation.head.get(), FileSync::Kind::kDataAndTimes},
                            {&generation.sums->file()}};
  H5M_RETURN_IF_ERROR(context_->tree->SyncAll(syncs));
  H5M_ASSIGN_OR_RETURN(FileStat stat, generation.head->Stat());
  {
    absl::MutexLock lock(&mutex_);
    row = row_;
    uint64_t first = stage_->end().segment;
    if (open_.is_open()) first = std::min(first, open_.layer()->first_segment);
    row.stage_first = std::min(cuts_.FirstSegment(*layer, first), row.stage_last);
  }
  row.applied_cut = layer->cut;
  row.applied_size_bytes = layer->size_bytes;
  row.changed_pages += changed_pages + layer->data.direct().byte_count() / files_.page_size_bytes();
  row.head = stat;
  uint64_t version_pages = row.changed_pages;
  if (layer->version != 0) {
    row.applied_version = layer->version;
    row.changed_pages = 0;
  }
  H5M_RETURN_IF_ERROR(index->CommitApplied(row, layer->version, version_pages));
  if (generation.direct_sums != nullptr) {
    generation.direct_sums->Release(files_.PagesIn(layer->data.direct().end()));
  }
  absl::MutexLock lock(&mutex_);
  row_ = row;
  if (layer->version != 0) {
    saved_.SetNewestRows(NewestRows::kNone);
    if (newest_.version == layer->version) newest_.changed_pages = version_pages;
  }
  cuts_.layers.pop_front();
  H5M_RETURN_IF_ERROR(stage_->RemoveBefore(row.stage_first));
  bool idle = cuts_.layers.empty() &&
              (!open_.is_open() || stage_->end().bytes == cuts_.last.stage_end.bytes);
  if (!idle || (open_.is_open() && stage_->end().segment != cuts_.last.stage_end.segment)) {
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(stage_->Reset(session_.is_writing() ? StageLog::kKeptBytes : 0));
  cuts_.last.stage_end = stage_->end();
  if (open_.is_open()) open_.layer()->first_segment = cuts_.last.stage_end.segment;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
