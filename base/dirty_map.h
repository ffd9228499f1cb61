// What a server lacks, or may yet lose, of a local file that was closed: `X.h5.h5m/dirty` beside
// `X.h5`, or `dirty-TAG` for each of several mirrors. The session module writes it and takes it up,
// the admin CLI reads it. Format: docs/reference/format.md, "The client's dirty map". The order in
// which map and record change: docs/design/035-client-record.md.
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
  // Covering more than was written only sends more, so the size can be bounded.
  static constexpr size_t kExtentsMax = 32768;

  // How the next session claims the file; as the wire's intents.
  enum class Claim : uint32_t { kResume = 1, kContinue = 2, kCreate = 3, kUpload = 4 };

  Bytes16 id{};       // the record that names it holds the same
  Bytes16 file_id{};  // zeros: not known yet
  Claim claim = Claim::kUpload;
  // kResume: whose changes these are. kContinue: the session of the barrier below.
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
// kDataLoss: not a whole map of this format; the message says what does not fit.
absl::StatusOr<DirtyMap> DirtyMapFromBytes(std::string_view bytes);

// The map at `place` that `record` names, if it is of the file as it is now (`now`); else
// nothing. A map that cannot be read is none.
std::optional<DirtyMap> FindDirtyMap(const RecordPlace& place, const LocalRecord& record,
                                     const FileStat& now);

// The same of the file as it was when the map was written, whatever became of it since.
std::optional<DirtyMap> FindAnyDirtyMap(const RecordPlace& place, const LocalRecord& record);

// Writes the map beside and renames it into place; the record that names it is written after it.
// Not synced. kNotFound: the record's directory is gone, as the user has removed the file.
absl::Status WriteDirtyMap(const RecordPlace& place, const DirtyMap& map);

// After the record that does not name it any more was written.
void RemoveDirtyMap(const RecordPlace& place);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_DIRTY_MAP_H_
