// Values of a script, as elements of an HDF5 type. Knows no HDF5.
#ifndef H5MIRROR_H5EDIT_VALUES_H_
#define H5MIRROR_H5EDIT_VALUES_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "h5edit/ast.h"

namespace h5mirror::edit {

// The value of one element.
struct ElementType {
  TypeClass type_class = TypeClass::kReal;
  uint64_t size_bytes = 0;  // in the file; of integers and reals at most 16
  unsigned bits = 0;        // of integers and bitfields: the precision
  bool is_signed = true;    // of integers and enums
  double largest = 0;       // of reals: the largest finite one
  // Of reals: from here on a number rounds to infinity.
  double infinite_from = std::numeric_limits<double>::infinity();
  // Of reals that are not as precise as a double: the bits behind the point, and the exponent of
  // the smallest number that has them all.
  int mantissa_bits = 0;
  int lowest_exponent = 0;
  bool is_wide = false;  // of reals: with the exponents of a long double, beyond those of a double
  bool is_variable = false;
  StringPad pad = StringPad::kNullTerm;
  bool is_utf8 = false;
  struct Member {
    std::string name;
    int64_t value;
  };
  std::vector<Member> members;  // of enums
  bool is_region = false;       // of references
  uint64_t count = 0;           // of arrays: how many values
  // Of a compound its members, of an array and a list what they are of.
  std::vector<ElementType> parts;
  std::string name;  // of a member of a compound
};

ElementType ElementTypeOf(const TypeSpec& spec);
// Sets what a binary float can hold: with a hidden bit, and an infinity. Of those that are larger
// than a double it is what a double holds, or a long double.
void SetLimits(unsigned exponent_bits, unsigned mantissa_bits, uint64_t bias, ElementType* type);
inline constexpr char kNoFillValue[] =
    "a fill value of variable length, or a reference, is not supported";
// Whether a value is in part somewhere else in the file, or leads there.
bool PointsElsewhere(const ElementType& type);

// The size of a native bitfield that holds so many bits: as many bytes h5dump prints of them.
inline size_t BytesOfBits(size_t bits) {
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

// Something wrong with a value, at an offset of the script.
struct ValueProblem {
  size_t at = 0;
  std::string message;
};

// Whether `list` is `count` values that `type` can hold.
std::optional<ValueProblem> CheckValues(const ElementType& type, const ValueList& list,
                                        uint64_t count);

// Values in memory, for H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_NATIVE_DOUBLE, the bytes of
// H5T_NATIVE_LDOUBLE or of the string type itself, or pointers.
struct Encoded {
  enum class Form : uint8_t { kSigned, kUnsigned, kReal, kFixed, kPointers } form = Form::kSigned;
  std::vector<uint64_t> words;     // kSigned, kUnsigned (two's complement)
  std::vector<double> reals;       // kReal
  std::string fixed;               // kFixed
  std::vector<std::string> texts;  // kPointers: what `pointers` point to
  std::vector<const char*> pointers;

  const void* data() const;
};

// All of values that CheckValues() has passed, and of classes that are not made of others.
uint64_t WordOf(const ElementType& type, const Value& value);
double RealOf(const ElementType& type, const Value& value);
// A long double, without its padding.
std::string WideBytesOf(const Value& value);
std::string FixedStringOf(const ElementType& type, const Value& value);
Encoded EncodeValues(const ElementType& type, const ValueList& list);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_VALUES_H_
