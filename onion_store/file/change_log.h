// Which bytes each cut of a file has changed, for those who follow it from cut to cut.
#ifndef H5MIRROR_ONION_STORE_FILE_CHANGE_LOG_H_
#define H5MIRROR_ONION_STORE_FILE_CHANGE_LOG_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// In memory only, and bounded: where it holds too much, the oldest cuts become one, so that who is
// far behind is told of more than has changed. A cut counts as one extent more than it changed.
// Not thread-safe.
class ChangeLog {
 public:
  static constexpr size_t kExtentsMax = 1 << 18;

  explicit ChangeLog(size_t extents_max = kExtentsMax) : extents_max_(extents_max) {}

  bool started() const { return started_; }
  // From the cut `newest` on. All cuts made after it have larger numbers, and are added.
  void Start(CutNumber newest);
  // It holds nothing any more, and knows nothing.
  void Stop();
  // What is held beyond it goes with the next Add().
  void SetExtentsMax(size_t extents_max) { extents_max_ = extents_max; }
  size_t extents_max() const { return extents_max_; }
  void Add(CutNumber cut, ExtentSet changed);
  // `cut` has nothing in common with those before.
  void AddWhole(CutNumber cut) { Start(cut); }

  // What the cuts after `from`, up to `to`, have changed, and maybe more; in order. kOutOfRange: it
  // is not known, or `from` never was a cut that it knows.
  absl::StatusOr<std::vector<Extent>> Between(CutNumber from, CutNumber to) const;

 private:
  struct Entry {
    CutNumber first_cut = 0;  // of those that became one
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
