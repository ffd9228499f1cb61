#include "h5diff/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/hex.h"
#include "base/strings.h"
#include "cli/output/text.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;

constexpr size_t kOpaqueBytesShown = 16;

std::string MemberName(hid_t type, unsigned index) {
  char* name = H5Tget_member_name(type, index);
  std::string result = name != nullptr ? name : "?";
  H5free_memory(name);
  return result;
}

unsigned MemberCount(hid_t type) {
  return static_cast<unsigned>(std::max(H5Tget_nmembers(type), 0));
}

bool IsVariable(hid_t type) { return H5Tis_variable_str(type) > 0; }

// A fixed string ends at its first NUL, or is padded with spaces.
std::string_view FixedString(hid_t type, const std::byte* element) {
  const char* text = reinterpret_cast<const char*>(element);
  const size_t size = H5Tget_size(type);
  return {text, strnlen(text, size)};
}

const char* VariableString(const std::byte* element) {
  const char* text;
  std::memcpy(&text, element, sizeof(text));
  return text == nullptr ? "" : text;
}

hvl_t Sequence(const std::byte* element) {
  hvl_t sequence;
  std::memcpy(&sequence, element, sizeof(sequence));
  return sequence;
}

size_t ArrayCount(hid_t type) {
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Tget_array_ndims(type), 0)));
  if (dims.empty() || H5Tget_array_dims2(type, dims.data()) < 0) return 0;
  size_t count = 1;
  for (const hsize_t dim : dims) count *= dim;
  return count;
}

// The reference of HDF5 1.12 and later holds pointers.
bool IsManagedReference(hid_t type) { return H5Tequal(type, H5T_STD_REF) > 0; }

std::string NumberName(hid_t type, std::string_view kind) {
  const std::string name = StrCat(kind, 8 * H5Tget_size(type));
  return H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1 ? name + " (big-endian)"
                                                                     : name;
}

std::string CompoundName(hid_t type) {
  std::string text = "compound{";
  for (unsigned i = 0; i < MemberCount(type); ++i) {
    const Handle member(H5Tget_member_type(type, i));
    StrAppend(&text, i > 0 ? ", " : "", Printable(MemberName(type, i)), ": ",
              TypeText(member.get()));
  }
  return text + "}";
}

std::string FloatText(double value) {
  std::string text = absl::StrFormat("%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {
    const std::string shorter = absl::StrFormat("%.*g", digits, value);
    if (strtod(shorter.c_str(), nullptr) == value) {
      text = shorter;
      break;
    }
  }
  const bool plain = text.find_first_not_of("-0123456789") == std::string::npos;
  return plain && std::isfinite(value) ? text + ".0" : text;
}

template <typename T>
std::string Integer(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  return StrCat(+value);
}

std::string IntegerText(hid_t type, const std::byte* element) {
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (H5Tget_size(type)) {
    case 1:
      return is_signed ? Integer<int8_t>(element) : Integer<uint8_t>(element);
    case 2:
      return is_signed ? Integer<int16_t>(element) : Integer<uint16_t>(element);
    case 4:
      return is_signed ? Integer<int32_t>(element) : Integer<uint32_t>(element);
    case 8:
      return is_signed ? Integer<int64_t>(element) : Integer<uint64_t>(element);
    default:
      return "?";
  }
}

std::string RealText(hid_t type, const std::byte* element) {
  double value = 0;
  std::vector<std::byte> buffer(std::max(H5Tget_size(type), sizeof(value)));
  std::memcpy(buffer.data(), element, H5Tget_size(type));
  if (H5Tget_size(type) == sizeof(float)) {
    float narrow;  // Its own digits, not those that it has as a double.
    std::memcpy(&narrow, element, sizeof(narrow));
    std::string text = absl::StrFormat("%.9g", narrow);
    for (int digits = 1; digits < 9; ++digits) {
      const std::string shorter = absl::StrFormat("%.*g", digits, narrow);
      if (strtof(shorter.c_str(), nullptr) == narrow)
        return FloatText(strtod(shorter.c_str(), nullptr));
    }
    return text;
  }
  if (H5Tconvert(type, H5T_NATIVE_DOUBLE, 1, buffer.data(), nullptr, H5P_DEFAULT) < 0) return "?";
  std::memcpy(&value, buffer.data(), sizeof(value));
  return FloatText(value);
}

std::string EnumText(hid_t type, const std::byte* element) {
  char name[256];
  if (H5Tenum_nameof(type, element, name, sizeof(name)) >= 0) return Printable(name);
  H5Eclear2(H5E_DEFAULT);
  const Handle base(H5Tget_super(type));
  return ElementText(base.get(), element, 32);
}

// The short escape of a byte in quotes, as C, Python and JSON write it; 0: none.
char ShortName(char c) {
  switch (c) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '"':
    case '\\':
      return c;
    default:
      return 0;
  }
}

// Several lines stay one.
std::string Escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t plain = static_cast<size_t>(
        std::find_if(text.begin(), text.end(), [](char c) { return ShortName(c) != 0; }) -
        text.begin());
    escaped += Printable(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    escaped += {'\\', ShortName(text[0])};
    text.remove_prefix(1);
  }
  return escaped;
}

std::string Quoted(std::string_view text, size_t length_max) {
  if (text.size() <= length_max) return StrCat("\"", Escaped(text), "\"");
  return StrCat("\"", Escaped(text.substr(0, CharacterStart(text, length_max))), "...\"");
}

// "[a, b, ...]" of the texts that `part(i)` gives.
template <typename Part>
std::string ListText(char open, char close, size_t count, size_t length_max, Part part) {
  std::string text(1, open);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    if (text.size() >= length_max) {
      text += "...";
      break;
    }
    text += part(i, length_max - text.size());
  }
  return text + close;
}

std::string SequenceText(hid_t base, const std::byte* data, size_t count, size_t length_max) {
  const size_t size = H5Tget_size(base);
  return ListText('[', ']', count, length_max,
                  [&](size_t i, size_t left) { return ElementText(base, data + i * size, left); });
}

// A number of any size and byte order. False: HDF5 cannot convert it.
bool ReadNumber(hid_t type, const std::byte* element, long double* value) {
  if (H5Tequal(type, H5T_NATIVE_DOUBLE) > 0) {
    double number;
    std::memcpy(&number, element, sizeof(number));
    *value = number;
    return true;
  }
  const size_t size = H5Tget_size(type);
  std::vector<std::byte> buffer(std::max(size, sizeof(*value)));
  std::memcpy(buffer.data(), element, size);
  if (H5Tconvert(type, H5T_NATIVE_LDOUBLE, 1, buffer.data(), nullptr, H5P_DEFAULT) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return false;
  }
  std::memcpy(value, buffer.data(), sizeof(*value));
  return true;
}

// A long double has 64 binary digits: each integer of HDF5's is one.
bool AreClose(long double one, long double other, const Tolerance& tolerance) {
  if (std::isnan(one) || std::isnan(other)) return std::isnan(one) && std::isnan(other);
  if (one == other) return true;
  if (std::isinf(one) || std::isinf(other)) return false;
  return std::fabs(one - other) <=
         tolerance.absolute + static_cast<long double>(tolerance.relative) * std::fabs(other);
}

bool SameNumber(hid_t type, const std::byte* one, const std::byte* other,
                const Tolerance& tolerance) {
  if (std::memcmp(one, other, H5Tget_size(type)) == 0) return true;
  long double a = 0, b = 0;
  return !tolerance.is_exact() && ReadNumber(type, one, &a) && ReadNumber(type, other, &b) &&
         AreClose(a, b, tolerance);
}

bool SameRun(hid_t base, const std::byte* one, const std::byte* other, size_t count,
             const Tolerance& tolerance) {
  const size_t size = H5Tget_size(base);
  for (size_t i = 0; i < count; ++i) {
    if (!SameElement(base, one + i * size, other + i * size, tolerance)) return false;
  }
  return true;
}

bool SameReference(hid_t type, const std::byte* one, const std::byte* other) {
  if (!IsManagedReference(type)) return std::memcmp(one, other, H5Tget_size(type)) == 0;
  const htri_t same =
      H5Requal(reinterpret_cast<const H5R_ref_t*>(one), reinterpret_cast<const H5R_ref_t*>(other));
  if (same < 0) H5Eclear2(H5E_DEFAULT);  // Null references have nothing to compare.
  return same > 0 || (same < 0 && std::memcmp(one, other, H5Tget_size(type)) == 0);
}

}  // namespace

std::string TypeText(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return NumberName(type, H5Tget_sign(type) == H5T_SGN_2 ? "int" : "uint");
    case H5T_FLOAT:
      return NumberName(type, "float");
    case H5T_STRING:
      return IsVariable(type) ? "string" : StrCat("string[", H5Tget_size(type), "]");
    case H5T_BITFIELD:
      return NumberName(type, "bitfield");
    case H5T_OPAQUE:
      return StrCat("opaque[", H5Tget_size(type), "]");
    case H5T_COMPOUND:
      return CompoundName(type);
    case H5T_REFERENCE:
      return "reference";
    case H5T_ENUM:
      return StrCat("enum[", MemberCount(type), "]");
    case H5T_VLEN: {
      const Handle base(H5Tget_super(type));
      return StrCat("vlen[", TypeText(base.get()), "]");
    }
    case H5T_ARRAY: {
      const Handle base(H5Tget_super(type));
      std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Tget_array_ndims(type), 0)));
      H5Tget_array_dims2(type, dims.data());
      return StrCat("array", ShapeText(dims), "[", TypeText(base.get()), "]");
    }
    default:
      return "unknown type";
  }
}

std::string ShapeText(const std::vector<hsize_t>& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) StrAppend(&text, i > 0 ? ", " : "", dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::string ShapeText(hid_t space) {
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return "null";
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return ShapeText(dims);
}

Values::Values(hid_t memory_type, hid_t space, size_t count)
    : memory_type_(memory_type),
      space_(space),
      count_(count),
      element_bytes_(H5Tget_size(memory_type)),
      bytes_(count * element_bytes_) {}

Values::~Values() {
  if (count_ > 0 && !bytes_.empty() && LeadsElsewhere(memory_type_)) {
    hdf5::Reclaim(memory_type_, space_, bytes_.data()).IgnoreError();
  }
}

bool LeadsElsewhere(hid_t type) {
  return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_REFERENCE) > 0 ||
         (H5Tdetect_class(type, H5T_STRING) > 0 && [type] {
           switch (H5Tget_class(type)) {
             case H5T_STRING:
               return IsVariable(type);
             case H5T_COMPOUND:
               for (unsigned i = 0; i < MemberCount(type); ++i) {
                 if (LeadsElsewhere(Handle(H5Tget_member_type(type, i)).get())) return true;
               }
               return false;
             case H5T_ARRAY:
               return LeadsElsewhere(Handle(H5Tget_super(type)).get());
             default:
               return true;
           }
         }());
}

bool SameElement(hid_t memory_type, const std::byte* one, const std::byte* other,
                 const Tolerance& tolerance) {
  switch (H5Tget_class(memory_type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return SameNumber(memory_type, one, other, tolerance);
    case H5T_STRING:
      if (!IsVariable(memory_type)) {
        return FixedString(memory_type, one) == FixedString(memory_type, other);
      }
      return std::strcmp(VariableString(one), VariableString(other)) == 0;
    case H5T_COMPOUND:
      for (unsigned i = 0; i < MemberCount(memory_type); ++i) {
        const Handle member(H5Tget_member_type(memory_type, i));
        const size_t at = H5Tget_member_offset(memory_type, i);
        if (!SameElement(member.get(), one + at, other + at, tolerance)) return false;
      }
      return true;
    case H5T_ARRAY: {
      const Handle base(H5Tget_super(memory_type));
      return SameRun(base.get(), one, other, ArrayCount(memory_type), tolerance);
    }
    case H5T_VLEN: {
      const Handle base(H5Tget_super(memory_type));
      const hvl_t a = Sequence(one), b = Sequence(other);
      return a.len == b.len && SameRun(base.get(), static_cast<const std::byte*>(a.p),
                                       static_cast<const std::byte*>(b.p), a.len, tolerance);
    }
    case H5T_REFERENCE:
      return SameReference(memory_type, one, other);
    default:
      return std::memcmp(one, other, H5Tget_size(memory_type)) == 0;
  }
}

std::string ElementText(hid_t memory_type, const std::byte* element, size_t length_max) {
  switch (H5Tget_class(memory_type)) {
    case H5T_INTEGER:
      return IntegerText(memory_type, element);
    case H5T_FLOAT:
      return RealText(memory_type, element);
    case H5T_STRING:
      return Quoted(
          IsVariable(memory_type) ? VariableString(element) : FixedString(memory_type, element),
          length_max);
    case H5T_ENUM:
      return EnumText(memory_type, element);
    case H5T_COMPOUND:
      return ListText('{', '}', MemberCount(memory_type), length_max, [&](size_t i, size_t left) {
        const auto index = static_cast<unsigned>(i);
        const Handle member(H5Tget_member_type(memory_type, index));
        return StrCat(
            Printable(MemberName(memory_type, index)), ": ",
            ElementText(member.get(), element + H5Tget_member_offset(memory_type, index), left));
      });
    case H5T_ARRAY: {
      const Handle base(H5Tget_super(memory_type));
      return SequenceText(base.get(), element, ArrayCount(memory_type), length_max);
    }
    case H5T_VLEN: {
      const Handle base(H5Tget_super(memory_type));
      const hvl_t sequence = Sequence(element);
      return SequenceText(base.get(), static_cast<const std::byte*>(sequence.p), sequence.len,
                          length_max);
    }
    case H5T_REFERENCE:
      if (IsManagedReference(memory_type)) return "reference";
      [[fallthrough]];
    default: {
      const size_t size = std::min(H5Tget_size(memory_type), kOpaqueBytesShown);
      const std::string hex =
          absl::BytesToHexString({reinterpret_cast<const char*>(element), size});
      return StrCat("0x", hex, size < H5Tget_size(memory_type) ? "..." : "");
    }
  }
}

std::string PlainText(hid_t memory_type, const std::byte* element, size_t length_max) {
  if (H5Tget_class(memory_type) != H5T_STRING) {
    return ElementText(memory_type, element, length_max);
  }
  return std::string(IsVariable(memory_type) ? VariableString(element)
                                             : FixedString(memory_type, element));
}

std::string ValuesText(hid_t memory_type, const Values& values, size_t length_max) {
  const hid_t type = memory_type;
  return ListText('[', ']', values.count(), length_max, [&](size_t i, size_t left) {
    return ElementText(type, values.element(i), left);
  });
}

}  // namespace h5mirror::tools
