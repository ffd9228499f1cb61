#include "onion_store/file/apply/apply_round.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"
#include "onion_store/pages/pre_images.h"

namespace h5mirror::store {
namespace {

constexpr size_t kRoundChunks = 16384;
// Two touched pages no further apart are read in one piece: a call costs as much as the bytes.
constexpr uint64_t kBridgeBytes = 16 << 10;
constexpr uint64_t kWritebackBytes = 8 << 20;

}  // namespace

uint64_t CutOffEnd(const CutLayer& layer, uint64_t old_size_bytes) {
  return std::max(old_size_bytes, std::min(layer.data.direct_end_max(), layer.cut_bytes));
}

Extent ApplyRound::ExtentOf(const ApplyChunk& chunk, const ApplyRun& run) const {
  const uint64_t page_bytes = basis_.page_size_bytes;
  return {chunk.range.offset + run.first * page_bytes, run.count * page_bytes};
}

std::string_view ApplyRound::OldBytes(const ApplyChunk& chunk) {
  return {old_memory_.Get(kChunkBytes).data(), chunk.range.length};
}

absl::Status ApplyRound::Fill(uint64_t bytes_max, uint64_t* at) {
  const uint64_t page_bytes = basis_.page_size_bytes;
  chunks_.clear();
  touched_bytes_ = 0;
  while (touched_bytes_ < bytes_max && chunks_.size() < kRoundChunks) {
    H5M_ASSIGN_OR_RETURN(const std::optional<Extent> touched, NextTouched(*at));
    if (!touched) break;
    const uint64_t room =
        RoundDown(std::max<uint64_t>(bytes_max - touched_bytes_, page_bytes), page_bytes);
    const Extent next{touched->offset, std::min({touched->length, kChunkBytes, room})};
    Take(next);
    *at = next.end();
  }
  return absl::OkStatus();
}

void ApplyRound::Take(Extent touched) {
  const uint64_t page_bytes = basis_.page_size_bytes;
  ApplyChunk* last = chunks_.empty() ? nullptr : &chunks_.back();
  // Bridged pages are read, never written. Below both sizes no other thread changes bytes.
  const uint64_t bridge_end = std::min(basis_.old_size_bytes, basis_.layer->size_bytes);
  const bool near =
      last != nullptr && touched.end() - last->range.offset <= kChunkBytes &&
      (touched.offset == last->range.end() ||
       (touched.offset - last->range.end() <= kBridgeBytes && touched.offset < bridge_end));
  if (!near) {
    last = &chunks_.emplace_back();
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
  touched_bytes_ += touched.length;
}

// The next whole pages at or after `offset` (a multiple of the page) that the cut changes: staged
// bytes, and data of the head that it cut off.
absl::StatusOr<std::optional<Extent>> ApplyRound::NextTouched(uint64_t offset) const {
  const uint32_t page_bytes = basis_.page_size_bytes;
  std::optional<Extent> first;
  const auto take = [&](uint64_t from, uint64_t end) {
    from = RoundDown(std::max(from, offset), page_bytes);
    end = RoundUp(end, page_bytes);
    if (from >= end) return;
    if (!first || from < first->offset) first = Extent{from, end - from};
  };
  H5M_ASSIGN_OR_RETURN(const std::optional<Extent> staged, basis_.layer->data.NextStaged(offset));
  if (staged) take(staged->offset, staged->end());
  H5M_RETURN_IF_ERROR(TakeCutOff(offset, take));
  return first;
}

template <typename Touch>
absl::Status ApplyRound::TakeCutOff(uint64_t offset, const Touch& take) const {
  const CutLayer& layer = *basis_.layer;
  const uint32_t page_bytes = basis_.page_size_bytes;
  const uint64_t truncated_to = layer.data.truncated_to();
  // The head also has direct bytes of a merged cut that a later truncate cut off.
  const uint64_t from = std::max(offset, truncated_to);
  const uint64_t end = CutOffEnd(layer, basis_.old_size_bytes);
  if (from >= end) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const Extent data, head().NextData(from));
  if (data.length > 0 && data.offset < end) take(data.offset, std::min(data.end(), end));
  if (!layer.recovered) return absl::OkStatus();
  // An earlier attempt may have cleared the head but not the sums. For whole pages ClearAgain()
  // takes care of that.
  if (truncated_to % page_bytes != 0) take(truncated_to, truncated_to + 1);
  H5M_ASSIGN_OR_RETURN(const Extent pages, sums().NextPages(from / page_bytes));
  if (pages.length > 0) {
    take(std::max(pages.offset * page_bytes, from), std::min(pages.end() * page_bytes, end));
  }
  return absl::OkStatus();
}

void ApplyRound::PlaceRuns() {
  char* next = new_memory_.Get(touched_bytes_).data();
  for (ApplyChunk& chunk : chunks_) {
    for (ApplyRun& run : chunk.runs) {
      run.bytes = next;
      next += run.count * basis_.page_size_bytes;
    }
  }
}

absl::Status ApplyRound::ReadPiece(const Piece& piece, absl::Span<char> to) const {
  if (piece.source == Piece::Source::kStage) return basis_.layer->Read(piece.location, to);
  if (piece.source == Piece::Source::kHead) return ReadOrZeros(head(), piece.extent.offset, to);
  std::memset(to.data(), 0, to.size());
  return absl::OkStatus();
}

absl::Status ApplyRound::ReadNew(ApplyChunk& chunk, absl::Span<const char> old_bytes) {
  const CutLayer& layer = *basis_.layer;
  const uint64_t page_bytes = basis_.page_size_bytes;
  std::vector<Extent> wanted;
  for (const ApplyRun& run : chunk.runs) {
    const Extent all = ExtentOf(chunk, run);
    const uint64_t within =
        layer.size_bytes <= all.offset ? 0 : std::min(all.length, layer.size_bytes - all.offset);
    std::memset(run.bytes + within, 0, all.length - within);
    if (within > 0) wanted.push_back({all.offset, within});
  }
  // A part of one wanted extent lies in one run.
  const auto place = [&](Extent part) {
    const auto after = std::upper_bound(
        chunk.runs.begin(), chunk.runs.end(), part.offset,
        [&](uint64_t offset, const ApplyRun& run) { return offset < ExtentOf(chunk, run).offset; });
    const ApplyRun& run = *std::prev(after);
    return absl::Span<char>(run.bytes + (part.offset - ExtentOf(chunk, run).offset), part.length);
  };
  std::vector<Piece> pieces;
  H5M_RETURN_IF_ERROR(layer.data.Resolve(&wanted, &pieces));
  for (const Piece& piece : pieces) H5M_RETURN_IF_ERROR(ReadPiece(piece, place(piece.extent)));
  for (const Extent& same : wanted) {
    const uint64_t first = (same.offset - chunk.range.offset) / page_bytes;
    const uint64_t last = (same.end() - 1 - chunk.range.offset) / page_bytes;
    for (uint64_t page = first; page <= last; ++page) chunk.keeps_old[page] = true;
    std::memcpy(place(same).data(), &old_bytes[same.offset - chunk.range.offset], same.length);
  }
  return absl::OkStatus();
}

absl::Status ApplyRound::Load(ApplyChunk& chunk) {
  const uint32_t page_bytes = basis_.page_size_bytes;
  const uint64_t count = chunk.range.length / page_bytes;
  absl::Span<char> old_bytes = old_memory_.Get(kChunkBytes).subspan(0, chunk.range.length);
  H5M_RETURN_IF_ERROR(
      ReadThrough({}, head(), basis_.old_size_bytes, chunk.range.offset, old_bytes));
  chunk.keeps_old.assign(count, false);
  H5M_RETURN_IF_ERROR(ReadNew(chunk, old_bytes));
  H5M_ASSIGN_OR_RETURN(chunk.old_sums, sums().Read(FirstPage(chunk), count));
  chunk.sums = chunk.old_sums;
  chunk.differs.assign(count, false);
  for (const ApplyRun& run : chunk.runs) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t page = run.first + i;
      const char* fresh = run.bytes + i * page_bytes;
      chunk.differs[page] = std::memcmp(&old_bytes[page * page_bytes], fresh, page_bytes) != 0;
      // Even if nothing differs: a failed attempt may have written the page already.
      chunk.sums[page] = sums().SumOf({fresh, page_bytes});
    }
  }
  SaveDamage(chunk, old_bytes);
  return absl::OkStatus();
}

// A page that went bad on the disk and is overwritten in part stays bad: a new sum would pass the
// damage off as the writer's bytes. The page keeps the sum that it does not match, until it is
// overwritten as a whole. (Bytes that a failed attempt has left match neither sum, and are written
// again.)
void ApplyRound::SaveDamage(ApplyChunk& chunk, absl::Span<const char> old_bytes) {
  if (basis_.layer->recovered) return;
  const uint32_t page_bytes = basis_.page_size_bytes;
  for (uint64_t page = 0; page < chunk.keeps_old.size(); ++page) {
    if (!chunk.keeps_old[page]) continue;
    const std::string_view old_page(&old_bytes[page * page_bytes], page_bytes);
    if (sums().SumOf(old_page) == chunk.old_sums[page]) continue;
    chunk.sums[page] = chunk.old_sums[page];
    bad_.Add(FirstPage(chunk) + page);
  }
}

absl::Status ApplyRound::SavePinned(const ApplyChunk& chunk, const PagesToPin& to) {
  const uint32_t page_bytes = basis_.page_size_bytes;
  const uint64_t first = FirstPage(chunk);
  PinnedPages& pinned = *to.pages;
  const std::string_view bytes = OldBytes(chunk);
  const auto page_at = [&](uint64_t i, uint64_t count) {
    return bytes.substr(i * page_bytes, count * page_bytes);
  };
  const uint64_t count =
      std::min<uint64_t>(chunk.differs.size(), to.limit_pages - std::min(to.limit_pages, first));
  const auto is_wanted = [&](uint64_t i) { return chunk.differs[i] && !pinned.Has(first + i); };
  const auto is_good = [&](uint64_t i) { return sums().SumOf(page_at(i, 1)) == chunk.old_sums[i]; };
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

absl::StatusOr<std::vector<bool>> ApplyRound::PagesToSave(const ApplyChunk& chunk) {
  const uint64_t first = FirstPage(chunk), count = chunk.differs.size();
  std::vector<bool> wanted(count);
  bool any = false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!chunk.differs[i]) continue;
    ++changed_pages_;
    wanted[i] = basis_.version != 0 && first + i < basis_.limit_pages;
    any = any || wanted[i];
  }
  if (!any || !basis_.may_have_rows) return wanted;
  H5M_ASSIGN_OR_RETURN(const std::vector<PageRun> saved,
                       basis_.index->FindPages(basis_.layer->generation->number, basis_.version,
                                               first, first + count));
  for (const PageRun& run : saved) {
    const uint64_t end = std::min(run.page_end(), first + count);
    for (uint64_t page = std::max(run.page, first); page < end; ++page) {
      wanted[page - first] = false;
    }
  }
  return wanted;
}

absl::Status ApplyRound::SavePreImages(const ApplyChunk& chunk, std::vector<PageRun>* runs) {
  H5M_ASSIGN_OR_RETURN(std::vector<bool> wanted, PagesToSave(chunk));
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return absl::OkStatus();
  wanted = NoteDamaged(chunk, std::move(wanted), runs);
  std::vector<uint32_t> crcs;  // The sums that the wanted pages were just found to match.
  for (uint32_t sum : chunk.old_sums) crcs.push_back(sums().CrcOf(sum));
  PreImages images(*basis_.pages, basis_.page_size_bytes, basis_.compression,
                   basis_.layer->generation->number, basis_.version, runs);
  return images.Save(FirstPage(chunk), OldBytes(chunk), crcs, wanted);
}

// A page that does not match its sum went bad on the disk, or another program changed it. If it
// were saved with a new sum, it would pass for the old version.
std::vector<bool> ApplyRound::NoteDamaged(const ApplyChunk& chunk, std::vector<bool> wanted,
                                          std::vector<PageRun>* runs) {
  const uint32_t page_bytes = basis_.page_size_bytes;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const std::string_view page = OldBytes(chunk).substr(i * page_bytes, page_bytes);
    if (sums().SumOf(page) == chunk.old_sums[i]) continue;
    wanted[i] = false;
    lost_.Add(FirstPage(chunk) + i);
    runs->push_back({0, FirstPage(chunk) + i, basis_.version, PageRun::kLost, 0});
  }
  return wanted;
}

absl::Status ApplyRound::Write() {
  Extent written{chunks_.front().range.offset, 0};
  for (const ApplyChunk& chunk : chunks_) {
    for (const ApplyRun& run : chunk.runs) H5M_RETURN_IF_ERROR(WriteRun(chunk, run));
    H5M_RETURN_IF_ERROR(sums().Write(FirstPage(chunk), chunk.sums));
    written.length = chunk.range.end() - written.offset;
    if (written.length < kWritebackBytes && &chunk != &chunks_.back()) continue;
    head().StartWriteback(written);
    written = {chunk.range.end(), 0};
  }
  return absl::OkStatus();
}

absl::Status ApplyRound::WriteRun(const ApplyChunk& chunk, const ApplyRun& run) {
  const uint64_t page_bytes = basis_.page_size_bytes;
  const uint64_t offset = ExtentOf(chunk, run).offset;
  const CutLayer& layer = *basis_.layer;
  const auto is_written = [&](uint64_t i) {
    // Bytes of an earlier attempt may be in memory only, if its sync failed. Beyond the old size
    // the head may hold bytes that were cut off, and that the old content does not show.
    return chunk.differs[run.first + i] || layer.recovered ||
           offset + (i + 1) * page_bytes > basis_.old_size_bytes;
  };
  for (uint64_t i = 0; i < run.count;) {
    uint64_t end = i + 1;
    if (!is_written(i)) {
      i = end;
      continue;
    }
    while (end < run.count && is_written(end)) ++end;
    const std::string_view bytes(run.bytes + i * page_bytes, (end - i) * page_bytes);
    const Extent at{offset + i * page_bytes, bytes.size()};
    if (at.offset >= layer.data.truncated_to() && IsZero(bytes)) {
      H5M_RETURN_IF_ERROR(head().Zero(at));
    } else {
      H5M_RETURN_IF_ERROR(WriteAt(head(), at.offset, bytes));
    }
    i = end;
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
