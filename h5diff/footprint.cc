#include "h5diff/footprint.h"

#include <algorithm>
#include <string>

#include "base/status_macros.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
// Where more of it lies in changed ranges, the objects are compared at once.
constexpr uint64_t kReadBytesMax = 16 << 20;
constexpr size_t kVersionAt = 8;  // behind the signature

struct Range {
  size_t begin, end;
};

// The fields of a superblock that lead to objects: not the flags of a writer, the end of the file
// and the checksum, which every writer changes. HDF5 File Format Specification, II.A.
std::vector<Range> ContentOf(uint8_t version) {
  switch (version) {
    case 0:
      return {{8, 20}, {24, 40}, {48, 96}};
    case 1:
      return {{8, 20}, {24, 44}, {52, 100}};
    default:
      return {{8, 11}, {12, 28}, {36, 44}};
  }
}

}  // namespace

void Footprint::OnRead(hdf5::ReadKind kind, uint64_t offset, absl::Span<const char> bytes) {
  if (bytes.empty()) return;
  if (kind != hdf5::ReadKind::kSuperblock) {
    Add({offset, bytes.size()});
    return;
  }
  // HDF5 looks for the signature first, which is not all of it.
  if (bytes.size() <= kVersionAt) return;
  for (const Range& range : ContentOf(static_cast<uint8_t>(bytes[kVersionAt]))) {
    const size_t end = std::min(range.end, bytes.size());
    if (range.begin < end) Add({offset + range.begin, end - range.begin});
  }
}

bool Footprint::Touches(const ExtentSet& changed) const {
  if (unbounded_) return !changed.empty();
  for (const Extent& range : changed.ToVector()) {
    if (bytes_.Intersects(range)) return true;
  }
  return false;
}

std::vector<Extent> Footprint::PartsIn(const ExtentSet& changed) const {
  std::vector<Extent> parts;
  for (const Extent& range : changed.ToVector()) {
    const std::vector<Extent> found = bytes_.Intersection(range);
    parts.insert(parts.end(), found.begin(), found.end());
  }
  return parts;
}

absl::StatusOr<bool> Footprint::Differs(VersionPages& pages) const {
  if (unbounded_) return true;
  const std::vector<Extent> parts = PartsIn(pages.changed());
  uint64_t total = 0;
  for (const Extent& part : parts) total += part.length;
  if (total > kReadBytesMax) return true;
  std::string one, other;
  for (const Extent& part : parts) {
    for (uint64_t at = part.offset; at < part.end(); at += kPieceBytes) {
      const size_t length = std::min(kPieceBytes, part.end() - at);
      one.resize(length);
      other.resize(length);
      H5M_RETURN_IF_ERROR(pages.Read(Side::kOld, at, absl::MakeSpan(one)));
      H5M_RETURN_IF_ERROR(pages.Read(Side::kNew, at, absl::MakeSpan(other)));
      if (one != other) return true;
    }
  }
  return false;
}

}  // namespace h5mirror::tools
