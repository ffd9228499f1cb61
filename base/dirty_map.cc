#include "base/dirty_map.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "base/crc32c.h"
#include "base/record_files.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

static_assert(std::endian::native == std::endian::little, "integers are copied as they are");

constexpr std::string_view kMagic = "H5MDIRTY";
constexpr uint32_t kFormat = 1;
constexpr uint64_t kNeverSmaller = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kOffsetMax = std::numeric_limits<int64_t>::max();
constexpr size_t kHeaderBytes = 136;
constexpr size_t kExtentBytes = 16;
constexpr size_t kSumBytes = 4;
constexpr size_t kBytesMax = kHeaderBytes + DirtyMap::kExtentsMax * kExtentBytes + kSumBytes;

template <typename T>
void Put(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes values off the front; the caller has checked that the bytes are there.
template <typename T>
T Take(std::string_view* bytes) {
  T value;
  std::memcpy(&value, bytes->data(), sizeof(value));
  bytes->remove_prefix(sizeof(value));
  return value;
}

std::filesystem::path MapPath(const RecordPlace& place) {
  return RecordDirectory(place.local_file) / (place.tag.empty() ? "dirty" : "dirty-" + place.tag);
}

absl::Status CheckEnvelope(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kSumBytes || bytes.size() > kBytesMax) {
    return absl::DataLossError(StrCat(bytes.size(), " bytes; a dirty map has ",
                                      kHeaderBytes + kSumBytes, " to ", kBytesMax));
  }
  if (!bytes.starts_with(kMagic)) return absl::DataLossError("not a dirty map");
  uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - kSumBytes, kSumBytes);
  if (Crc32c(bytes.substr(0, bytes.size() - kSumBytes)) != sum) {
    return absl::DataLossError("its checksum does not match");
  }
  return absl::OkStatus();
}

absl::StatusOr<DirtyMap::Claim> ClaimOf(uint32_t value) {
  if (value >= static_cast<uint32_t>(DirtyMap::Claim::kResume) &&
      value <= static_cast<uint32_t>(DirtyMap::Claim::kUpload)) {
    return static_cast<DirtyMap::Claim>(value);
  }
  return absl::DataLossError(StrCat("claim ", value, " is unknown"));
}

// `rest`: the bytes after the header, without the checksum.
absl::Status TakeExtents(uint64_t count, std::string_view rest, ExtentSet* extents) {
  if (count > DirtyMap::kExtentsMax || rest.size() != count * kExtentBytes) {
    return absl::DataLossError(StrCat("it has ", rest.size(), " bytes of extents and says ", count,
                                      " extents of ", kExtentBytes));
  }
  uint64_t end = 0;
  while (!rest.empty()) {
    const auto offset = Take<uint64_t>(&rest);
    const auto length = Take<uint64_t>(&rest);
    if (offset < end || offset > kOffsetMax || length == 0 || length > kOffsetMax - offset) {
      return absl::DataLossError(StrCat("extent ", offset, "+", length, " after ", end));
    }
    end = offset + length;
    extents->Add({offset, length});
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const DirtyMap& map) {
  const bool fits = map.base_cut >= 0 && map.cut_newest >= 0 && map.barrier_seq <= kOffsetMax &&
                    map.truncate.value_or(0) <= kOffsetMax;
  return fits ? absl::OkStatus() : absl::DataLossError("a cut, a barrier or a size out of range");
}

}  // namespace

std::string DirtyMapToBytes(const DirtyMap& map) {
  const std::vector<Extent> extents = map.extents.ToVector();
  std::string bytes;
  bytes.reserve(kHeaderBytes + extents.size() * kExtentBytes + kSumBytes);
  bytes.append(kMagic);
  Put(&bytes, kFormat);
  Put(&bytes, static_cast<uint32_t>(map.claim));
  Put(&bytes, map.id);
  Put(&bytes, map.file_id);
  Put(&bytes, map.session_id);
  Put(&bytes, map.barrier_seq);
  Put(&bytes, map.base_cut);
  Put(&bytes, map.cut_newest);
  Put(&bytes, map.stat.inode);
  Put(&bytes, map.stat.size_bytes);
  Put(&bytes, map.stat.mtime_ns);
  Put(&bytes, map.stat.ctime_ns);
  Put(&bytes, map.truncate.value_or(kNeverSmaller));
  Put(&bytes, uint64_t{extents.size()});
  for (const Extent& extent : extents) {
    Put(&bytes, extent.offset);
    Put(&bytes, extent.length);
  }
  Put(&bytes, Crc32c(bytes));
  return bytes;
}

absl::StatusOr<DirtyMap> DirtyMapFromBytes(std::string_view bytes) {
  H5M_RETURN_IF_ERROR(CheckEnvelope(bytes));
  bytes.remove_prefix(kMagic.size());
  bytes.remove_suffix(kSumBytes);
  if (const auto format = Take<uint32_t>(&bytes); format != kFormat) {
    return absl::DataLossError(
        StrCat("format ", format, " is of another release, this one reads ", kFormat));
  }
  DirtyMap map;
  H5M_ASSIGN_OR_RETURN(map.claim, ClaimOf(Take<uint32_t>(&bytes)));
  map.id = Take<Bytes16>(&bytes);
  map.file_id = Take<Bytes16>(&bytes);
  map.session_id = Take<Bytes16>(&bytes);
  map.barrier_seq = Take<uint64_t>(&bytes);
  map.base_cut = Take<int64_t>(&bytes);
  map.cut_newest = Take<int64_t>(&bytes);
  map.stat.inode = Take<uint64_t>(&bytes);
  map.stat.size_bytes = Take<int64_t>(&bytes);
  map.stat.mtime_ns = Take<int64_t>(&bytes);
  map.stat.ctime_ns = Take<int64_t>(&bytes);
  if (const auto size = Take<uint64_t>(&bytes); size != kNeverSmaller) map.truncate = size;
  H5M_RETURN_IF_ERROR(CheckNumbers(map));
  const auto count = Take<uint64_t>(&bytes);
  H5M_RETURN_IF_ERROR(TakeExtents(count, bytes, &map.extents));
  return map;
}

std::optional<DirtyMap> FindDirtyMap(const RecordPlace& place, const LocalRecord& record,
                                     const FileStat& now) {
  if (record.stat != now) return std::nullopt;
  std::optional<DirtyMap> map = FindAnyDirtyMap(place, record);
  if (map && map->stat != now) return std::nullopt;
  return map;
}

std::optional<DirtyMap> FindAnyDirtyMap(const RecordPlace& place, const LocalRecord& record) {
  if (record.state != RecordState::kBehind || record.dirty_map_id == Bytes16{}) return std::nullopt;
  const absl::StatusOr<std::string> bytes = ReadRecordFile(MapPath(place), kBytesMax);
  if (!bytes.ok()) return std::nullopt;
  absl::StatusOr<DirtyMap> map = DirtyMapFromBytes(*bytes);
  if (!map.ok() || map->id != record.dirty_map_id || map->file_id != record.file_id) {
    return std::nullopt;
  }
  return *std::move(map);
}

absl::Status WriteDirtyMap(const RecordPlace& place, const DirtyMap& map) {
  return ReplaceRecordFile(MapPath(place), DirtyMapToBytes(map));
}

void RemoveDirtyMap(const RecordPlace& place) {
  const std::filesystem::path path = MapPath(place);
  const OwnedFd directory = OpenDirectoryOf(path);
  if (directory.valid()) unlinkat(directory.get(), path.filename().c_str(), 0);
}

}  // namespace h5mirror
