// The bytes that each cut of a file has changed, for followers.
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_CHANGE_LOG_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_CHANGE_LOG_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "base/extent_set.h"
#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// In memory only, and bounded: beyond the bound the two oldest cuts become one, so a follower far
// behind is told of more ranges than have changed. A cut counts as its extents plus one. Not
// thread-safe: the file's state lock guards it.
//
//   stopped -- Follow() or Expect() --> started -- AddLayer() with each cut
//      ^-- nobody followed within kReturnMax of Expect() --|
class ChangeLog {
 public:
  static constexpr size_t kExtentsMax = 1 << 18;
  // The bound while followers are only expected: some 100 KiB of memory, or 400 KiB if each cut has
  // one range.
  static constexpr size_t kExtentsUnasked = 1 << 12;
  // Followers of the last server come back within seconds, but the writer may come before them.
  static constexpr absl::Duration kReturnMax = absl::Minutes(1);

  explicit ChangeLog(size_t extents_max = kExtentsMax) : extents_max_(extents_max) {}

  bool started() const { return started_; }
  // A follower asks. From now on notes all cuts after `newest`, the newest cut, unless it does so
  // already.
  void Follow(CutNumber newest);
  // Followers may come back: notes cuts for a while, in less memory.
  void Expect(CutNumber newest, absl::Time now);
  // Notes the changes of `layer`, which becomes `cut`. `end_bytes`: the larger of the sizes of this
  // cut and the one before. Asks `clock` only if the time matters.
  void AddLayer(CutNumber cut, const CutLayer& layer, uint64_t end_bytes, Env& clock);

  // Begins at the cut `newest`. Every later cut must be added; later cuts have larger numbers.
  void Start(CutNumber newest);
  // Forgets all cuts, and answers no question until the next Start().
  void Stop();
  // The bound. Takes effect with the next Add().
  void SetExtentsMax(size_t extents_max) { extents_max_ = extents_max; }
  void Add(CutNumber cut, ExtentSet changed);
  // Adds a cut that may differ from those before in any byte.
  void AddWhole(CutNumber cut) { Start(cut); }

  // The bytes, in order, that the cuts after `from` and up to `to` have changed, and maybe more.
  // kOutOfRange: unknown, or `from` is no cut in this log.
  absl::StatusOr<std::vector<Extent>> Between(CutNumber from, CutNumber to) const;

 private:
  struct Entry {
    CutNumber first_cut = 0;  // the first of the cuts that became one
    CutNumber cut = 0;
    ExtentSet changed;
  };

  void MakeRoom();

  size_t extents_max_;
  bool started_ = false;
  CutNumber start_ = 0;
  std::optional<absl::Time> unasked_until_;  // set: followers are only expected
  std::deque<Entry> entries_;                // oldest first
  size_t extent_count_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_CHANGE_LOG_H_
