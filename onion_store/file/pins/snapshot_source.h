// The part of a file that its snapshots use.
#ifndef H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_SOURCE_H_
#define H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "onion_store/file/pins/pinned_cut.h"
#include "onion_store/pages/pinned_pages.h"

namespace h5mirror::store {

// Thread-safe. None of these waits for a sync; those of pins and sums take the file's state lock.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;

  virtual const std::string& name() const = 0;
  virtual uint32_t page_size_bytes() const = 0;
  // OK, or why the file can do nothing more: it must be opened again.
  virtual absl::Status dead() = 0;

  // A holder of `pin` is gone.
  virtual void Unpin(const std::shared_ptr<PinnedCut>& pin) = 0;
  // Takes the cut from all its holders.
  virtual void ExpirePin(const std::shared_ptr<PinnedCut>& pin) = 0;

  // Calls `read` while no layer takes in the one over it: layers of a pinned cut may still grow.
  virtual absl::Status ReadLayers(absl::FunctionRef<absl::Status()> read) = 0;
  // The checksums of a generation, which outlive it; null before its first durable cut.
  virtual SumsFile* SumsOf(const Generation& generation) = 0;
  // The pinned pages of `generation` from number `first` on, oldest first.
  virtual std::vector<std::shared_ptr<PinnedPages>> PinnedPagesSince(uint64_t first,
                                                                     int64_t generation) = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_PINS_SNAPSHOT_SOURCE_H_
