// The cuts of one file that readers pin, and their cost on the disk:
// docs/design/003-cuts-and-pins.md.
//
//   Pin() or Hold()          Release() by the last holder
//   -------------> pinned -----------------------------------> Drop(): expired, forgotten
//                     |      too much disk, a failed disk,       ^
//                     +------ Snapshot::Expire() ----------------+
//
// A holder of an expired pin finds no content in it, and says so to its reader.
#ifndef H5MIRROR_ONION_STORE_FILE_PINS_PINS_H_
#define H5MIRROR_ONION_STORE_FILE_PINS_PINS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "onion_store/file/pins/pinned_cut.h"
#include "onion_store/file/pins/pinned_pages_list.h"

namespace h5mirror::store {

// Where to save the old pages that a cut changes, and how many of them a reader may want. Null:
// nowhere, because no older cut of the generation is pinned.
struct PagesToPin {
  std::shared_ptr<PinnedPages> pages;
  uint64_t limit_pages = 0;
};

// Not thread-safe: the file's lock guards it. The objects that it returns have locks of their own.
class Pins {
 public:
  // `pages` must outlive this.
  explicit Pins(PinnedPagesList& pages) : pages_(pages) {}

  // Adds a holder of `cut`; null: it is not pinned, see Pin().
  std::shared_ptr<PinnedCut> Hold(CutNumber cut);
  // Pins the newest cut, and makes the caller its first holder. `layers` (oldest first) are the
  // cuts up to it that the generation's head does not hold.
  std::shared_ptr<PinnedCut> Pin(const CutInfo& info, std::shared_ptr<Generation> generation,
                                 std::vector<std::shared_ptr<CutLayer>> layers,
                                 uint32_t page_size_bytes);
  // Removes a holder. True: it was the last one, and the caller must Drop() the cut.
  bool Release(const std::shared_ptr<PinnedCut>& pin);
  // Forgets the pin of `cut`, which must exist, and the pinned pages that only it needed. The
  // caller destroys the result when it holds no lock.
  std::shared_ptr<const PinnedContent> Drop(CutNumber cut);

  bool Has(CutNumber cut) const { return pins_.contains(cut); }
  // Whether `pin` is still the pin of its cut: it has not expired, and the cut was not pinned anew.
  bool Has(const std::shared_ptr<PinnedCut>& pin) const;
  std::optional<CutNumber> oldest() const;

  // The pages to save for the apply of the cut `next` of `generation`. Called before it changes the
  // head.
  PagesToPin PagesBefore(CutNumber next, int64_t generation, uint32_t page_size_bytes) const;
  // Bytes of the disk that only pinned cuts hold. `staged`: the segments that the stage needs.
  uint64_t DiskBytes(const StageSegments& staged) const;

 private:
  PinnedPagesList& pages_;
  std::map<CutNumber, std::shared_ptr<PinnedCut>> pins_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_PINS_PINS_H_
