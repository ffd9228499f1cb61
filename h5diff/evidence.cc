#include "h5diff/evidence.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "hdf5/format.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kCompareBytes = 64 << 10;
// More pieces than this are as good as unknown.
constexpr size_t kPiecesMax = 1 << 20;
constexpr uint64_t kHeapBytesMax = 16 << 20;
// The parts of one object that are searched for references.
constexpr uint64_t kSearchBytesMax = 64 << 20;
constexpr uint64_t kFar = uint64_t{1} << 62;

uint64_t IntAt(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

Evidence::Evidence(VersionPages& pages)
    : pages_(pages), observers_{Observer(*this, Side::kOld), Observer(*this, Side::kNew)} {}

absl::Status Evidence::Load(uint64_t pages_max) {
  if (pages_.changed().byte_count() > pages_max * pages_.page_size_bytes()) {
    return absl::OkStatus();
  }
  for (const Extent& range : pages_.changed().ToVector()) {
    for (uint64_t at = range.offset; at < range.end(); at += kCompareBytes) {
      H5M_RETURN_IF_ERROR(Compare({at, std::min(kCompareBytes, range.end() - at)}));
      if (left_.size() <= kPiecesMax) continue;
      left_.clear();
      return absl::OkStatus();
    }
  }
  known_ = true;
  return absl::OkStatus();
}

absl::Status Evidence::LoadMetadata(const ExtentSet& metadata) {
  for (const Extent& range : pages_.changed().ToVector()) {
    uint64_t at = range.offset;
    const auto all_over = [&](uint64_t end) {
      if (at < end) left_.emplace_hint(left_.end(), at, end);
    };
    for (const Extent& part : metadata.Intersection(range)) {
      all_over(part.offset);
      H5M_RETURN_IF_ERROR(Compare(part));
      at = part.end();
      if (left_.size() <= kPiecesMax) continue;
      left_.clear();
      return absl::OkStatus();
    }
    all_over(range.end());
  }
  known_ = true;
  return absl::OkStatus();
}

absl::Status Evidence::Compare(Extent range) {
  std::string one(range.length, '\0'), other(range.length, '\0');
  H5M_RETURN_IF_ERROR(pages_.Read(Side::kOld, range.offset, absl::MakeSpan(one)));
  H5M_RETURN_IF_ERROR(pages_.Read(Side::kNew, range.offset, absl::MakeSpan(other)));
  for (size_t i = 0; i < one.size();) {
    if (one[i] == other[i]) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < one.size() && one[end] != other[end]) ++end;
    left_.emplace_hint(left_.end(), range.offset + i, range.offset + end);
    i = end;
  }
  return absl::OkStatus();
}

void Evidence::Observer::OnRead(hdf5::ReadKind kind, uint64_t offset,
                                absl::Span<const char> bytes) {
  if (!evidence_.known_ || !evidence_.open_) return;
  const std::string_view text(bytes.data(), bytes.size());
  if (kind == hdf5::ReadKind::kRawData && hdf5::IsGlobalHeap(text)) {
    evidence_.heaps_seen_.insert(offset);
    return;
  }
  const uint64_t owned = hdf5::OwnedBytes(kind, offset - evidence_.base_offset_, text);
  if (owned > 0) evidence_.seen_.push_back({side_, {offset, owned}});
}

void Evidence::Forget() {
  known_ = false;
  left_.clear();
}

void Evidence::Begin() {
  open_ = true;
  seen_.clear();
  heaps_seen_.clear();
}

void Evidence::Add(Side side, Extent extent, Search search) {
  if (known_ && open_) seen_.push_back({side, extent, search});
}

absl::Status Evidence::End() {
  open_ = false;
  if (!known_) return absl::OkStatus();
  for (const Seen& seen : seen_) Explain(seen.extent);
  for (const uint64_t offset : heaps_seen_) H5M_RETURN_IF_ERROR(MeetHeap(offset));
  if (!heaps_.empty()) H5M_RETURN_IF_ERROR(FindOwners());
  CloseHeaps();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Evidence::ReadHeap(Side side, uint64_t offset) {
  std::string bytes(16, '\0');
  if (offset >= pages_.size_bytes(side)) return std::string();
  H5M_RETURN_IF_ERROR(pages_.Read(side, offset, absl::MakeSpan(bytes)));
  if (!hdf5::IsGlobalHeap(bytes)) return std::string();
  bytes.resize(std::min(IntAt(bytes, 8, 8), kHeapBytesMax));
  H5M_RETURN_IF_ERROR(pages_.Read(side, offset, absl::MakeSpan(bytes)));
  return bytes;
}

absl::Status Evidence::MeetHeap(uint64_t offset) {
  if (heaps_.contains(offset) || heaps_done_.contains(offset)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const std::string old_bytes, ReadHeap(Side::kOld, offset));
  H5M_ASSIGN_OR_RETURN(const std::string new_bytes, ReadHeap(Side::kNew, offset));
  const auto old_values = hdf5::GlobalHeapValues(old_bytes);
  const auto new_values = hdf5::GlobalHeapValues(new_bytes);
  Heap heap;
  for (const std::string& bytes : {old_bytes, new_bytes}) {
    if (!bytes.empty()) heap.extents.push_back({offset, bytes.size()});
  }
  for (const auto& [index, value] : old_values) {
    const auto found = new_values.find(index);
    if (found == new_values.end() || found->second != value) heap.open.insert(index);
  }
  for (const auto& [index, value] : new_values) {
    if (!old_values.contains(index)) heap.open.insert(index);
  }
  heaps_[offset] = std::move(heap);
  return absl::OkStatus();
}

// A reference is the address of the collection and the index of the value.
absl::Status Evidence::FindOwners() {
  uint64_t total = 0;
  for (const Seen& seen : seen_) {
    if (seen.search == Search::kYes) total += seen.extent.length;
  }
  if (total > kSearchBytesMax) return absl::OkStatus();
  for (const Seen& seen : seen_) {
    if (seen.search == Search::kNo) continue;
    std::string bytes(seen.extent.length, '\0');
    H5M_RETURN_IF_ERROR(pages_.Read(seen.side, seen.extent.offset, absl::MakeSpan(bytes)));
    for (auto& [offset, heap] : heaps_) {
      const uint64_t address = offset - base_offset_;
      char pattern[8];
      for (int i = 0; i < 8; ++i) pattern[i] = static_cast<char>(address >> (8 * i));
      const std::string_view wanted(pattern, sizeof(pattern));
      for (size_t at = bytes.find(wanted); at != std::string::npos && at + 12 <= bytes.size();
           at = bytes.find(wanted, at + 1)) {
        heap.open.erase(static_cast<uint32_t>(IntAt(bytes, at + 8, 4)));
      }
    }
  }
  return absl::OkStatus();
}

void Evidence::CloseHeaps() {
  for (auto at = heaps_.begin(); at != heaps_.end();) {
    if (!at->second.open.empty()) {
      ++at;
      continue;
    }
    for (const Extent& extent : at->second.extents) Explain(extent);
    heaps_done_.insert(at->first);
    at = heaps_.erase(at);
  }
}

void Evidence::Explain(Extent extent) {
  auto at = left_.upper_bound(extent.offset);
  if (at != left_.begin() && std::prev(at)->second > extent.offset) --at;
  while (at != left_.end() && at->first < extent.end()) {
    const uint64_t begin = at->first, end = at->second;
    at = left_.erase(at);
    if (begin < extent.offset) left_[begin] = extent.offset;
    if (end > extent.end()) {
      left_[extent.end()] = end;
      break;
    }
  }
}

bool Evidence::Touches(Extent extent) const {
  auto at = left_.upper_bound(extent.offset);
  if (at != left_.begin() && std::prev(at)->second > extent.offset) return true;
  return at != left_.end() && at->first < extent.end();
}

uint64_t Evidence::Distance(uint64_t offset) const {
  const auto next = left_.upper_bound(offset);
  uint64_t distance = next == left_.end() ? kFar : next->first - offset;
  if (next != left_.begin()) {
    const uint64_t end = std::prev(next)->second;
    if (end > offset) return 0;
    distance = std::min(distance, (offset - end + 512) * 8);
  }
  return distance;
}

}  // namespace h5mirror::tools
