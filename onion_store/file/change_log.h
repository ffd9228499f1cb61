// The bytes that each cut of a file has changed, for followers.
#ifndef H5MIRROR_ONION_STORE_FILE_CHANGE_LOG_H_
#define H5MIRROR_ONION_STORE_FILE_CHANGE_LOG_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// In memory only, and bounded: beyond the bound the two oldest cuts become one, so that a follower
// far behind hears of more than has changed. A cut counts as one extent more than it changed. Not
// thread-safe.
class ChangeLog {
 public:
  static constexpr size_t kExtentsMax = 1 << 18;

  explicit ChangeLog(size_t extents_max = kExtentsMax) : extents_max_(extents_max) {}

  bool started() const { return started_; }
  // Begins at the cut `newest`. Every later cut must be added; its number is larger.
  void Start(CutNumber newest);
  // Forgets all cuts, and answers no question until the next Start().
  void Stop();
  // The bound. Takes effect with the next Add().
  void SetExtentsMax(size_t extents_max) { extents_max_ = extents_max; }
  size_t extents_max() const { return extents_max_; }
  void Add(CutNumber cut, ExtentSet changed);
  // Adds a cut that may differ from those before in any byte.
  void AddWhole(CutNumber cut) { Start(cut); }

  // The bytes that the cuts after `from`, up to `to`, have changed, and maybe more; in order.
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
  std::deque<Entry> entries_;  // oldest first
  size_t extent_count_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CHANGE_LOG_H_
