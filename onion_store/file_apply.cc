// From durable to the head: pre-images, pages, checksums.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/coding.h"
#include "onion_store/file_impl.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint64_t kRoundBytes = uint64_t{64} << 20;
constexpr size_t kRoundChunks = 4096;
// Two touched pages no further apart are read in one piece: a call costs more than the bytes.
constexpr uint64_t kBridgeBytes = 64 << 10;

}  // namespace

// One round: a window of the file whose pre-images share one sync and one transaction.
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
  struct Chunk {
    Extent range;  // whole pages, at most kChunkBytes
    std::vector<bool>
        touched;  // the pages of it that the layer changes; the others only lie between
    std::string old_bytes, new_bytes;
  };
  std::vector<Chunk> chunks;
  bool keeps_bytes = false;  // from SavePages to WritePages: there is memory for it
  uint64_t changed_pages = 0;

  // Takes in `touched`, which follows what was taken in before and is at most kChunkBytes.
  void Take(Extent touched, uint64_t page_bytes) {
    Chunk* last = chunks.empty() ? nullptr : &chunks.back();
    // Bridged pages are read, never written: nothing below both sizes is anybody else's.
    uint64_t bridge_end = std::min(old_size_bytes, layer->size_bytes);
    bool near =
        last != nullptr && touched.end() - last->range.offset <= kChunkBytes &&
        (touched.offset == last->range.end() ||
         (touched.offset - last->range.end() <= kBridgeBytes && touched.offset < bridge_end));
    if (!near) {
      chunks.push_back({{touched.offset, 0}, {}, {}, {}});
      last = &chunks.back();
    }
    last->touched.resize((touched.offset - last->range.offset) / page_bytes, false);
    last->range.length = touched.end() - last->range.offset;
    last->touched.resize(last->range.length / page_bytes, true);
  }
};

namespace {

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
  uint64_t cut_off_end = std::max(old_size_bytes, std::min(layer.direct_end_max(), cut.cut_bytes));
  if (cut_off < cut_off_end) {
    H5M_ASSIGN_OR_RETURN(Extent data, head.NextData(cut_off));
    if (data.length > 0 && data.offset < cut_off_end) {
      take(data.offset, std::min(data.end(), cut_off_end));
    }
    if (cut.recovered) {  // An earlier attempt may have cleared the head and not the sums.
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

absl::Status FileImpl::Apply(const LayerPtr& layer, Rounds rounds) {
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
  for (uint64_t at = 0;;) {
    round.chunks.clear();
    uint64_t round_bytes = 0;
    while (round_bytes < kRoundBytes && round.chunks.size() < kRoundChunks) {
      H5M_ASSIGN_OR_RETURN(std::optional<Extent> touched,
                           NextTouched(*layer, round.old_size_bytes, page_size_bytes_, at));
      if (!touched) break;
      Extent next{touched->offset, std::min(touched->length, kChunkBytes)};
      round.Take(next, page_size_bytes_);
      round_bytes += next.length;
      at = next.end();
    }
    if (round.chunks.empty()) break;
    charge.Set(3 * kChunkBytes);  // Old, new, and pre-images to write.
    uint64_t span = 0;
    for (const Round::Chunk& chunk : round.chunks) span += chunk.range.length;
    round.keeps_bytes = round.chunks.size() == 1 || context_->budget.fits(2 * span);
    MemoryCharge kept(context_->budget, round.keeps_bytes ? 2 * span : 0);
    H5M_RETURN_IF_ERROR(SavePages(round));
    H5M_RETURN_IF_ERROR(WritePages(round));
    absl::Time now = absl::Now();
    bool due;
    {
      absl::MutexLock lock(&mutex_);
      due = IsDue(now);
    }
    if (due) H5M_RETURN_IF_ERROR(MakeDurable(now));  // A writer waits for its ack.
    if (rounds == Rounds::kUntilStopped && context_->stops_applying) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(dead());
  }
  return FinishApply(layer, round.changed_pages);
}

absl::Status FileImpl::ReadOldAndNew(const Round& round, Extent range, std::string* old_bytes,
                                     std::string* new_bytes) {
  old_bytes->resize(range.length);
  H5M_RETURN_IF_ERROR(
      ReadThrough({}, *round.head, round.old_size_bytes, range.offset, absl::MakeSpan(*old_bytes)));
  *new_bytes = *old_bytes;
  const CutLayer& layer = *round.layer;
  uint64_t within = layer.size_bytes <= range.offset
                        ? 0
                        : std::min(range.length, layer.size_bytes - range.offset);
  std::memset(new_bytes->data() + within, 0, range.length - within);
  if (within == 0) return absl::OkStatus();
  std::vector<Extent> wanted{{range.offset, within}};
  std::vector<Piece> pieces;
  H5M_RETURN_IF_ERROR(layer.data.Resolve(&wanted, &pieces));
  for (const Piece& piece : pieces) {
    absl::Span<char> place(new_bytes->data() + (piece.extent.offset - range.offset),
                           piece.extent.length);
    if (piece.source == Piece::Source::kStage) {
      H5M_RETURN_IF_ERROR(layer.Read(piece.location, place));
    } else if (piece.source == Piece::Source::kHead) {
      H5M_RETURN_IF_ERROR(ReadOrZeros(*round.head, piece.extent.offset, place));
    } else {
      std::memset(place.data(), 0, place.size());
    }
  }
  return absl::OkStatus();
}

absl::Status FileImpl::SavePages(Round& round) {
  std::vector<PageRun> runs;
  const uint32_t page_bytes = page_size_bytes_;
  std::string old_scratch, new_scratch;
  for (Round::Chunk& chunk : round.chunks) {
    std::string& old_bytes = round.keeps_bytes ? chunk.old_bytes : old_scratch;
    std::string& new_bytes = round.keeps_bytes ? chunk.new_bytes : new_scratch;
    H5M_RETURN_IF_ERROR(ReadOldAndNew(round, chunk.range, &old_bytes, &new_bytes));
    const uint64_t first = PageOf(chunk.range.offset), count = chunk.touched.size();
    std::vector<bool> wanted(count);
    bool any = false;
    for (uint64_t i = 0; i < count; ++i) {
      if (!chunk.touched[i] ||
          std::memcmp(&old_bytes[i * page_bytes], &new_bytes[i * page_bytes], page_bytes) == 0) {
        continue;
      }
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
    H5M_RETURN_IF_ERROR(NoteDamaged(round, first, &wanted, old_bytes, &runs));
    H5M_RETURN_IF_ERROR(SaveRuns(round, first, wanted, old_bytes, &runs));
  }
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
absl::Status FileImpl::NoteDamaged(Round& round, uint64_t first_page, std::vector<bool>* wanted,
                                   std::string_view bytes, std::vector<PageRun>* runs) {
  H5M_ASSIGN_OR_RETURN(std::vector<uint32_t> sums, round.sums->Read(first_page, wanted->size()));
  for (size_t i = 0; i < wanted->size(); ++i) {
    if (!(*wanted)[i]) continue;
    std::string_view page = bytes.substr(i * page_size_bytes_, page_size_bytes_);
    if (round.sums->SumOf(page) == sums[i]) continue;
    (*wanted)[i] = false;
    runs->push_back({0, first_page + i, round.version, PageRun::kLost, 0});
  }
  return absl::OkStatus();
}

absl::Status FileImpl::SaveRuns(Round& round, uint64_t first_page, const std::vector<bool>& wanted,
                                std::string_view bytes, std::vector<PageRun>* runs) {
  const uint32_t page_bytes = page_size_bytes_;
  const int64_t generation = round.layer->generation->number;
  auto is_zero = [&](size_t i) { return IsZero(bytes.substr(i * page_bytes, page_bytes)); };
  for (size_t i = 0; i < wanted.size();) {
    if (!wanted[i]) {
      ++i;
      continue;
    }
    const bool zero = is_zero(i);
    size_t end = i + 1;
    while (end < wanted.size() && wanted[end] && is_zero(end) == zero) ++end;
    while (i < end) {  // The longest aligned run that starts here.
      int level = 0;
      while (level < kPageLevelMax && (first_page + i) % (uint64_t{2} << level) == 0 &&
             i + (uint64_t{2} << level) <= end) {
        ++level;
      }
      uint64_t count = uint64_t{1} << level;
      PageRun run{level, first_page + i, round.version, PageRun::kZeros, 0};
      if (!zero) {
        H5M_ASSIGN_OR_RETURN(run,
                             round.pages->Append(generation, level, first_page + i, round.version,
                                                 bytes.substr(i * page_bytes, count * page_bytes)));
      }
      runs->push_back(run);
      i += count;
    }
  }
  return absl::OkStatus();
}

absl::Status FileImpl::WritePages(Round& round) {
  const uint32_t page_bytes = page_size_bytes_;
  std::string old_scratch, new_scratch;
  for (Round::Chunk& chunk : round.chunks) {
    if (!round.keeps_bytes) {
      H5M_RETURN_IF_ERROR(ReadOldAndNew(round, chunk.range, &old_scratch, &new_scratch));
    }
    const std::string_view old_bytes = round.keeps_bytes ? chunk.old_bytes : old_scratch;
    const std::string_view new_bytes = round.keeps_bytes ? chunk.new_bytes : new_scratch;
    const uint64_t offset = chunk.range.offset, count = chunk.touched.size();
    auto differs = [&](uint64_t i) {
      if (!chunk.touched[i]) return false;
      // What an earlier attempt wrote may be in memory only, where its sync failed. Beyond the
      // old size the head may hold what was cut off, which the old content does not show.
      return round.layer->recovered || offset + (i + 1) * page_bytes > round.old_size_bytes ||
             std::memcmp(&old_bytes[i * page_bytes], &new_bytes[i * page_bytes], page_bytes) != 0;
    };
    for (uint64_t i = 0; i < count;) {
      uint64_t end = i + 1;
      if (!differs(i)) {
        i = end;
        continue;
      }
      while (end < count && differs(end)) ++end;
      std::string_view bytes = new_bytes.substr(i * page_bytes, (end - i) * page_bytes);
      Extent at{offset + i * page_bytes, bytes.size()};
      if (at.offset >= round.layer->data.truncated_to() && IsZero(bytes)) {
        H5M_RETURN_IF_ERROR(round.head->Zero(at));
      } else {
        H5M_RETURN_IF_ERROR(WriteAt(*round.head, at.offset, bytes));
      }
      i = end;
    }
    round.head->StartWriteback(chunk.range);
    // Of touched pages also where nothing differs: an attempt that failed may have got that far.
    H5M_ASSIGN_OR_RETURN(std::vector<uint32_t> sums, round.sums->Read(PageOf(offset), count));
    for (uint64_t i = 0; i < count; ++i) {
      if (!chunk.touched[i]) continue;
      sums[i] = round.sums->SumOf(new_bytes.substr(i * page_bytes, page_bytes));
    }
    H5M_RETURN_IF_ERROR(round.sums->Write(PageOf(offset), sums));
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

absl::Status FileImpl::FitHead(const CutLayer& layer) {
  EnvFile& head = *layer.generation->head;
  H5M_ASSIGN_OR_RETURN(uint64_t size, head.Size());
  if (size == layer.size_bytes) return absl::OkStatus();
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
  FileRow row;
  std::shared_ptr<VersionIndex> index;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(FitHead(*layer));
    index = index_;
  }
  H5M_RETURN_IF_ERROR(generation.sums->Truncate(PagesIn(layer->size_bytes)));
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
