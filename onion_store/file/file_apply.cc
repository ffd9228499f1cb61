// From durable to the head: pre-images, pages, checksums.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/disk/raw_bytes.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/pages/pre_images.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint64_t kRoundBytes = uint64_t{64} << 20;
constexpr size_t kRoundChunks = 16384;
// Two touched pages no further apart are read in one piece: a call costs as much as the bytes.
constexpr uint64_t kBridgeBytes = 16 << 10;
constexpr uint64_t kWritebackBytes = 8 << 20;

}  // namespace

// Pages that the layer writes, without a gap.
struct FileImpl::ApplyRun {
  uint64_t first = 0, count = 0;  // in the chunk
  char* bytes = nullptr;          // their new content, from LoadChunk() to WriteRun()
};

// Runs near enough to be read in one piece.
struct FileImpl::ApplyChunk {
  Extent range;  // whole pages, at most kChunkBytes
  std::vector<ApplyRun> runs;
  // From here on by LoadChunk().
  std::vector<bool> differs;             // new, and not what was there
  std::vector<bool> keeps_old;           // new, and in part what was there
  std::vector<uint32_t> old_sums, sums;  // what the sums file says, and what it shall say
};

// One round: pages whose pre-images share one sync and one transaction.
struct FileImpl::Round {
  LayerPtr layer;
  EnvFile* head = nullptr;
  SumsFile* sums = nullptr;
  PageSegments* pages = nullptr;
  VersionIndex* index = nullptr;
  VersionNumber version = 0;  // whose pages are saved; 0: nobody needs them
  bool may_have_rows = false;
  uint64_t limit_pages = 0;  // no version reaches beyond
  uint64_t old_size_bytes = 0;
  PagesToPin saving;  // for pinned cuts before this one
  std::vector<ApplyChunk> chunks;
  uint64_t touched_bytes = 0;  // of all runs
  uint64_t changed_pages = 0;
  FoundPages lost;      // of `version`, which are saved nowhere
  FoundPages bad;       // of the head, which is overwritten in part
  RawBytes old_memory;  // of one chunk at a time
  RawBytes new_memory;  // of all runs, one after the other

  void Clear() {
    chunks.clear();
    touched_bytes = 0;
  }
  // Takes in `touched`, which follows what was taken in before and is at most kChunkBytes.
  void Take(Extent touched, uint64_t page_bytes) {
    ApplyChunk* last = chunks.empty() ? nullptr : &chunks.back();
    // Bridged pages are read, never written: nothing below both sizes is anybody else's.
    uint64_t bridge_end = std::min(old_size_bytes, layer->size_bytes);
    bool near =
        last != nullptr && touched.end() - last->range.offset <= kChunkBytes &&
        (touched.offset == last->range.end() ||
         (touched.offset - last->range.end() <= kBridgeBytes && touched.offset < bridge_end));
    if (!near) {
      last = &chunks.emplace_back();
      last->range.offset = touched.offset;
    }
    const uint64_t first = (touched.offset - last->range.offset) / page_bytes;
    const uint64_t count = touched.length / page_bytes;
    if (!last->runs.empty() && touched.offset == last->range.end()) {
      last->runs.back().count += count;
    } else {
      last->runs.push_back({first, count, nullptr});
    }
    last->range.length = touched.end() - last->range.offset;
    touched_bytes += touched.length;
  }
};

namespace {

// One past the last byte of the head that `cut` may have cut off.
uint64_t CutOffEnd(const CutLayer& cut, uint64_t old_size_bytes) {
  return std::max(old_size_bytes, std::min(cut.data.direct_end_max(), cut.cut_bytes));
}

// The next whole pages at or after `offset` (a multiple of the page) that `layer` changes:
// staged bytes, and data of the head that it cut off.
absl::StatusOr<std::optional<Extent>> NextTouched(const CutLayer& cut, uint64_t old_size_bytes,
                                                  uint32_t page_bytes, uint64_t offset) {
  EnvFile& head = *cut.generation->head;
  const StagedLayer& layer = cut.data;
  std::optional<Extent> first;
  auto take = [&](uint64_t from, uint64_t end) {
    from = RoundDown(std::max(from, offset), page_bytes);
    end = RoundUp(end, page_bytes);
    if (from >= end) return;
    if (!first || from < first->offset) first = Extent{from, end - from};
  };
  H5M_ASSIGN_OR_RETURN(std::optional<Extent> staged, layer.NextStaged(offset));
  if (staged) take(staged->offset, staged->end());
  // Direct bytes of a cut that was merged, which a later truncate took away, are there, too.
  uint64_t cut_off = std::max(offset, layer.truncated_to());
  uint64_t cut_off_end = CutOffEnd(cut, old_size_bytes);
  if (cut_off < cut_off_end) {
    H5M_ASSIGN_OR_RETURN(Extent data, head.NextData(cut_off));
    if (data.length > 0 && data.offset < cut_off_end) {
      take(data.offset, std::min(data.end(), cut_off_end));
    }
    if (cut.recovered) {  // An earlier attempt may have cleared the head and not the sums.
      // Of whole pages ClearAgain() makes sure.
      if (layer.truncated_to() % page_bytes != 0) {
        take(layer.truncated_to(), layer.truncated_to() + 1);
      }
      H5M_ASSIGN_OR_RETURN(Extent pages, cut.generation->sums->NextPages(cut_off / page_bytes));
      uint64_t from = std::max(pages.offset * page_bytes, cut_off);
      if (pages.length > 0) take(from, std::min(pages.end() * page_bytes, cut_off_end));
    }
  }
  return first;
}

}  // namespace

FileImpl::LayerPtr FileImpl::OldestUnapplied() {
  return !layers_.empty() && layers_.front()->durable ? layers_.front() : nullptr;
}

absl::StatusOr<std::unique_ptr<EnvLock>> FileImpl::LockHead(const Generation& generation) {
  if (!context_->locks_heads) return nullptr;
  // A head that is not there, or not yet under this name, nobody has open.
  H5M_ASSIGN_OR_RETURN(const bool is_there, context_->tree->Exists(HeadName(generation.number)));
  if (!is_there) return nullptr;
  auto lock = context_->tree->Lock(HeadName(generation.number), LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    // As on a full disk: it is tried again.
    return absl::ResourceExhaustedError(
        StrCat(name_,
               " is open in another program, which reads it as a plain file; what the file "
               "is to become is safe beside it, and gets into it once that has ended"));
  }
  // Not every file system has locks.
  return lock.ok() ? *std::move(lock) : nullptr;
}

absl::Status FileImpl::Apply(const LayerPtr& layer, Rounds rounds) {
  H5M_ASSIGN_OR_RETURN(const auto head_lock, LockHead(*layer->generation));
  // An attempt that failed may have left new bytes in the head that cannot be told from old ones.
  if (layer->recovered) ExpireBefore(layer->cut);
  MemoryCharge charge(context_->budget);
  Round round;
  round.layer = layer;
  std::shared_ptr<VersionIndex> index;
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    index = index_;
    pages = Pages();
    round.version = row_.applied_version;
    round.old_size_bytes = row_.applied_size_bytes;
    round.may_have_rows = newest_has_rows_;
    // From here on it may, also if this attempt ends early.
    newest_has_rows_ = true;
  }
  round.head = layer->generation->head.get();
  round.sums = layer->generation->sums.get();
  round.index = index.get();
  round.pages = pages.get();
  if (round.version != 0) {
    H5M_ASSIGN_OR_RETURN(VersionRow version, index->GetVersion(round.version));
    if (version.info.generation == layer->generation->number) {
      H5M_ASSIGN_OR_RETURN(uint64_t size_max, index->SizeMax(version.info.generation));
      round.limit_pages = PagesIn(size_max);
    } else {
      round.version = 0;
    }
  }
  MemoryCharge pinned(context_->budget);
  // The next attempt takes what is in the head for somebody else's: sums may be ahead of it.
  absl::Cleanup not_finished = [&layer] { layer->recovered = true; };
  for (uint64_t at = 0;;) {
    round.Clear();
    pinned.Set(0);
    const uint64_t round_bytes =
        std::clamp(context_->budget.room_bytes(), kChunkBytes, kRoundBytes);
    while (round.touched_bytes < round_bytes && round.chunks.size() < kRoundChunks) {
      H5M_ASSIGN_OR_RETURN(std::optional<Extent> touched,
                           NextTouched(*layer, round.old_size_bytes, page_size_bytes_, at));
      if (!touched) break;
      Extent next{
          touched->offset,
          std::min({touched->length, kChunkBytes,
                    std::max<uint64_t>(round_bytes - round.touched_bytes, page_size_bytes_) /
                        page_size_bytes_ * page_size_bytes_})};
      round.Take(next, page_size_bytes_);
      at = next.end();
    }
    if (round.chunks.empty()) break;
    charge.Set(2 * kChunkBytes);  // Old bytes, and pre-images to write.
    pinned.Set(round.touched_bytes);
    H5M_RETURN_IF_ERROR(SavePages(round));
    H5M_RETURN_IF_ERROR(WritePages(round));
    absl::Time now = context_->env.Now();
    bool due;
    {
      absl::MutexLock lock(&mutex_);
      due = IsDue(now);
    }
    if (due) H5M_RETURN_IF_ERROR(MakeDurable(now));  // A writer waits for its ack.
    ExpireOverBudget();
    if (rounds == Rounds::kUntilStopped && context_->stops_applying) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(dead());
  }
  H5M_RETURN_IF_ERROR(FinishApply(layer, round.changed_pages));
  std::move(not_finished).Cancel();
  return absl::OkStatus();
}

absl::Status FileImpl::ReadNew(const Round& round, ApplyChunk& chunk,
                               absl::Span<const char> old_bytes) {
  const CutLayer& layer = *round.layer;
  const uint64_t page_bytes = page_size_bytes_;
  std::vector<Extent> wanted;
  auto extent_of = [&](const ApplyRun& run) {
    return Extent{chunk.range.offset + run.first * page_bytes, run.count * page_bytes};
  };
  for (const ApplyRun& run : chunk.runs) {
    const Extent all = extent_of(run);
    const uint64_t within =
        layer.size_bytes <= all.offset ? 0 : std::min(all.length, layer.size_bytes - all.offset);
    std::memset(run.bytes + within, 0, all.length - within);
    if (within > 0) wanted.push_back({all.offset, within});
  }
  // A part of one wanted extent lies in one run.
  auto place = [&](Extent part) {
    auto after = std::upper_bound(
        chunk.runs.begin(), chunk.runs.end(), part.offset,
        [&](uint64_t offset, const ApplyRun& run) { return offset < extent_of(run).offset; });
    const ApplyRun& run = *std::prev(after);
    return absl::Span<char>(run.bytes + (part.offset - extent_of(run).offset), part.length);
  };
  std::vector<Piece> pieces;
  H5M_RETURN_IF_ERROR(layer.data.Resolve(&wanted, &pieces));
  for (const Piece& piece : pieces) {
    absl::Span<char> to = place(piece.extent);
    if (piece.source == Piece::Source::kStage) {
      H5M_RETURN_IF_ERROR(layer.Read(piece.location, to));
    } else if (piece.source == Piece::Source::kHead) {
      H5M_RETURN_IF_ERROR(ReadOrZeros(*round.head, piece.extent.offset, to));
    } else {
      std::memset(to.data(), 0, to.size());
    }
  }
  for (const Extent& same : wanted) {
    const uint64_t first = (same.offset - chunk.range.offset) / page_bytes;
    const uint64_t last = (same.end() - 1 - chunk.range.offset) / page_bytes;
    for (uint64_t page = first; page <= last; ++page) chunk.keeps_old[page] = true;
    std::memcpy(place(same).data(), &old_bytes[same.offset - chunk.range.offset], same.length);
  }
  return absl::OkStatus();
}

absl::Status FileImpl::LoadChunk(Round& round, ApplyChunk& chunk) {
  const uint32_t page_bytes = page_size_bytes_;
  const uint64_t count = chunk.range.length / page_bytes;
  absl::Span<char> old_bytes = round.old_memory.Get(kChunkBytes).subspan(0, chunk.range.length);
  H5M_RETURN_IF_ERROR(
      ReadThrough({}, *round.head, round.old_size_bytes, chunk.range.offset, old_bytes));
  chunk.keeps_old.assign(count, false);
  H5M_RETURN_IF_ERROR(ReadNew(round, chunk, old_bytes));
  H5M_ASSIGN_OR_RETURN(chunk.old_sums, round.sums->Read(PageOf(chunk.range.offset), count));
  chunk.sums = chunk.old_sums;
  chunk.differs.assign(count, false);
  for (const ApplyRun& run : chunk.runs) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t page = run.first + i;
      const char* fresh = run.bytes + i * page_bytes;
      chunk.differs[page] = std::memcmp(&old_bytes[page * page_bytes], fresh, page_bytes) != 0;
      // Also where nothing differs: an attempt that failed may have got that far.
      chunk.sums[page] = round.sums->SumOf({fresh, page_bytes});
    }
  }
  SaveDamage(round, chunk, old_bytes);
  return absl::OkStatus();
}

// A page that went bad on the disk and is overwritten in part stays bad: a sum of what it holds
// then would pass the damage off as the writer's bytes. It keeps the sum that it does not match,
// until it is overwritten as a whole. (What an attempt that failed has left matches neither sum,
// and is made anew.)
void FileImpl::SaveDamage(Round& round, ApplyChunk& chunk, absl::Span<const char> old_bytes) const {
  if (round.layer->recovered) return;
  for (uint64_t page = 0; page < chunk.keeps_old.size(); ++page) {
    if (!chunk.keeps_old[page]) continue;
    const std::string_view old_page(&old_bytes[page * page_size_bytes_], page_size_bytes_);
    if (round.sums->SumOf(old_page) == chunk.old_sums[page]) continue;
    chunk.sums[page] = chunk.old_sums[page];
    round.bad.Add(PageOf(chunk.range.offset) + page);
  }
}

absl::Status FileImpl::SavePinnedPages(Round& round, const ApplyChunk& chunk) {
  const uint64_t first = PageOf(chunk.range.offset);
  PinnedPages& pinned = *round.saving.pages;
  const std::string_view bytes(round.old_memory.Get(kChunkBytes).data(), chunk.range.length);
  auto page_at = [&](uint64_t i, uint64_t count) {
    return bytes.substr(i * page_size_bytes_, count * page_size_bytes_);
  };
  const uint64_t count = std::min<uint64_t>(
      chunk.differs.size(), round.saving.limit_pages - std::min(round.saving.limit_pages, first));
  auto is_wanted = [&](uint64_t i) { return chunk.differs[i] && !pinned.Has(first + i); };
  auto is_good = [&](uint64_t i) { return round.sums->SumOf(page_at(i, 1)) == chunk.old_sums[i]; };
  for (uint64_t i = 0; i < count;) {
    uint64_t end = i + 1;
    if (is_wanted(i) && !is_good(i)) {
      pinned.SaveLoss(first + i);
    } else if (is_wanted(i)) {
      while (end < count && is_wanted(end) && is_good(end)) ++end;
      H5M_RETURN_IF_ERROR(pinned.Save(first + i, page_at(i, end - i)));
    }
    i = end;
  }
  return absl::OkStatus();
}

absl::Status FileImpl::SavePages(Round& round) {
  std::vector<PageRun> runs;
  round.saving = PagesToSave(*round.layer);
  char* next = round.new_memory.Get(round.touched_bytes).data();
  for (ApplyChunk& chunk : round.chunks) {
    for (ApplyRun& run : chunk.runs) {
      run.bytes = next;
      next += run.count * page_size_bytes_;
    }
    H5M_RETURN_IF_ERROR(LoadChunk(round, chunk));
    if (round.saving.pages != nullptr && !SavePinnedPages(round, chunk).ok()) {
      // The head goes on; readers of the cuts before must open it again.
      ExpireBefore(round.layer->cut);
      round.saving = PagesToPin();
    }
    const uint64_t first = PageOf(chunk.range.offset), count = chunk.differs.size();
    std::vector<bool> wanted(count);
    bool any = false;
    for (uint64_t i = 0; i < count; ++i) {
      if (!chunk.differs[i]) continue;
      ++round.changed_pages;
      wanted[i] = round.version != 0 && first + i < round.limit_pages;
      any = any || wanted[i];
    }
    if (!any) continue;
    if (round.may_have_rows) {
      H5M_ASSIGN_OR_RETURN(std::vector<PageRun> saved,
                           round.index->FindPages(round.layer->generation->number, round.version,
                                                  first, first + count));
      for (const PageRun& run : saved) {
        uint64_t end = std::min(run.page_end(), first + count);
        for (uint64_t page = std::max(run.page, first); page < end; ++page) {
          wanted[page - first] = false;
        }
      }
    }
    H5M_RETURN_IF_ERROR(SaveRuns(round, chunk, NoteDamaged(round, chunk, wanted, &runs), &runs));
  }
  const absl::Cleanup tell = [&] {
    TellDamage(round.version, std::exchange(round.lost, {}), std::exchange(round.bad, {}));
  };
  if (runs.empty()) return absl::OkStatus();
  bool stored = std::any_of(runs.begin(), runs.end(), [](const PageRun& run) {
    return run.segment != PageRun::kZeros && run.segment != PageRun::kLost;
  });
  if (stored) H5M_RETURN_IF_ERROR(round.pages->Sync());
  FileRow row;
  {
    absl::MutexLock lock(&mutex_);
    row = row_;
  }
  row.pages_segment = round.pages->segment();
  row.pages_end_bytes = round.pages->end_bytes();
  H5M_RETURN_IF_ERROR(round.index->AddPages(row, runs));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  return absl::OkStatus();
}

// A page that does not match its sum went bad on the disk, or was changed by somebody else. Saved
// with a sum of its own it would pass for the old version.
std::vector<bool> FileImpl::NoteDamaged(Round& round, const ApplyChunk& chunk,
                                        std::vector<bool> wanted, std::vector<PageRun>* runs) {
  const char* old_bytes = round.old_memory.Get(kChunkBytes).data();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    std::string_view page(old_bytes + i * page_size_bytes_, page_size_bytes_);
    if (round.sums->SumOf(page) == chunk.old_sums[i]) continue;
    wanted[i] = false;
    round.lost.Add(PageOf(chunk.range.offset) + i);
    runs->push_back({0, PageOf(chunk.range.offset) + i, round.version, PageRun::kLost, 0});
  }
  return wanted;
}

absl::Status FileImpl::SaveRuns(Round& round, const ApplyChunk& chunk,
                                const std::vector<bool>& wanted, std::vector<PageRun>* runs) {
  std::vector<uint32_t> crcs;  // Those that wanted pages have just been found to match.
  for (uint32_t sum : chunk.old_sums) crcs.push_back(round.sums->CrcOf(sum));
  const std::string_view bytes(round.old_memory.Get(kChunkBytes).data(), chunk.range.length);
  PreImages images(*round.pages, page_size_bytes_, context_->options.page_compression,
                   round.layer->generation->number, round.version, runs);
  return images.Save(PageOf(chunk.range.offset), bytes, crcs, wanted);
}

absl::Status FileImpl::WritePages(Round& round) {
  Extent written{round.chunks.front().range.offset, 0};
  for (const ApplyChunk& chunk : round.chunks) {
    for (const ApplyRun& run : chunk.runs) H5M_RETURN_IF_ERROR(WriteRun(round, chunk, run));
    H5M_RETURN_IF_ERROR(round.sums->Write(PageOf(chunk.range.offset), chunk.sums));
    written.length = chunk.range.end() - written.offset;
    if (written.length < kWritebackBytes && &chunk != &round.chunks.back()) continue;
    round.head->StartWriteback(written);
    written = {chunk.range.end(), 0};
  }
  return absl::OkStatus();
}

absl::Status FileImpl::WriteRun(Round& round, const ApplyChunk& chunk, const ApplyRun& run) {
  const uint64_t page_bytes = page_size_bytes_;
  const uint64_t offset = chunk.range.offset + run.first * page_bytes;
  auto written = [&](uint64_t i) {
    // What an earlier attempt wrote may be in memory only, where its sync failed. Beyond the
    // old size the head may hold what was cut off, which the old content does not show.
    return chunk.differs[run.first + i] || round.layer->recovered ||
           offset + (i + 1) * page_bytes > round.old_size_bytes;
  };
  for (uint64_t i = 0; i < run.count;) {
    uint64_t end = i + 1;
    if (!written(i)) {
      i = end;
      continue;
    }
    while (end < run.count && written(end)) ++end;
    std::string_view bytes(run.bytes + i * page_bytes, (end - i) * page_bytes);
    Extent at{offset + i * page_bytes, bytes.size()};
    if (at.offset >= round.layer->data.truncated_to() && IsZero(bytes)) {
      H5M_RETURN_IF_ERROR(round.head->Zero(at));
    } else {
      H5M_RETURN_IF_ERROR(WriteAt(*round.head, at.offset, bytes));
    }
    i = end;
  }
  return absl::OkStatus();
}

absl::Status FileImpl::SumDirect(const CutLayer& layer) {
  std::string bytes;
  EnvFile& head = *layer.generation->head;
  SumsFile& sums = *layer.generation->sums;
  uint64_t end = RoundUp(layer.size_bytes, page_size_bytes_);
  for (const Extent& direct : layer.data.direct().ToVector()) {
    // Holes need no sums.
    for (uint64_t at = RoundDown(direct.offset, page_size_bytes_);
         at < std::min(direct.end(), end);) {
      H5M_ASSIGN_OR_RETURN(Extent data, head.NextData(at));
      if (data.length == 0) break;
      at = RoundDown(std::max(at, data.offset), page_size_bytes_);
      uint64_t stop = std::min(
          {RoundUp(direct.end(), page_size_bytes_), end, RoundUp(data.end(), page_size_bytes_)});
      if (at >= std::min(direct.end(), end)) break;
      bytes.resize(std::min(kChunkBytes, stop - at));
      // Staged bytes of the same cut lie over direct ones, and are in the head by now.
      H5M_RETURN_IF_ERROR(ReadThrough({}, head, layer.size_bytes, at, absl::MakeSpan(bytes)));
      H5M_RETURN_IF_ERROR(sums.Write(PageOf(at), sums.SumsOf(bytes)));
      at += bytes.size();
    }
  }
  return absl::OkStatus();
}

// What an earlier attempt cleared looks done, and may be so in memory only, where its sync failed:
// no later sync covers that.
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
    const uint64_t first = RoundUp(piece.extent.offset, page_size_bytes_) / page_size_bytes_;
    // Beyond the end there is nothing: the page there is whole, too.
    const uint64_t last = piece.extent.end() == end ? PagesIn(end) : PageOf(piece.extent.end());
    if (first < last) H5M_RETURN_IF_ERROR(layer.generation->sums->Clear(first, last - first));
  }
  return absl::OkStatus();
}

absl::Status FileImpl::FitHead(const CutLayer& layer) {
  EnvFile& head = *layer.generation->head;
  H5M_ASSIGN_OR_RETURN(uint64_t size, head.Size());
  if (size == layer.size_bytes && !layer.recovered) return absl::OkStatus();
  bool direct_beyond =
      open_ != nullptr && open_->generation == layer.generation && !open_->data.direct().empty();
  for (const LayerPtr& later : layers_) {
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
  H5M_RETURN_IF_ERROR(SumDirect(*layer));
  if (layer->recovered) H5M_RETURN_IF_ERROR(ClearAgain(*layer));
  FileRow row;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(FitHead(*layer));
    index = index_;
  }
  H5M_RETURN_IF_ERROR(generation.sums->Truncate(PagesIn(layer->size_bytes), layer->recovered));
  H5M_RETURN_IF_ERROR(generation.head->Sync());
  H5M_RETURN_IF_ERROR(generation.sums->Sync());
  H5M_ASSIGN_OR_RETURN(FileStat stat, generation.head->Stat());
  {
    absl::MutexLock lock(&mutex_);
    row = row_;
    uint64_t first = stage_->end().segment;
    if (open_ != nullptr) first = std::min(first, open_->first_segment);
    for (const LayerPtr& later : layers_) {
      if (later != layer) first = std::min(first, later->first_segment);
    }
    row.stage_first = std::min(first, row.stage_last);
  }
  row.applied_cut = layer->cut;
  row.applied_size_bytes = layer->size_bytes;
  row.changed_pages += changed_pages + layer->data.direct().byte_count() / page_size_bytes_;
  row.head = stat;
  uint64_t version_pages = row.changed_pages;
  if (layer->version != 0) {
    row.applied_version = layer->version;
    row.changed_pages = 0;
  }
  H5M_RETURN_IF_ERROR(index->CommitApplied(row, layer->version, version_pages));
  absl::MutexLock lock(&mutex_);
  row_ = row;
  if (layer->version != 0) {
    newest_has_rows_ = false;
    if (newest_.version == layer->version) newest_.changed_pages = version_pages;
  }
  layers_.pop_front();
  H5M_RETURN_IF_ERROR(stage_->RemoveBefore(row.stage_first));
  bool idle = layers_.empty() && (open_ == nullptr || stage_->end().bytes == last_cut_end_.bytes);
  if (!idle || (open_ != nullptr && stage_->end().segment != last_cut_end_.segment)) {
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(stage_->Reset());
  last_cut_end_ = stage_->end();
  if (open_ != nullptr) open_->first_segment = last_cut_end_.segment;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
