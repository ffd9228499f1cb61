// The sizes of a file and its history on the disk, by its directory. Only files with holes are
// opened.
#ifndef H5MIRROR_ONION_STORE_HISTORY_SIZES_H_
#define H5MIRROR_ONION_STORE_HISTORY_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace h5mirror::store {

// In bytes on the disk: holes are left out.
struct HistorySizes {
  uint64_t head = 0;  // with WithHead::kYes
  uint64_t stage = 0;
  uint64_t pages = 0;  // pre-images
  uint64_t index = 0;
  uint64_t log = 0;   // of the index: some mebibytes at most, however long the history is
  uint64_t sums = 0;  // of the newest generation
  uint64_t old = 0;   // heads and sums of older generations
  uint64_t next = 0;  // with WithHead::kYes: the head of a generation that has no cut yet

  // The part for older versions: dropping them can free it.
  uint64_t history() const { return pages + index + old; }
};

// kNotFound: `name` has no history. kNo saves a system call for each hole of the head.
enum class WithHead : uint8_t { kNo, kYes };
absl::StatusOr<HistorySizes> MeasureHistory(EnvTree& tree, std::string_view name,
                                            WithHead with_head);

// About how many bytes the file `name`, a head or sums, takes without its holes. 0: there is none.
uint64_t DataBytes(EnvTree& tree, const std::string& name);

// True: rows name so little of a segment that it pays to copy its live records elsewhere.
bool IsDeadEnough(uint64_t size_bytes, uint64_t live_bytes);

// The free bytes of the disk. kFreeBytesUnknown: they are not counted (kUnavailable), as in CephFS
// without a ceph-mgr. Then only a copy can find out.
inline constexpr uint64_t kFreeBytesUnknown = INT64_MAX;
absl::StatusOr<uint64_t> FreeBytesOf(EnvTree& tree);

// The part of `free_bytes` that a prune may use for copies of live records. The rest is for writers
// and for the index.
inline uint64_t RoomToCopy(uint64_t free_bytes) { return free_bytes - free_bytes / 4; }

// The generation whose head or sums `entry` of a history is; nullopt: it is neither.
std::optional<int64_t> GenerationOfEntry(std::string_view entry);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_HISTORY_SIZES_H_
