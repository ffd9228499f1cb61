#include "onion_store/file/versions/version_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {
constexpr uint64_t kChunkBytes = 1 << 20;
// So many bytes stay in the processor's cache while they are read, summed and written.
constexpr uint64_t kCopyBytes = 256 << 10;
constexpr uint64_t kLocatePages = 4096;
// One lookup gets the rows of so many bytes: 4096 pages of 4 KiB.
constexpr uint64_t kLookupBytes = 16 << 20;
}  // namespace

VersionReaderImpl::VersionReaderImpl(std::shared_ptr<VersionSource> file, VersionInfo info,
                                     std::shared_ptr<Generation> generation,
                                     std::vector<LayerPtr> layers,
                                     std::shared_ptr<VersionIndex> index,
                                     std::shared_ptr<PageSegments> pages, uint64_t prune_epoch)
    : file_(std::move(file)),
      info_(std::move(info)),
      generation_(std::move(generation)),
      layers_(std::move(layers)),
      index_(std::move(index)),
      pages_(std::move(pages)),
      prune_epoch_(prune_epoch),
      page_size_bytes_(file_->page_size_bytes()) {}

VersionReaderImpl::~VersionReaderImpl() {
  for (const LayerPtr& layer : layers_) {
    for (const auto& segment : layer->segments) --segment->reader_count;
  }
}

absl::Status VersionReaderImpl::Read(uint64_t offset, absl::Span<char> out) {
  if (offset > INT64_MAX) return absl::InvalidArgumentError("read beyond 2^63-1");
  while (!out.empty()) {
    if (offset >= info_.size_bytes) {
      std::memset(out.data(), 0, out.size());
      return absl::OkStatus();
    }
    uint64_t first = offset / page_size_bytes_;
    uint64_t skip = offset % page_size_bytes_;
    uint64_t length =
        std::min<uint64_t>({out.size(), kChunkBytes - skip, info_.size_bytes - offset});
    uint64_t whole = RoundUp(skip + length, page_size_bytes_);
    std::vector<bool> head_only;
    if (skip == 0 && whole == length) {  // Whole pages need no copy.
      H5M_RETURN_IF_ERROR(ReadPages(first, out.subspan(0, length), &head_only));
    } else {
      buffer_.resize(whole);
      H5M_RETURN_IF_ERROR(ReadPages(first, absl::MakeSpan(buffer_), &head_only));
      std::memcpy(out.data(), buffer_.data() + skip, length);
    }
    offset += length;
    out.remove_prefix(length);
  }
  return absl::OkStatus();
}

void VersionReaderImpl::StartReading(Extent extent) {
  if (extent.offset >= info_.size_bytes) return;
  const uint64_t end = extent.offset + std::min(extent.length, info_.size_bytes - extent.offset);
  const uint64_t begin = extent.offset / page_size_bytes_ * page_size_bytes_;
  generation_->head->StartReading({begin, RoundUp(end, page_size_bytes_) - begin});
}

absl::Status VersionReaderImpl::ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) {
  while (!ranges.empty()) {
    size_t count = 1;
    while (count < ranges.size() && ranges[count].end() - ranges[0].offset <= kLookupBytes) ++count;
    H5M_RETURN_IF_ERROR(ReadNearRanges(ranges.subspan(0, count), &out));
    ranges.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status VersionReaderImpl::ReadNearRanges(absl::Span<const Extent> ranges,
                                               absl::Span<char>* out) {
  std::vector<PageRun> rows;
  SavedPages saved{ranges.front().offset / page_size_bytes_, {}};
  const uint64_t epoch = file_->dropped_versions().epoch();
  if (ranges.size() > 1) {
    // A row stays once it exists, so the head need not be read before.
    const uint64_t end = RoundUp(ranges.back().end(), page_size_bytes_) / page_size_bytes_;
    H5M_ASSIGN_OR_RETURN(rows,
                         index_->FindPages(info_.generation, info_.version, saved.first, end));
    H5M_RETURN_IF_ERROR(file_->dead());
    H5M_RETURN_IF_ERROR(CheckNotDropped());
    saved.owners = OwnersOf(rows, saved.first, end - saved.first);
  }
  if (ranges.size() > 1 && rows.empty()) {  // The head has all of them.
    for (const Extent& range : ranges) StartReading(range);
  }
  for (const Extent& range : ranges) {
    const absl::Span<char> part = out->subspan(0, range.length);
    const absl::StatusOr<bool> read = ReadSaved(saved, range, part);
    // If a segment was removed meanwhile, the rows name another segment now.
    const bool is_stale = epoch != file_->dropped_versions().epoch();
    if (!read.ok() && !is_stale) return read.status();
    if (is_stale || !*read) H5M_RETURN_IF_ERROR(Read(range.offset, part));
    out->remove_prefix(range.length);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> VersionReaderImpl::ReadSaved(const SavedPages& saved, Extent range,
                                                  absl::Span<char> out) {
  const bool is_whole = range.offset % page_size_bytes_ == 0 &&
                        range.length % page_size_bytes_ == 0 && range.end() <= info_.size_bytes;
  if (saved.owners.empty() || !is_whole) return false;
  const uint64_t begin = range.offset / page_size_bytes_ - saved.first;
  const uint64_t end = begin + range.length / page_size_bytes_;
  const auto is_unsaved = [](const PageRun* owner) {
    return owner == nullptr || owner->segment == PageRun::kLost;
  };
  if (std::any_of(saved.owners.begin() + begin, saved.owners.begin() + end, is_unsaved)) {
    return false;
  }
  for (uint64_t i = begin; i < end;) {
    uint64_t next = i + 1;
    while (next < end && saved.owners[next] == saved.owners[i]) ++next;
    const uint64_t bytes = (next - i) * page_size_bytes_;
    H5M_RETURN_IF_ERROR(
        pages_->Read(*saved.owners[i], info_.generation, saved.first + i, out.subspan(0, bytes)));
    out.remove_prefix(bytes);
    i = next;
  }
  return true;
}

absl::Status VersionReaderImpl::CheckNotDropped() const {
  return file_->dropped_versions().CheckNotDropped(*index_, info_.version, prune_epoch_);
}

absl::Status VersionReaderImpl::ReadPages(uint64_t first, absl::Span<char> out,
                                          std::vector<bool>* head_only) {
  while (true) {
    const uint64_t epoch = file_->dropped_versions().epoch();
    absl::Status read = TryReadPages(first, out, head_only);
    if (read.ok() || epoch == file_->dropped_versions().epoch()) return read;
    // A segment was removed since the rows were looked up: they name another segment now.
    H5M_RETURN_IF_ERROR(CheckNotDropped());
  }
}

absl::Status VersionReaderImpl::TryReadPages(uint64_t first, absl::Span<char> out,
                                             std::vector<bool>* head_only) {
  const uint64_t count = out.size() / page_size_bytes_;
  H5M_RETURN_IF_ERROR(ReadHead(first, out, head_only));
  H5M_ASSIGN_OR_RETURN(std::vector<uint32_t> sums, generation_->sums->Read(first, count));
  // Only now: if a row is not there yet, the head was still old when it was read.
  H5M_ASSIGN_OR_RETURN(std::vector<PageRun> runs,
                       index_->FindPages(info_.generation, info_.version, first, first + count));
  // A dead object's index may belong to another file by now, so its answers mean nothing.
  H5M_RETURN_IF_ERROR(file_->dead());
  H5M_RETURN_IF_ERROR(CheckNotDropped());
  H5M_RETURN_IF_ERROR(ReadRows(first, OwnersOf(runs, first, count), out, head_only));
  H5M_RETURN_IF_ERROR(Check(first, {out.data(), out.size()}, *head_only, sums));
  // The newest page may be cut by the version's end.
  uint64_t end = (first + count) * page_size_bytes_;
  if (end > info_.size_bytes) {
    uint64_t from = std::max(info_.size_bytes, first * page_size_bytes_);
    std::memset(out.data() + (from - first * page_size_bytes_), 0, end - from);
  }
  return absl::OkStatus();
}

absl::Status VersionReaderImpl::ReadRows(uint64_t first, const std::vector<const PageRun*>& owners,
                                         absl::Span<char> out, std::vector<bool>* head_only) {
  for (uint64_t i = 0; i < owners.size();) {
    uint64_t end = i + 1;
    while (end < owners.size() && owners[end] == owners[i]) ++end;
    if (owners[i] != nullptr) {
      H5M_RETURN_IF_ERROR(ReadRow(*owners[i], first + i,
                                  out.subspan(i * page_size_bytes_, (end - i) * page_size_bytes_)));
      for (uint64_t page = i; page < end; ++page) (*head_only)[page] = false;
    }
    i = end;
  }
  return absl::OkStatus();
}

absl::Status VersionReaderImpl::ReadRow(const PageRun& row, uint64_t page, absl::Span<char> out) {
  if (row.segment == PageRun::kLost) {
    return absl::DataLossError(absl::StrFormat(
        "read page %d of %s@%d: it was lost when the head was changed or damaged from outside",
        page, file_->name(), info_.version));
  }
  const absl::Status read = pages_->Read(row, info_.generation, page, out);
  if (read.ok()) return read;
  return absl::Status(read.code(), absl::StrFormat("read page %d of %s@%d: %s", page, file_->name(),
                                                   info_.version, read.message()));
}

absl::Status VersionReaderImpl::ReadHead(uint64_t first, absl::Span<char> out,
                                         std::vector<bool>* head_only) {
  const uint64_t offset = first * page_size_bytes_;
  const uint64_t count = out.size() / page_size_bytes_;
  head_only->assign(count, true);
  if (layers_.empty()) return ReadOrZeros(*generation_->head, offset, out);
  H5M_RETURN_IF_ERROR(ReadThrough(layers_, *generation_->head, info_.size_bytes, offset, out));
  // Pages of a cut that is not applied have no sums yet; their bytes come from the stage.
  for (const LayerPtr& layer : layers_) {
    std::vector<Extent> wanted{{offset, out.size()}};
    std::vector<Piece> pieces;
    H5M_RETURN_IF_ERROR(layer->data.Resolve(&wanted, &pieces));
    for (const Piece& piece : pieces) {
      uint64_t end = RoundUp(piece.extent.end() - offset, page_size_bytes_) / page_size_bytes_;
      for (uint64_t page = (piece.extent.offset - offset) / page_size_bytes_; page < end; ++page) {
        (*head_only)[page] = false;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status VersionReaderImpl::Check(uint64_t first, std::string_view bytes,
                                      const std::vector<bool>& check,
                                      const std::vector<uint32_t>& sums) {
  for (size_t i = 0; i < check.size(); ++i) {
    if (!check[i]) continue;
    uint32_t sum = generation_->sums->SumOf(bytes.substr(i * page_size_bytes_, page_size_bytes_));
    if (sum == sums[i]) continue;
    return absl::DataLossError(absl::StrFormat("read page %d of %s@%d: checksum 0x%08x != 0x%08x",
                                               first + i, file_->name(), info_.version, sum,
                                               sums[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> VersionReaderImpl::CopyTo(EnvFile& out, const IsCancelled& is_cancelled) {
  bool shared = false;
  // If staged bytes lie over it, the head may hold newer bytes already.
  if (layers_.empty()) {
    shared = out.ShareFrom(*generation_->head).ok();
    // Before an error a part may have been shared, even where this version has holes.
    if (!shared) H5M_RETURN_IF_ERROR(out.Truncate(0));
  }
  H5M_RETURN_IF_ERROR(out.Truncate(info_.size_bytes));
  std::string bytes;
  std::vector<bool> there;
  uint64_t copied_bytes = 0;
  for (uint64_t at = 0;;) {
    if (is_cancelled != nullptr && is_cancelled())
      return absl::CancelledError("the caller has gone");
    H5M_ASSIGN_OR_RETURN(Extent data, NextData(at));
    if (data.length == 0) return copied_bytes;
    const uint64_t from = std::max(at, RoundDown(data.offset, page_size_bytes_));
    bytes.resize(std::min(RoundUp(data.end(), page_size_bytes_) - from, kCopyBytes));
    H5M_RETURN_IF_ERROR(ReadPages(from / page_size_bytes_, absl::MakeSpan(bytes), &there));
    at = from + bytes.size();
    if (at > info_.size_bytes) bytes.resize(info_.size_bytes - from);
    H5M_ASSIGN_OR_RETURN(uint64_t copied, CopyPages(out, from, bytes, shared ? &there : nullptr));
    copied_bytes += copied;
  }
}

absl::StatusOr<uint64_t> VersionReaderImpl::BytesToCopy(const IsCancelled& is_cancelled) {
  uint64_t bytes = 0;
  for (uint64_t at = 0;;) {
    if (is_cancelled != nullptr && is_cancelled())
      return absl::CancelledError("the caller has gone");
    H5M_ASSIGN_OR_RETURN(const Extent data, NextData(at));
    if (data.length == 0) return bytes;
    // CopyTo() writes whole pages.
    const uint64_t from = std::max(at, RoundDown(data.offset, page_size_bytes_));
    at = std::min(RoundUp(data.end(), page_size_bytes_), info_.size_bytes);
    bytes += at - from;
  }
}

absl::StatusOr<bool> VersionReaderImpl::CanShareIn(EnvTree& tree) {
  if (!layers_.empty()) return false;
  return tree.CanShare(*generation_->head);
}

absl::StatusOr<uint64_t> VersionReaderImpl::CopyPages(EnvFile& out, uint64_t offset,
                                                      std::string_view bytes,
                                                      const std::vector<bool>* shared) {
  enum class What : uint8_t { kThere, kHole, kBytes };
  auto what = [&](size_t i) {
    if (IsZero(bytes.substr(i * page_size_bytes_, page_size_bytes_))) return What::kHole;
    return shared != nullptr && (*shared)[i] ? What::kThere : What::kBytes;
  };
  const size_t count = RoundUp(bytes.size(), page_size_bytes_) / page_size_bytes_;
  uint64_t copied_bytes = 0;
  for (size_t i = 0; i < count;) {
    const What kind = what(i);
    size_t end = i + 1;
    while (end < count && what(end) == kind) ++end;
    std::string_view part = bytes.substr(i * page_size_bytes_, (end - i) * page_size_bytes_);
    Extent at{offset + i * page_size_bytes_, part.size()};
    if (kind != What::kHole) copied_bytes += part.size();
    if (kind == What::kBytes) H5M_RETURN_IF_ERROR(WriteAt(out, at.offset, part));
    if (kind == What::kHole && shared != nullptr) H5M_RETURN_IF_ERROR(out.Zero(at));
    i = end;
  }
  return copied_bytes;
}

absl::StatusOr<Extent> VersionReaderImpl::NextData(uint64_t offset) {
  if (offset >= info_.size_bytes) return Extent{info_.size_bytes, 0};
  Extent next{UINT64_MAX, 0};
  auto take = [&](uint64_t from, uint64_t end) {
    from = std::max(from, offset);
    end = std::min(end, info_.size_bytes);
    if (from < end && from < next.offset) next = {from, end - from};
  };
  H5M_ASSIGN_OR_RETURN(Extent head, generation_->head->NextData(offset));
  if (head.length > 0) take(head.offset, head.end());
  for (const LayerPtr& layer : layers_) {
    H5M_ASSIGN_OR_RETURN(std::optional<Extent> staged, layer->data.NextStaged(offset));
    if (staged) take(staged->offset, staged->end());
  }
  // Rows after the found range do not matter: a search for them would go through all rows of older
  // versions.
  if (next.offset <= offset) return next;
  const uint64_t end_page = std::min(next.offset, info_.size_bytes) / page_size_bytes_ + 1;
  H5M_ASSIGN_OR_RETURN(
      std::optional<uint64_t> page,
      index_->NextPage(info_.generation, info_.version, offset / page_size_bytes_, end_page));
  if (page) {
    // Only as far as rows follow each other: after them may come a hole.
    const uint64_t count = kChunkBytes / page_size_bytes_;
    H5M_ASSIGN_OR_RETURN(std::vector<PageRun> runs,
                         index_->FindPages(info_.generation, info_.version, *page, *page + count));
    const std::vector<const PageRun*> owners = OwnersOf(runs, *page, count);
    auto end = std::find(owners.begin(), owners.end(), nullptr);
    take(*page * page_size_bytes_, (*page + (end - owners.begin())) * page_size_bytes_);
  }
  H5M_RETURN_IF_ERROR(CheckNotDropped());
  return next.length == 0 ? Extent{info_.size_bytes, 0} : next;
}

absl::StatusOr<std::vector<PlacedRun>> VersionReaderImpl::Locate(uint64_t page, PageSums sums) {
  std::vector<PlacedRun> runs;
  const uint64_t end = RoundUp(info_.size_bytes, page_size_bytes_) / page_size_bytes_;
  if (page >= end) return runs;
  H5M_ASSIGN_OR_RETURN(const Extent data, NextData(page * page_size_bytes_));
  const uint64_t first =
      data.length == 0 ? end : std::max<uint64_t>(page, data.offset / page_size_bytes_);
  if (first > page) runs.push_back({page, first - page, PagePlace::kHole, "", 0, {}});
  if (first == end) return runs;
  const uint64_t data_end = RoundUp(data.end(), page_size_bytes_) / page_size_bytes_;
  const uint64_t count = std::min(data_end - first, kLocatePages);
  H5M_RETURN_IF_ERROR(LocateData(first, count, sums, &runs));
  return runs;
}

absl::Status VersionReaderImpl::LocateData(uint64_t first, uint64_t count, PageSums wanted,
                                           std::vector<PlacedRun>* runs) {
  H5M_ASSIGN_OR_RETURN(const std::vector<PagePlace> places, PlacesBelowRows(first, count));
  std::vector<uint32_t> sums;
  if (wanted == PageSums::kGive) {
    H5M_ASSIGN_OR_RETURN(sums, generation_->sums->Read(first, count));
  }
  // Only now, as in ReadPages().
  H5M_ASSIGN_OR_RETURN(const std::vector<PageRun> rows,
                       index_->FindPages(info_.generation, info_.version, first, first + count));
  H5M_RETURN_IF_ERROR(file_->dead());
  H5M_RETURN_IF_ERROR(CheckNotDropped());
  const std::vector<const PageRun*> owner = OwnersOf(rows, first, count);
  const std::string head = file_->HeadName(info_.generation);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t page = first + i;
    PlacedRun run = owner[i] != nullptr ? PlaceOfRow(*owner[i], page)
                                        : PlacedRun{page, 1, places[i], "", 0, {}};
    if (run.place == PagePlace::kHead) {
      run.file = head;
      run.offset = page * page_size_bytes_;
      if (!sums.empty()) run.page_crc32c.push_back(generation_->sums->CrcOf(sums[i]));
    }
    if (runs->empty() || !runs->back().TakeIn(run, page_size_bytes_)) {
      runs->push_back(std::move(run));
    }
  }
  return absl::OkStatus();
}

PlacedRun VersionReaderImpl::PlaceOfRow(const PageRun& row, uint64_t page) const {
  if (row.segment == PageRun::kLost) return {page, 1, PagePlace::kLost, "", 0, {}};
  if (row.segment == PageRun::kZeros) return {page, 1, PagePlace::kZeros, "", 0, {}};
  const std::string file = pages_->SegmentName(row.segment);
  if (row.packed()) return {page, 1, PagePlace::kPacked, file, row.offset, {}};
  return {page, 1, PagePlace::kPages, file, OffsetOf(pages_->LocationOf(row, page)), {}};
}

absl::StatusOr<std::vector<PagePlace>> VersionReaderImpl::PlacesBelowRows(uint64_t first,
                                                                          uint64_t count) {
  std::vector<PagePlace> places(count, PagePlace::kHead);
  const uint64_t begin = first * page_size_bytes_;
  std::vector<Extent> wanted{{begin, count * page_size_bytes_}};
  std::vector<Piece> pieces;
  for (auto layer = layers_.rbegin(); layer != layers_.rend() && !wanted.empty(); ++layer) {
    H5M_RETURN_IF_ERROR((*layer)->data.Resolve(&wanted, &pieces));
  }
  for (const Piece& piece : pieces) {
    const uint64_t from = piece.extent.offset - begin, to = piece.extent.end() - begin;
    if (piece.source == Piece::Source::kStage) {
      const uint64_t last = RoundUp(to, page_size_bytes_) / page_size_bytes_;
      std::fill(places.begin() + from / page_size_bytes_, places.begin() + last, PagePlace::kStage);
    } else if (piece.source == Piece::Source::kZeros) {
      // Whole pages only: a part of the others is elsewhere.
      const uint64_t whole = RoundUp(from, page_size_bytes_) / page_size_bytes_;
      for (uint64_t page = whole; page < to / page_size_bytes_; ++page) {
        if (places[page] == PagePlace::kHead) places[page] = PagePlace::kHole;
      }
    }
  }
  return places;
}

}  // namespace h5mirror::store
