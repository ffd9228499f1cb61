#include "h5edit/values.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "h5edit/bytes_text.h"

namespace h5mirror::edit {
namespace {

const char* KindName(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNumber:
      return value.number.is_real ? "a real number" : "an integer";
    case Value::Kind::kQuoted:
      return "a string";
    case Value::Kind::kWord:
      return "a word";
    case Value::Kind::kPath:
      return "a path";
    case Value::Kind::kNull:
      return "NULL";
    case Value::Kind::kCompound:
      return "a value in { }";
    case Value::Kind::kArray:
      return "a value in [ ]";
    case Value::Kind::kList:
      return "a value in ( )";
    case Value::Kind::kReference:
      return "a reference";
  }
  return "";
}

const char* WhatItTakes(const ElementType& type) {
  switch (type.type_class) {
    case TypeClass::kInteger:
      return "an integer type takes integers";
    case TypeClass::kReal:
      return "a float type takes numbers";
    case TypeClass::kString:
      return "a string type takes quoted strings";
    case TypeClass::kEnum:
      return "an enum takes names or numbers of its members";
    case TypeClass::kBitfield:
      return "a bitfield takes integers, or bytes such as 01:ff";
    case TypeClass::kOpaque:
      return "an opaque type takes bytes such as 01:ff";
    case TypeClass::kReference:
      return type.is_region ? "a region reference takes DATASET \"/d\" {REGION_TYPE BLOCK "
                              "(0)-(1)}, or POINT (0), (2)"
                            : "a reference takes the path of an object";
    case TypeClass::kCompound:
      return "a compound takes the values of its members in { }";
    case TypeClass::kArray:
      return "an array takes its values in [ ]";
    case TypeClass::kList:
      return "a type of variable length takes its values in ( )";
    case TypeClass::kCommitted:
      return "";
  }
  return "";
}

std::string WrongKind(const ElementType& type, const Value& value) {
  return StrCat("wrong kind of value: ", WhatItTakes(type), ", found ", KindName(value));
}

// The number that a bitfield's bytes are, the lowest first.
Number BitsOf(const Value& value) {
  Number number = value.number;
  std::string bytes;
  if (value.kind != Value::Kind::kWord || !ParseBytes(value.text, &bytes)) return number;
  for (size_t i = bytes.size(); i-- > 0;)
    number.magnitude = number.magnitude << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::string CheckInteger(const ElementType& type, const Number& number) {
  const uint64_t all = type.bits >= 64 ? UINT64_MAX : (uint64_t{1} << type.bits) - 1;
  const uint64_t highest = type.is_signed ? all >> 1 : all;
  const uint64_t limit = !number.is_negative ? highest : type.is_signed ? highest + 1 : 0;
  if (!number.is_too_large && number.magnitude <= limit) return {};
  return StrCat("out of range: the type holds ", type.is_signed ? StrCat("-", highest + 1) : "0",
                " to ", highest);
}

std::string CheckIntegral(const ElementType& type, const Value& value) {
  const bool is_integer = value.kind == Value::Kind::kNumber && !value.number.is_real;
  return is_integer ? CheckInteger(type, value.number) : WrongKind(type, value);
}

// Whether the number that is written is more (1) or less (-1) than the double nearest to it. A
// conversion that rounds to a double first, and then to fewer bits, may miss the nearest value.
int SideOf(const std::string& text, double nearest) {
  const int mode = std::fegetround();
  std::fesetround(FE_UPWARD);
  const double above = std::strtod(text.c_str(), nullptr);
  std::fesetround(FE_DOWNWARD);
  const double below = std::strtod(text.c_str(), nullptr);
  std::fesetround(mode);
  return above > nearest ? 1 : below < nearest ? -1 : 0;
}

std::string CheckReal(const ElementType& type, const Value& value) {
  if (value.kind != Value::Kind::kNumber) return WrongKind(type, value);
  const Number& number = value.number;
  if (std::isnan(number.real) || number.is_infinity) return {};
  if (type.is_wide && std::isfinite(std::strtold(value.text.c_str(), nullptr))) return {};
  const bool is_beyond_double = number.is_real && number.is_too_large;
  const double size = std::abs(number.real);
  if (!is_beyond_double && size < type.infinite_from) return {};
  const bool is_tie = size == type.infinite_from && !std::isinf(size);
  if (is_tie && SideOf(value.text, number.real) == (number.real > 0 ? -1 : 1)) return {};
  return "out of range: the type cannot hold so large a number; infinity is written inf";
}

std::string CheckString(const ElementType& type, const Value& value) {
  if (type.is_variable && value.kind == Value::Kind::kNull) return {};
  if (value.kind != Value::Kind::kQuoted) return WrongKind(type, value);
  const std::string& text = value.text;
  if (!type.is_utf8 && std::any_of(text.begin(), text.end(),
                                   [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    return "not ASCII: the type's CSET is H5T_CSET_ASCII";
  }
  const bool ends_at_nul = type.is_variable || type.pad == StringPad::kNullTerm;
  if (ends_at_nul && text.find('\0') != std::string::npos)
    return "a NUL byte, which ends a string of this type";
  if (type.is_variable) return {};
  const size_t room = type.pad == StringPad::kNullTerm ? type.size_bytes - 1 : type.size_bytes;
  if (text.size() <= room) return {};
  return StrCat("string too long: ", text.size(), " bytes, and the type holds ", room,
                type.pad == StringPad::kNullTerm ? " and a NUL" : "");
}

const ElementType::Member* MemberOf(const ElementType& type, const Value& value) {
  for (const ElementType::Member& member : type.members) {
    if (value.kind != Value::Kind::kNumber) {
      if (member.name == value.text) return &member;
      continue;
    }
    const Number& number = value.number;
    if (number.is_real || number.is_too_large) continue;
    const uint64_t word = number.is_negative ? 0 - number.magnitude : number.magnitude;
    if (word == static_cast<uint64_t>(member.value) &&
        (number.is_negative == (member.value < 0 && type.is_signed))) {
      return &member;
    }
  }
  return nullptr;
}

std::string CheckMember(const ElementType& type, const Value& value) {
  if (value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kWord &&
      value.kind != Value::Kind::kQuoted) {
    return WrongKind(type, value);
  }
  if (MemberOf(type, value) != nullptr) return {};
  std::string names;
  for (const ElementType::Member& member : type.members) {
    if (names.size() > 100) return StrCat("no member of the enum; it has ", names, ", ...");
    StrAppend(&names, names.empty() ? "" : ", ", member.name);
  }
  return StrCat("no member of the enum; it has ", names);
}

std::string CheckBytes(const ElementType& type, const Value& value) {
  std::string bytes;
  if (!ParseBytes(value.text, &bytes)) return WrongKind(type, value);
  const bool is_bits = type.type_class == TypeClass::kBitfield;
  if (bytes.size() == type.size_bytes || (is_bits && bytes.size() == BytesOfBits(type.bits)))
    return {};
  return StrCat("the type has ", type.size_bytes, " bytes, found ", bytes.size());
}

std::string CheckBitfield(const ElementType& type, const Value& value) {
  if (value.kind != Value::Kind::kWord) return CheckIntegral(type, value);
  const std::string wrong = CheckBytes(type, value);
  return wrong.empty() ? CheckInteger(type, BitsOf(value)) : wrong;
}

std::string CheckOpaque(const ElementType& type, const Value& value) {
  const bool may_be_bytes = value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kWord;
  return may_be_bytes ? CheckBytes(type, value) : WrongKind(type, value);
}

std::string CheckReference(const ElementType& type, const Value& value) {
  if (value.kind == Value::Kind::kNull) return {};
  const bool is_path = value.kind == Value::Kind::kReference ||
                       value.kind == Value::Kind::kQuoted || value.kind == Value::Kind::kPath;
  if (is_path && value.text.empty())
    return "an empty path leads to no object: the root group is \"/\", and no object NULL";
  if (is_path && value.text.find('\0') != std::string::npos) return "a NUL byte in a path";
  const bool has_region = value.region != Value::Region::kNone;
  if (type.is_region) return has_region ? std::string() : WrongKind(type, value);
  if (has_region) return "a reference to an object has no region";
  return is_path ? std::string() : WrongKind(type, value);
}

// Of a type that is not made of others.
std::string CheckPlain(const ElementType& type, const Value& value) {
  switch (type.type_class) {
    case TypeClass::kInteger:
      return CheckIntegral(type, value);
    case TypeClass::kReal:
      return CheckReal(type, value);
    case TypeClass::kString:
      return CheckString(type, value);
    case TypeClass::kEnum:
      return CheckMember(type, value);
    case TypeClass::kBitfield:
      return CheckBitfield(type, value);
    case TypeClass::kOpaque:
      return CheckOpaque(type, value);
    case TypeClass::kReference:
      return CheckReference(type, value);
    default:
      return {};
  }
}

std::optional<ValueProblem> CheckCount(std::string_view what, uint64_t count, size_t end,
                                       const std::vector<Value>& values) {
  if (values.size() == count) return std::nullopt;
  const bool is_few = values.size() < count;
  return ValueProblem{is_few ? end : values[count].at,
                      StrCat("too ", is_few ? "few" : "many", " values", what, ": expected ", count,
                             ", found ", values.size())};
}

std::optional<ValueProblem> CheckValue(const ElementType& type, const Value& value);

std::optional<ValueProblem> CheckCompound(const ElementType& type, const Value& value) {
  for (size_t i = 0; i < type.parts.size() && i < value.items.size(); ++i) {
    auto wrong = CheckValue(type.parts[i], value.items[i]);
    if (!wrong) continue;
    wrong->message = StrCat("member ", type.parts[i].name, ": ", wrong->message);
    return wrong;
  }
  return CheckCount(" for the compound", type.parts.size(), value.end, value.items);
}

std::optional<ValueProblem> CheckValue(const ElementType& type, const Value& value) {
  Value::Kind kind = Value::Kind::kNumber;
  switch (type.type_class) {
    case TypeClass::kCommitted:
      return std::nullopt;
    case TypeClass::kCompound:
      kind = Value::Kind::kCompound;
      break;
    case TypeClass::kArray:
      kind = Value::Kind::kArray;
      break;
    case TypeClass::kList:
      kind = Value::Kind::kList;
      break;
    default: {
      std::string wrong = CheckPlain(type, value);
      if (wrong.empty()) return std::nullopt;
      return ValueProblem{value.at, std::move(wrong)};
    }
  }
  if (value.kind != kind) return ValueProblem{value.at, WrongKind(type, value)};
  if (kind == Value::Kind::kCompound) return CheckCompound(type, value);
  for (const Value& item : value.items) {
    if (auto wrong = CheckValue(type.parts[0], item)) return wrong;
  }
  if (kind == Value::Kind::kList) return std::nullopt;
  return CheckCount(" for the array", type.count, value.end, value.items);
}

}  // namespace

std::optional<ValueProblem> CheckValues(const ElementType& type, const ValueList& list,
                                        uint64_t count) {
  const std::string origin = list.file.empty() ? "" : StrCat(" in ", list.file);
  for (size_t i = 0; i < list.values.size() && i < count; ++i) {
    auto wrong = CheckValue(type, list.values[i]);
    if (!wrong) continue;
    if (!list.file.empty()) wrong->message = StrCat("value ", i + 1, origin, ": ", wrong->message);
    return wrong;
  }
  return CheckCount(origin, count, list.end, list.values);
}

const void* Encoded::data() const {
  switch (form) {
    case Form::kSigned:
    case Form::kUnsigned:
      return words.data();
    case Form::kReal:
      return reals.data();
    case Form::kFixed:
      return fixed.data();
    case Form::kPointers:
      return pointers.data();
  }
  return nullptr;
}

uint64_t WordOf(const ElementType& type, const Value& value) {
  if (type.type_class == TypeClass::kEnum)
    return static_cast<uint64_t>(MemberOf(type, value)->value);
  const Number number = type.type_class == TypeClass::kBitfield ? BitsOf(value) : value.number;
  return number.is_negative ? 0 - number.magnitude : number.magnitude;
}

// Rounds here, because HDF5's conversion (H5T__conv_f_f) is wrong in two cases. It makes infinity
// of each number above the largest one, even if it rounds to that. And it rounds denormal numbers
// wrongly.
double RealOf(const ElementType& type, const Value& value) {
  const double real = value.number.real;
  if (type.mantissa_bits == 0 || real == 0 || !std::isfinite(real)) return real;
  const int lowest_bit = std::max(std::ilogb(real), type.lowest_exponent) - type.mantissa_bits;
  const double scaled = std::ldexp(real, -lowest_bit);
  double whole = std::nearbyint(scaled);
  if (std::abs(scaled - whole) == 0.5) {
    const int side = SideOf(value.text, real);
    whole = side > 0 ? std::ceil(scaled) : side < 0 ? std::floor(scaled) : whole;
  }
  return std::clamp(std::ldexp(whole, lowest_bit), -type.largest, type.largest);
}

std::string WideBytesOf(const Value& value) {
  constexpr size_t kHeldBytes = 10;  // Of x87's 80 bits.
  const long double wide = std::strtold(value.text.c_str(), nullptr);
  std::string bytes(sizeof wide, '\0');
  std::memcpy(bytes.data(), &wide, kHeldBytes);
  return bytes;
}

std::string FixedStringOf(const ElementType& type, const Value& value) {
  std::string text = value.text;
  text.resize(type.size_bytes, type.pad == StringPad::kSpacePad ? ' ' : '\0');
  return text;
}

Encoded EncodeValues(const ElementType& type, const ValueList& list) {
  Encoded encoded;
  if (type.type_class == TypeClass::kReal && type.is_wide) {
    encoded.form = Encoded::Form::kFixed;
    for (const Value& value : list.values) encoded.fixed += WideBytesOf(value);
  } else if (type.type_class == TypeClass::kReal) {
    encoded.form = Encoded::Form::kReal;
    for (const Value& value : list.values) encoded.reals.push_back(RealOf(type, value));
  } else if (type.type_class != TypeClass::kString) {
    encoded.form = type.is_signed ? Encoded::Form::kSigned : Encoded::Form::kUnsigned;
    for (const Value& value : list.values) encoded.words.push_back(WordOf(type, value));
  } else if (!type.is_variable) {
    encoded.form = Encoded::Form::kFixed;
    for (const Value& value : list.values) encoded.fixed += FixedStringOf(type, value);
  } else {
    encoded.form = Encoded::Form::kPointers;
    for (const Value& value : list.values) encoded.texts.push_back(value.text);
    for (size_t i = 0; i < list.values.size(); ++i) {
      const bool is_null = list.values[i].kind == Value::Kind::kNull;
      encoded.pointers.push_back(is_null ? nullptr : encoded.texts[i].c_str());
    }
  }
  return encoded;
}

}  // namespace h5mirror::edit
