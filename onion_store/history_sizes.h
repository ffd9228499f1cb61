// What a file and its history take on the disk, as its directory says: nothing is opened for it but
// files with holes.
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
  uint64_t head = 0;  // where it was asked for
  uint64_t stage = 0;
  uint64_t pages = 0;  // pre-images
  uint64_t index = 0;
  uint64_t log = 0;   // of the index: some mebibytes at most, however long the history is
  uint64_t sums = 0;  // of the newest generation
  uint64_t old = 0;   // heads and sums of older generations

  // What is there for the sake of older versions, and dropping them can give back.
  uint64_t history() const { return pages + index + old; }
};

// kNotFound: `name` has no history. The head is only looked at where it is asked for: a file with
// many holes takes a call for each.
enum class WithHead : uint8_t { kNo, kYes };
absl::StatusOr<HistorySizes> MeasureHistory(EnvTree& tree, std::string_view name,
                                            WithHead with_head);

// What the head or the sums of an older generation take, about: holes left out. 0 where there is
// no such file.
uint64_t DataBytes(EnvTree& tree, const std::string& name);

// Whether a segment has so much that no row names that its live records are worth copying.
bool IsDeadEnough(uint64_t size_bytes, uint64_t live_bytes);

// What of `free_bytes` a prune may take to copy the live records of a segment: the rest is for
// those who write meanwhile, and for the index.
inline uint64_t RoomToCopy(uint64_t free_bytes) { return free_bytes - free_bytes / 4; }

// The generation that `entry` of a history is the head or the sums of; nullopt: it is neither.
std::optional<int64_t> GenerationOfEntry(std::string_view entry);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_HISTORY_SIZES_H_
