// Values of a script as HDF5 takes them.
#ifndef H5MIRROR_H5EDIT_MEMORY_VALUES_H_
#define H5MIRROR_H5EDIT_MEMORY_VALUES_H_

#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5edit/h5_types.h"

namespace h5mirror::edit {

// Memory, and the type that it has. Owns all that it points to.
class MemoryValues {
 public:
  // Of values that CheckValues() has passed; `file_type` has the elements `element`. References
  // are made, so what they lead to must be there.
  static absl::StatusOr<MemoryValues> Make(const ElementType& element, hid_t file_type,
                                           const ValueList& list, Scene& scene);

  hid_t type() const { return type_.get(); }
  const void* data() const { return raw_.empty() ? encoded_.data() : raw_.data(); }
  // Of one value in memory.
  size_t stride() const { return stride_; }

  // The targets of pointers in the values. A deque's elements stay where they are.
  struct Elsewhere {
    std::deque<std::string> texts;
    std::deque<std::vector<uint64_t>> lists;
  };

 private:
  hdf5::Handle type_;
  Encoded encoded_;
  std::string raw_;  // of all but integers, reals and strings: as they are in the file
  Elsewhere elsewhere_;
  size_t stride_ = 0;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_MEMORY_VALUES_H_
