#include "h5edit/element_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "base/utf8.h"
#include "h5edit/bytes_text.h"
#include "h5edit/h5_types.h"
#include "h5edit/lexer.h"
#include "h5edit/references.h"
#include "h5edit/values.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {
namespace {

using hdf5::Handle;

std::string Printed(const char* format, auto value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// A number of the file as one of ours; false: it has none.
template <typename T>
bool Converted(hid_t type, const char* bytes, hid_t to, T* out) {
  std::array<char, 64> buffer{};
  const size_t size = H5Tget_size(type);
  if (size > buffer.size()) return false;
  std::memcpy(buffer.data(), bytes, size);
  if (H5Tconvert(type, to, 1, buffer.data(), nullptr, H5P_DEFAULT) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return false;
  }
  std::memcpy(out, buffer.data(), sizeof *out);
  return true;
}

// As h5dump writes it, and with more digits where those would be read back as another number.
template <typename T>
std::string DigitsOf(const char* format, T real, bool has_all_bits, auto is_same) {
  std::string text;
  // With so many digits a number that was written with fewer is printed as it was.
  const int more = has_all_bits ? std::numeric_limits<T>::digits10 : 7;
  for (int digits = 6; digits <= std::numeric_limits<T>::max_digits10;
       digits = std::max(digits + 1, more)) {
    std::array<char, 64> printed{};
    std::snprintf(printed.data(), printed.size(), format, digits, real);
    text = printed.data();
    if (std::isnan(real) || is_same(text)) break;
  }
  return text;
}

std::string RealText(hid_t type, const char* bytes) {
  const ElementType element = ElementTypeOf(type).value_or(ElementType());
  long double wide = 0;
  if (element.is_wide && Converted(type, bytes, H5T_NATIVE_LDOUBLE, &wide)) {
    return DigitsOf("%.*Lg", wide, true, [wide](const std::string& text) {
      return std::strtold(text.c_str(), nullptr) == wide;
    });
  }
  double real = 0;
  if (!Converted(type, bytes, H5T_NATIVE_DOUBLE, &real))
    return BytesText({bytes, H5Tget_size(type)});
  return DigitsOf("%.*g", real, element.mantissa_bits == 0,
                  [&element, real](const std::string& text) {
                    ValueList list;
                    Value& value = list.values.emplace_back();
                    value.text = text;
                    return ParseNumber(text, &value.number) && !CheckValues(element, list, 1) &&
                           RealOf(element, value) == real;
                  });
}

std::string NumberText(hid_t type, const char* bytes) {
  const size_t size = H5Tget_size(type);
  if (H5Tget_class(type) == H5T_FLOAT) return RealText(type, bytes);
  uint64_t word = 0;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  if (size > sizeof word ||
      !Converted(type, bytes, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, &word))
    return BytesText({bytes, size});
  return is_signed ? StrCat(static_cast<int64_t>(word)) : StrCat(word);
}

// The bits of the type, and none beside them; the lowest byte first, as h5dump does on machines
// that have it first.
std::string BitsText(hid_t type, const char* bytes) {
  std::string text(bytes, H5Tget_size(type));
  if (H5Tget_order(type) == H5T_ORDER_BE) std::reverse(text.begin(), text.end());
  uint64_t word = 0;
  const size_t precision = H5Tget_precision(type);
  if (text.size() > sizeof word || precision == 0) return BytesText(text);
  std::memcpy(&word, text.data(), text.size());
  word = word >> std::max(H5Tget_offset(type), 0) & UINT64_MAX >> (64 - precision);
  return BytesText({reinterpret_cast<const char*>(&word), BytesOfBits(precision)});
}

std::string StringText(hid_t type, const char* bytes) {
  if (H5Tis_variable_str(type) > 0) {
    const char* text = nullptr;
    std::memcpy(&text, bytes, sizeof text);
    return text == nullptr ? "NULL" : QuotedText(text);
  }
  std::string_view text(bytes, H5Tget_size(type));
  const H5T_str_t pad = H5Tget_strpad(type);
  if (pad == H5T_STR_SPACEPAD) return QuotedText(text);
  if (pad == H5T_STR_NULLTERM) return QuotedText(text.substr(0, text.find('\0')));
  const size_t last = text.find_last_not_of('\0');
  return QuotedText(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

std::string EnumText(hid_t type, const char* bytes) {
  std::array<char, 256> name{};
  if (H5Tenum_nameof(type, bytes, name.data(), name.size()) >= 0) return name.data();
  H5Eclear2(H5E_DEFAULT);
  const Handle base(H5Tget_super(type));
  return NumberText(base.get(), bytes);
}

std::string CompoundText(hid_t object, hid_t type, const char* bytes) {
  std::string text = "{ ";
  for (int i = 0; i < H5Tget_nmembers(type); ++i) {
    const auto index = static_cast<unsigned>(i);
    const Handle member(H5Tget_member_type(type, index));
    StrAppend(&text, i == 0 ? "" : ", ",
              ElementText(object, member.get(), bytes + H5Tget_member_offset(type, index)));
  }
  return text + " }";
}

std::string SequenceText(hid_t object, hid_t type, const char* bytes) {
  const Handle base(H5Tget_super(type));
  const size_t step = H5Tget_size(base.get());
  const bool is_array = H5Tget_class(type) == H5T_ARRAY;
  hvl_t list{};
  if (!is_array) std::memcpy(&list, bytes, sizeof list);
  const char* const first = is_array ? bytes : static_cast<const char*>(list.p);
  const size_t count = is_array ? H5Tget_size(type) / step : list.len;
  std::string text = is_array ? "[ " : "(";
  for (size_t i = 0; i < count; ++i)
    StrAppend(&text, i == 0 ? "" : ", ", ElementText(object, base.get(), first + i * step));
  return text + (is_array ? " ]" : ")");
}

}  // namespace

std::string QuotedText(std::string_view text) {
  return QuotedWith('"', text, [](unsigned char byte) {
    return byte == '\n' ? std::string("\\n") : Printed("\\%03o", byte);
  });
}

std::string ElementText(hid_t object, hid_t type, const char* bytes) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return NumberText(type, bytes);
    case H5T_STRING:
      return StringText(type, bytes);
    case H5T_ENUM:
      return EnumText(type, bytes);
    case H5T_COMPOUND:
      return CompoundText(object, type, bytes);
    case H5T_ARRAY:
    case H5T_VLEN:
      return SequenceText(object, type, bytes);
    case H5T_BITFIELD:
      return BitsText(type, bytes);
    case H5T_REFERENCE:
      return ReferenceText(object, type, bytes);
    default:
      return BytesText({bytes, H5Tget_size(type)});
  }
}

}  // namespace h5mirror::edit
