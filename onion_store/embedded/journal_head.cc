#include "onion_store/embedded/journal_head.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock_image.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

// The bytes that a disk writes whole or not at all.
constexpr size_t kSectorBytes = 512;
constexpr uint64_t kPieceBytes = 1 << 20;

// True: an interrupted write of `to` over `from` may have left `sector`. The shorter of the two is
// extended with zeros.
bool MayBeLeft(std::string_view sector, std::string from, std::string to) {
  from.resize(sector.size(), '\0');
  to.resize(sector.size(), '\0');
  const auto differs = std::mismatch(sector.begin(), sector.end(), to.begin()).first;
  const auto written = static_cast<size_t>(differs - sector.begin());
  return sector.substr(written) == std::string_view(from).substr(written);
}

absl::StatusOr<bool> IsZeroBetween(EnvFile& head, uint64_t at, uint64_t end) {
  std::string bytes;
  while (at < end) {
    H5M_ASSIGN_OR_RETURN(const Extent data, head.NextData(at));
    if (data.length == 0 || data.offset >= end) return true;
    at = std::max(at, data.offset);
    bytes.resize(std::min(kPieceBytes, std::min(data.end(), end) - at));
    H5M_RETURN_IF_ERROR(ReadOrZeros(head, at, absl::MakeSpan(bytes)));
    if (!IsZero(bytes)) return false;
    at += bytes.size();
  }
  return true;
}

// Whether the head, which has `size` bytes, holds only zeros where it is longer than the shorter
// cut and no page has the bytes: both cuts have zeros there.
absl::StatusOr<bool> IsZeroBesidePages(EnvFile& head, const JournalCut& cut, uint64_t size) {
  uint64_t at = std::min(cut.size_before, cut.size_after);
  for (const JournalPage& page : cut.pages) {
    H5M_ASSIGN_OR_RETURN(const bool is_zero, IsZeroBetween(head, at, std::min(page.offset, size)));
    if (!is_zero) return false;
    at = std::max(at, page.offset + std::max(page.before.size(), page.after.size()));
  }
  return IsZeroBetween(head, at, size);
}

// Whether a program has the head open for writing, or died so. No cut has such a mark in it.
absl::StatusOr<bool> IsMarkedAsWritten(EnvFile& head, uint64_t size) {
  // The specification puts the superblock at 0, 512, and every doubling of that.
  for (uint64_t at = 0; at < size; at = at == 0 ? 512 : at * 2) {
    std::string bytes(kSuperblockImageBytes, '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(head, at, absl::MakeSpan(bytes)));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kYes)
      return WriterFlagIn(bytes) == HasWriterFlag::kYes;
  }
  return false;
}

// Whether each sector of a page is of one of the two cuts, or was left between them by an
// interrupted write.
bool SectorsAreOfCut(std::string_view bytes, const JournalPage& page) {
  for (size_t at = 0; at < bytes.size(); at += kSectorBytes) {
    const std::string_view sector = bytes.substr(at, kSectorBytes);
    const auto part = [at](const std::string& image) {
      return image.substr(std::min(at, image.size()), kSectorBytes);
    };
    const std::string before = part(page.before), after = part(page.after);
    if (!MayBeLeft(sector, before, after) && !MayBeLeft(sector, after, before)) return false;
  }
  return true;
}

// True: `bytes` begins with `image`, and has only zeros after it.
bool Holds(std::string_view bytes, std::string_view image) {
  return bytes.substr(0, image.size()) == image && IsZero(bytes.substr(image.size()));
}

absl::StatusOr<HeadIs> ComparePages(EnvFile& head, uint64_t size, const JournalCut& cut) {
  bool is_before = size == cut.size_before;
  bool is_in_order = true;
  bool has_old = false;  // an earlier page does not have its new bytes yet
  for (const JournalPage& page : cut.pages) {
    std::string bytes(std::max(page.before.size(), page.after.size()), '\0');
    H5M_RETURN_IF_ERROR(ReadOrZeros(head, page.offset, absl::MakeSpan(bytes)));
    if (!SectorsAreOfCut(bytes, page)) return HeadIs::kChanged;
    const bool is_old = Holds(bytes, page.before);
    is_before = is_before && is_old;
    is_in_order = is_in_order && (has_old ? is_old : MayBeLeft(bytes, page.before, page.after));
    has_old = has_old || !Holds(bytes, page.after);
  }
  if (is_before) return HeadIs::kBefore;
  // The head becomes shorter only at the very end.
  if (has_old && size < cut.size_before) is_in_order = false;
  return is_in_order ? HeadIs::kOnItsWay : HeadIs::kMixed;
}

}  // namespace

absl::StatusOr<HeadIs> CompareHead(EnvFile& head, uint64_t size, const JournalCut& cut) {
  // On its way the head is never longer than the longer cut, nor shorter than the shorter one. Else
  // another program has changed it, and its bytes must not be cut off.
  if (size < std::min(cut.size_before, cut.size_after)) return HeadIs::kChanged;
  if (size > std::max(cut.size_before, cut.size_after)) return HeadIs::kChanged;
  H5M_ASSIGN_OR_RETURN(const bool is_marked, IsMarkedAsWritten(head, size));
  if (is_marked) return HeadIs::kChanged;
  H5M_ASSIGN_OR_RETURN(const bool rest_fits, IsZeroBesidePages(head, cut, size));
  return rest_fits ? ComparePages(head, size, cut) : HeadIs::kChanged;
}

}  // namespace h5mirror::store
