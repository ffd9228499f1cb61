#include "onion_store/metadata_map.h"

#include <algorithm>

#include "base/crc32c.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kMagic = "H5MMETA1";
constexpr size_t kHeaderBytes = 16;  // magic, crc32c of the runs, their number
constexpr size_t kRunBytes = 16;
constexpr uint64_t kOffsetMax = uint64_t{1} << 62;

Extent WholePages(Extent extent) {
  const uint64_t begin = RoundDown(extent.offset, MetadataMap::kPageBytes);
  return {begin, RoundUp(extent.end(), MetadataMap::kPageBytes) - begin};
}

bool IsInBounds(Extent extent) {
  return extent.offset < kOffsetMax && extent.length <= kOffsetMax - extent.offset;
}

}  // namespace

void MetadataMap::Add(absl::Span<const Extent> extents) {
  absl::MutexLock lock(&mutex_);
  const uint64_t before = pages_.byte_count();
  for (const Extent& extent : extents) {
    if (extent.length > 0 && IsInBounds(extent)) pages_.Add(WholePages(extent));
  }
  changed_ = changed_ || pages_.byte_count() != before;
}

void MetadataMap::Clear() {
  absl::MutexLock lock(&mutex_);
  changed_ = changed_ || !pages_.empty();
  pages_.Clear();
}

std::optional<Extent> MetadataMap::NextAfter(uint64_t offset) const {
  absl::MutexLock lock(&mutex_);
  return pages_.NextAfter(offset);
}

std::vector<Extent> MetadataMap::Within(Extent extent) const {
  absl::MutexLock lock(&mutex_);
  return pages_.Intersection(extent);
}

uint64_t MetadataMap::byte_count() const {
  absl::MutexLock lock(&mutex_);
  return pages_.byte_count();
}

std::optional<std::string> MetadataMap::TakeChanged() {
  std::string runs;
  {
    absl::MutexLock lock(&mutex_);
    if (!changed_) return std::nullopt;
    changed_ = false;
    for (const Extent& run : pages_.ToVector()) {
      PutInt(&runs, run.offset);
      PutInt(&runs, run.length);
    }
  }
  std::string bytes(kMagic);
  PutInt(&bytes, Crc32c(runs));
  PutInt(&bytes, static_cast<uint32_t>(runs.size() / kRunBytes));
  return bytes + runs;
}

void MetadataMap::Load(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) return;
  const auto crc32c = GetInt<uint32_t>(bytes.data() + kMagic.size());
  const auto count = GetInt<uint32_t>(bytes.data() + kMagic.size() + sizeof(crc32c));
  const std::string_view runs = bytes.substr(kHeaderBytes);
  if (count > kRunsMax || runs.size() != count * kRunBytes || Crc32c(runs) != crc32c) return;
  absl::MutexLock lock(&mutex_);
  for (size_t at = 0; at < runs.size(); at += kRunBytes) {
    const Extent run{GetInt<uint64_t>(runs.data() + at),
                     GetInt<uint64_t>(runs.data() + at + sizeof(uint64_t))};
    if (run.length > 0 && IsInBounds(run)) pages_.Add(WholePages(run));
  }
}

}  // namespace h5mirror::store
