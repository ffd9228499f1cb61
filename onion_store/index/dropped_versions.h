// Tells readers which versions a prune has dropped meanwhile: docs/design/032-pruning.md.
#ifndef H5MIRROR_ONION_STORE_INDEX_DROPPED_VERSIONS_H_
#define H5MIRROR_ONION_STORE_INDEX_DROPPED_VERSIONS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// An epoch that a prune advances each time it removes something: after it has dropped versions, and
// before it removes a segment. If the epoch stayed the same during a lookup in the index, the rows
// that were found are valid.
//
//   epoch = epoch()                      Advance()
//   look up the rows of a version   ||   move rows, remove their segment
//   CheckNotDropped(index, version, epoch)
//
// Thread-safe.
class DroppedVersions {
 public:
  // `name`: of the file, for messages.
  explicit DroppedVersions(std::string name) : name_(std::move(name)) {}

  uint64_t epoch() const { return epoch_.load(); }
  void Advance() { ++epoch_; }

  // Checks that `version`, opened at `epoch`, still exists. Called after a lookup of rows.
  //
  // Errors: kOutOfRange  it was dropped.
  //         those of `index`.
  absl::Status CheckNotDropped(VersionIndex& index, VersionNumber version, uint64_t epoch) const;
  // The error of a version that was dropped.
  absl::Status Pruned(VersionNumber version) const;

 private:
  const std::string name_;
  std::atomic<uint64_t> epoch_{0};
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_INDEX_DROPPED_VERSIONS_H_
