// Values of HDF5 types in memory: compared, and written as people read them.
#ifndef H5MIRROR_H5DIFF_VALUE_H_
#define H5MIRROR_H5DIFF_VALUE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::tools {

// "float64", "string", "string[10]", "compound{a: int32, b: float64}", "vlen[int8]": as NumPy calls
// it where it has a name for it.
std::string TypeText(hid_t type);

// "(10, 20)", "()" for a scalar, "null".
std::string ShapeText(hid_t space);
std::string ShapeText(const std::vector<hsize_t>& dims);

// Elements of one memory type, with their strings and sequences, which are freed with them.
class Values {
 public:
  // Room for `count` elements of `memory_type` in `space`'s shape, all zero. Both must outlive it.
  Values(hid_t memory_type, hid_t space, size_t count);
  Values(Values&&) = default;
  ~Values();

  void* data() { return bytes_.data(); }
  size_t count() const { return count_; }
  const std::byte* element(size_t i) const { return bytes_.data() + i * element_bytes_; }

 private:
  hid_t memory_type_;
  hid_t space_;
  size_t count_;
  size_t element_bytes_;
  std::vector<std::byte> bytes_;
};

// Whether an element's value cannot be told from its own bytes: it leads to others in the file.
bool LeadsElsewhere(hid_t type);

// How far two numbers may be apart and still be the same: |one - other| <= absolute +
// relative * |other|, as numpy.isclose() has it. Neither is negative.
struct Tolerance {
  double absolute = 0;
  double relative = 0;

  bool is_exact() const { return absolute == 0 && relative == 0; }
};

// The same value: strings to their end, compounds member by member. Without a tolerance numbers
// are compared bit by bit, so that a NaN equals itself, and 0 is not -0. With one that holds of
// integers and reals, also inside of compounds, arrays and sequences: there any NaN equals any
// other, and an infinity itself alone. Enumerations, bit fields and references stay exact.
bool SameElement(hid_t memory_type, const std::byte* one, const std::byte* other,
                 const Tolerance& tolerance = {});

// At most about `length_max` characters; "..." where something was left out.
std::string ElementText(hid_t memory_type, const std::byte* element, size_t length_max);
// The same, but a string as it is.
std::string PlainText(hid_t memory_type, const std::byte* element, size_t length_max);
std::string ValuesText(hid_t memory_type, const Values& values, size_t length_max);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_VALUE_H_
