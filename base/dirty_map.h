// The dirty map of a closed local file: the bytes that a server lacks, or may yet lose. It is
// `X.h5.h5m/dirty` beside `X.h5`, or `dirty-TAG` for each of several mirrors. The session module
// writes it, and continues from it at the next open; the admin CLI reads it. Format:
// docs/reference/format.md, "The client's dirty map". The order in which map and record change:
// docs/design/035-client-record.md.
#ifndef H5MIRROR_BASE_DIRTY_MAP_H_
#define H5MIRROR_BASE_DIRTY_MAP_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "base/hex.h"
#include "base/local_record.h"

namespace h5mirror {

struct DirtyMap {
  // The bound of the map's size. At the bound the map covers bytes that were not written, and the
  // client sends these in vain.
  static constexpr size_t kExtentsMax = 32768;

  // The claim of the next session; the same as the wire's intents.
  enum class Claim : uint32_t { kResume = 1, kContinue = 2, kCreate = 3, kUpload = 4 };

  Bytes16 id{};       // equals the id in the record that names this map
  Bytes16 file_id{};  // zeros: not known yet
  Claim claim = Claim::kUpload;
  // kResume: the session of the changes. kContinue: the session of the barrier below.
  Bytes16 session_id{};
  uint64_t barrier_seq = 0;  // kContinue: the base is this barrier's cut; 0: base_cut
  int64_t base_cut = 0;      // 0: the changes are the whole file
  // kResume: the changes also bring any cut from base_cut to this one to the file's state.
  int64_t cut_newest = 0;
  FileStat stat;  // the local file at the close that wrote the map
  // The smallest size that the file had since the base.
  std::optional<uint64_t> truncate;
  ExtentSet extents{kExtentsMax};
};

std::string DirtyMapToBytes(const DirtyMap& map);
// kDataLoss: no whole map of this format; the message names the field.
absl::StatusOr<DirtyMap> DirtyMapFromBytes(std::string_view bytes);

// The map at `place` that `record` names. `now` is the file's stat. Unset: there is no map, it
// cannot be read, or its stat is not `now`.
std::optional<DirtyMap> FindDirtyMap(const RecordPlace& place, const LocalRecord& record,
                                     const FileStat& now);

// As FindDirtyMap(), but does not compare the file's stat.
std::optional<DirtyMap> FindAnyDirtyMap(const RecordPlace& place, const LocalRecord& record);

// Writes the map beside its place, then renames it. Call this before writing the record that names
// the map. Not synced. kNotFound: the record's directory is gone, because the user has removed the
// file.
absl::Status WriteDirtyMap(const RecordPlace& place, const DirtyMap& map);

// Call this after writing a record that does not name the map.
void RemoveDirtyMap(const RecordPlace& place);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_DIRTY_MAP_H_
