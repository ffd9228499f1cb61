#include "onion_store/file/pins/snapshot.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {
constexpr uint64_t kChunkBytes = 1 << 20;
// Ranges no farther apart than this are read together with the bytes between them. The bytes stay
// in the processor's cache. BM_PinnedRanges measures from which distance separate reads are
// cheaper.
constexpr uint64_t kGapMax = 12 << 10;
constexpr uint64_t kTogetherMax = 256 << 10;

// How many of `ranges` to read together; at least one.
size_t CountNear(absl::Span<const Extent> ranges) {
  size_t count = 1;
  while (count < ranges.size() && ranges[count].offset - ranges[count - 1].end() <= kGapMax &&
         ranges[count].end() - ranges[0].offset <= kTogetherMax) {
    ++count;
  }
  return count;
}
}  // namespace

absl::Status SnapshotImpl::Expired() const {
  return absl::OutOfRangeError(StrCat("snapshot expired, reopen: cut ", info().cut, " of ",
                                      file_->name(), " is not held any more"));
}

absl::Status SnapshotImpl::Damaged(uint64_t page, std::string_view what) const {
  return absl::DataLossError(
      StrCat("read page ", page, " of ", file_->name(), " at cut ", info().cut, ": ", what));
}

absl::Status SnapshotImpl::CheckPinned() const {
  H5M_RETURN_IF_ERROR(file_->dead());
  return pin_->content() == nullptr ? Expired() : absl::OkStatus();
}

absl::Status SnapshotImpl::Read(uint64_t offset, absl::Span<char> out) const {
  if (offset > INT64_MAX) return absl::InvalidArgumentError("read beyond 2^63-1");
  H5M_RETURN_IF_ERROR(file_->dead());  // Its name may be that of another file by now.
  const std::shared_ptr<const PinnedContent> content = pin_->content();
  if (content == nullptr) return CheckPinned();
  const uint32_t page_bytes = page_size_bytes();
  std::string buffer;
  while (!out.empty() && offset < info().size_bytes) {
    const uint64_t skip = offset % page_bytes;
    const uint64_t length =
        std::min<uint64_t>({out.size(), kChunkBytes - skip, info().size_bytes - offset});
    const uint64_t whole = RoundUp(skip + length, page_bytes);
    if (skip == 0 && whole == length) {  // Whole pages need no copy.
      H5M_RETURN_IF_ERROR(ReadPages(*content, offset / page_bytes, out.subspan(0, length)));
    } else {
      buffer.resize(whole);
      H5M_RETURN_IF_ERROR(ReadPages(*content, offset / page_bytes, absl::MakeSpan(buffer)));
      std::memcpy(out.data(), buffer.data() + skip, length);
    }
    offset += length;
    out.remove_prefix(length);
  }
  std::fill(out.begin(), out.end(), '\0');
  return absl::OkStatus();
}

void SnapshotImpl::StartReading(Extent extent) const {
  const std::shared_ptr<const PinnedContent> content = pin_->content();
  if (content == nullptr || extent.offset >= info().size_bytes) return;
  const uint64_t end = extent.offset + std::min(extent.length, info().size_bytes - extent.offset);
  const uint64_t begin = extent.offset / page_size_bytes() * page_size_bytes();
  content->generation->head->StartReading({begin, RoundUp(end, page_size_bytes()) - begin});
}

// All at once: a cold disk takes several times as long to read them one after the other.
void SnapshotImpl::StartReadingAll(absl::Span<const Extent> ranges) const {
  while (!ranges.empty()) {
    const absl::Span<const Extent> near = ranges.first(CountNear(ranges));
    ranges.remove_prefix(near.size());
    StartReading({near.front().offset, near.back().end() - near.front().offset});
  }
}

absl::Status SnapshotImpl::ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) const {
  StartReadingAll(ranges);
  std::unique_ptr<char[]> buffer;
  while (!ranges.empty()) {
    const absl::Span<const Extent> near = ranges.first(CountNear(ranges));
    ranges.remove_prefix(near.size());
    const absl::Span<char> part = out.first(TotalBytes(near));
    out.remove_prefix(part.size());
    if (near.size() == 1) {
      H5M_RETURN_IF_ERROR(Read(near[0].offset, part));
      continue;
    }
    if (buffer == nullptr) {
      buffer = std::make_unique_for_overwrite<char[]>(kTogetherMax + 2 * page_size_bytes());
    }
    const absl::Status read = ReadTogether(near, buffer.get(), part);
    if (absl::IsOutOfRange(read)) return read;
    // The damaged or unreadable bytes may be between the ranges.
    if (!read.ok()) H5M_RETURN_IF_ERROR(ReadOneByOne(near, part));
  }
  return absl::OkStatus();
}

absl::Status SnapshotImpl::ReadTogether(absl::Span<const Extent> ranges, char* buffer,
                                        absl::Span<char> out) const {
  const uint32_t page_bytes = page_size_bytes();
  const uint64_t begin = ranges.front().offset / page_bytes * page_bytes;
  const uint64_t end = RoundUp(ranges.back().end(), page_bytes);
  H5M_RETURN_IF_ERROR(Read(begin, absl::MakeSpan(buffer, end - begin)));
  for (const Extent& range : ranges) {
    std::memcpy(out.data(), buffer + (range.offset - begin), range.length);
    out.remove_prefix(range.length);
  }
  return absl::OkStatus();
}

absl::Status SnapshotImpl::ReadOneByOne(absl::Span<const Extent> ranges,
                                        absl::Span<char> out) const {
  for (const Extent& range : ranges) {
    H5M_RETURN_IF_ERROR(Read(range.offset, out.first(range.length)));
    out.remove_prefix(range.length);
  }
  return absl::OkStatus();
}

absl::Status SnapshotImpl::ReadPages(const PinnedContent& content, uint64_t first,
                                     absl::Span<char> out) const {
  const uint64_t begin = first * page_size_bytes();
  H5M_ASSIGN_OR_RETURN(const Places places, Find(content, {begin, out.size()}));
  // The head first: staged bytes lie over parts of its pages.
  if (!places.head.empty()) H5M_RETURN_IF_ERROR(ReadHead(content, first, places, out));
  for (const StagedPiece& staged : places.staged) {
    const Extent at = staged.piece.extent;
    H5M_RETURN_IF_ERROR(
        ReadStagedPiece(content, staged, out.subspan(at.offset - begin, at.length)));
  }
  const uint64_t end = begin + out.size();
  if (end > info().size_bytes) {
    const uint64_t from = std::max(info().size_bytes, begin);
    std::memset(out.data() + (from - begin), 0, end - from);
  }
  return absl::OkStatus();
}

absl::StatusOr<SnapshotImpl::Places> SnapshotImpl::Find(const PinnedContent& content,
                                                        Extent pages) const {
  const uint32_t page_bytes = page_size_bytes();
  Places places;
  places.is_head_only.assign(pages.length / page_bytes, true);
  if (pages.offset >= info().size_bytes) return places;
  // The whole last page: if a layer has cut it off, the head's checksum is not the cut's.
  const uint64_t end = RoundUp(info().size_bytes, page_bytes);
  std::vector<Extent> wanted{{pages.offset, std::min(pages.length, end - pages.offset)}};
  H5M_RETURN_IF_ERROR(
      file_->ReadLayers([&] { return FindStaged(content, pages, &wanted, &places); }));
  places.head.insert(places.head.end(), wanted.begin(), wanted.end());
  return places;
}

absl::Status SnapshotImpl::FindStaged(const PinnedContent& content, Extent pages,
                                      std::vector<Extent>* wanted, Places* places) const {
  const uint32_t page_bytes = page_size_bytes();
  for (auto layer = content.layers.rbegin(); layer != content.layers.rend() && !wanted->empty();
       ++layer) {
    std::vector<Piece> found;
    H5M_RETURN_IF_ERROR((*layer)->data.Resolve(wanted, &found));
    for (const Piece& piece : found) {
      const uint64_t last = (piece.extent.end() - 1 - pages.offset) / page_bytes;
      for (uint64_t i = (piece.extent.offset - pages.offset) / page_bytes; i <= last; ++i) {
        places->is_head_only[i] = false;
      }
      if (piece.source == Piece::Source::kHead) {
        places->head.push_back(piece.extent);
      } else {
        places->staged.push_back({piece, layer->get()});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotImpl::ReadHead(const PinnedContent& content, uint64_t first,
                                    const Places& places, absl::Span<char> out) const {
  const uint32_t page_bytes = page_size_bytes();
  const uint64_t count = out.size() / page_bytes;
  const Generation& generation = *content.generation;
  SumsFile* const sums_file = file_->SumsOf(generation);
  H5M_RETURN_IF_ERROR(ReadOrZeros(*generation.head, first * page_bytes, out));
  std::vector<uint32_t> sums;
  if (sums_file != nullptr) {
    H5M_ASSIGN_OR_RETURN(sums, sums_file->Read(first, count));
  }
  // Only now: if a page is not saved yet, the head was still old when it was read.
  H5M_ASSIGN_OR_RETURN(const std::vector<bool> is_pinned, ReadPinned(content, first, out));
  H5M_RETURN_IF_ERROR(CheckPinned());
  for (uint64_t i = 0; i < sums.size(); ++i) {
    if (is_pinned[i] || !places.is_head_only[i]) continue;
    const std::string_view page(out.data() + i * page_bytes, page_bytes);
    const uint32_t sum = sums_file->SumOf(page);
    if (sum != sums[i]) {
      return Damaged(first + i, absl::StrFormat("checksum 0x%08x != 0x%08x", sum, sums[i]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> SnapshotImpl::ReadPinned(const PinnedContent& content,
                                                           uint64_t first,
                                                           absl::Span<char> out) const {
  const uint32_t page_bytes = page_size_bytes();
  std::vector<bool> is_pinned(out.size() / page_bytes);
  for (const auto& pages :
       file_->PinnedPagesSince(content.first_pages, content.generation->number)) {
    for (uint64_t i = 0; i < is_pinned.size(); ++i) {
      if (is_pinned[i]) continue;
      H5M_ASSIGN_OR_RETURN(const PinnedPages::Found found,
                           pages->Read(first + i, out.subspan(i * page_bytes, page_bytes)));
      if (found == PinnedPages::Found::kLost) {
        return Damaged(first + i, "the head was changed or damaged from outside");
      }
      is_pinned[i] = found == PinnedPages::Found::kYes;
    }
  }
  return is_pinned;
}

absl::Status SnapshotImpl::ReadStagedPiece(const PinnedContent& content, const StagedPiece& staged,
                                           absl::Span<char> out) const {
  const Piece& piece = staged.piece;
  if (piece.source == Piece::Source::kZeros) {
    std::memset(out.data(), 0, out.size());
    return absl::OkStatus();
  }
  if (IsInPages(piece.location)) return staged.layer->pages->ReadAt(piece.location, out);
  return ReadStaged(content.segments, piece.location, out);
}

absl::StatusOr<std::vector<Extent>> SnapshotImpl::NextStaged(const PinnedContent& content,
                                                             uint64_t offset) const {
  std::vector<Extent> found;
  H5M_RETURN_IF_ERROR(file_->ReadLayers([&]() -> absl::Status {
    for (const LayerPtr& layer : content.layers) {
      H5M_ASSIGN_OR_RETURN(const std::optional<Extent> staged, layer->data.NextStaged(offset));
      if (staged) found.push_back(*staged);
    }
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<Extent> SnapshotImpl::NextData(uint64_t offset) const {
  const uint64_t size = info().size_bytes;
  if (offset >= size) return Extent{size, 0};
  const std::shared_ptr<const PinnedContent> content = pin_->content();
  if (content == nullptr) return CheckPinned();
  Extent next{UINT64_MAX, 0};
  auto take = [&](uint64_t from, uint64_t end) {
    from = std::max(from, offset);
    end = std::min(end, size);
    if (from < end && from < next.offset) next = {from, end - from};
  };
  H5M_ASSIGN_OR_RETURN(const Extent head, content->generation->head->NextData(offset));
  if (head.length > 0) take(head.offset, head.end());
  H5M_ASSIGN_OR_RETURN(const std::vector<Extent> staged, NextStaged(*content, offset));
  for (const Extent& extent : staged) take(extent.offset, extent.end());
  const uint32_t page_bytes = page_size_bytes();
  for (const auto& pages :
       file_->PinnedPagesSince(content->first_pages, content->generation->number)) {
    const uint64_t page = pages->NextPage(offset / page_bytes);
    if (page != UINT64_MAX) take(page * page_bytes, (page + 1) * page_bytes);
  }
  H5M_RETURN_IF_ERROR(CheckPinned());
  return next.length == 0 ? Extent{size, 0} : next;
}

}  // namespace h5mirror::store
