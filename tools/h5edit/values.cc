#include "tools/h5edit/values.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "tools/h5edit/type_names.h"

namespace h5mirror::edit {
namespace {

const char* ClassName(const Value& value) {
  if (value.kind == Value::Kind::kQuoted) return "a string";
  if (value.kind == Value::Kind::kWord) return "a word";
  return value.number.is_real ? "a real number" : "an integer";
}

const char* TypeName(TypeClass type_class) {
  switch (type_class) {
    case TypeClass::kInteger:
      return "an integer type takes integers";
    case TypeClass::kReal:
      return "a float type takes numbers";
    case TypeClass::kString:
      return "a string type takes quoted strings";
    case TypeClass::kEnum:
      return "an enum takes names or numbers of its members";
  }
  return "";
}

std::string WrongClass(const ElementType& type, const Value& value) {
  return StrCat("wrong kind of value: ", TypeName(type.type_class), ", found ", ClassName(value));
}

std::string CheckInteger(const ElementType& type, const Value& value) {
  const Number& number = value.number;
  const uint64_t all = type.bits >= 64 ? UINT64_MAX : (uint64_t{1} << type.bits) - 1;
  const uint64_t highest = type.is_signed ? all >> 1 : all;
  const uint64_t limit = !number.is_negative ? highest : type.is_signed ? highest + 1 : 0;
  if (!number.is_too_large && number.magnitude <= limit) return {};
  return StrCat("out of range: the type holds ", type.is_signed ? StrCat("-", highest + 1) : "0",
                " to ", highest);
}

// From here on a number rounds to infinity: half a step beyond the largest finite one. Of double
// itself the script's reader has said so.
double RoundsToInfinity(const ElementType& type) {
  if (type.size_bytes >= 8) return std::numeric_limits<double>::infinity();
  return type.largest + std::ldexp(1.0, type.size_bytes == 4 ? 103 : 4);
}

std::string CheckReal(const ElementType& type, const Value& value) {
  const Number& number = value.number;
  if (std::isnan(number.real) || number.is_infinity) return {};
  const bool is_beyond_double = number.is_real && number.is_too_large;
  if (!is_beyond_double && std::abs(number.real) < RoundsToInfinity(type)) return {};
  return "out of range: the type cannot hold so large a number; infinity is written inf";
}

// HDF5 makes infinity of all that is larger than the largest one, even where it rounds to that.
double WithinRange(const ElementType& type, const Number& number) {
  if (std::isnan(number.real) || number.is_infinity) return number.real;
  const bool is_single = type.size_bytes == 4 && type.largest == static_cast<double>(FLT_MAX);
  if (is_single && number.single) return static_cast<double>(*number.single);
  return std::clamp(number.real, -type.largest, type.largest);
}

std::string CheckString(const ElementType& type, const Value& value) {
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
  if (MemberOf(type, value) != nullptr) return {};
  std::string names;
  for (const ElementType::Member& member : type.members) {
    if (names.size() > 100) return StrCat("no member of the enum; it has ", names, ", ...");
    StrAppend(&names, names.empty() ? "" : ", ", member.name);
  }
  return StrCat("no member of the enum; it has ", names);
}

std::string CheckValue(const ElementType& type, const Value& value) {
  const bool is_number = value.kind == Value::Kind::kNumber;
  switch (type.type_class) {
    case TypeClass::kInteger:
      return is_number && !value.number.is_real ? CheckInteger(type, value)
                                                : WrongClass(type, value);
    case TypeClass::kReal:
      return is_number ? CheckReal(type, value) : WrongClass(type, value);
    case TypeClass::kString:
      return value.kind == Value::Kind::kQuoted ? CheckString(type, value)
                                                : WrongClass(type, value);
    case TypeClass::kEnum:
      return CheckMember(type, value);
  }
  return {};
}

}  // namespace

double LargestReal(size_t size_bytes) {
  return size_bytes == 2 ? 65504.0 : size_bytes == 4 ? static_cast<double>(FLT_MAX) : DBL_MAX;
}

ElementType ElementTypeOf(const TypeSpec& spec) {
  ElementType type;
  type.type_class = spec.type_class;
  if (const PredefinedType* predefined = FindPredefined(spec.name)) {
    type.size_bytes = predefined->size_bytes;
    type.bits = static_cast<unsigned>(predefined->size_bytes * 8);
    type.is_signed = predefined->is_signed;
    type.largest = LargestReal(predefined->size_bytes);
  }
  if (spec.type_class == TypeClass::kString) {
    type.size_bytes = spec.size;
    type.is_variable = spec.is_variable;
    type.pad = spec.pad;
    type.is_utf8 = spec.is_utf8;
  }
  for (const EnumMember& member : spec.members) {
    const uint64_t word =
        member.value.is_negative ? 0 - member.value.magnitude : member.value.magnitude;
    type.members.push_back({member.name, static_cast<int64_t>(word)});
  }
  return type;
}

std::optional<ValueProblem> CheckValues(const ElementType& type, const ValueList& list,
                                        uint64_t count) {
  const std::string origin = list.file.empty() ? "" : StrCat(" in ", list.file);
  for (size_t i = 0; i < list.values.size(); ++i) {
    if (i == count) {
      return ValueProblem{list.values[i].at, StrCat("too many values", origin, ": expected ", count,
                                                    ", found ", list.values.size())};
    }
    const std::string wrong = CheckValue(type, list.values[i]);
    if (wrong.empty()) continue;
    return ValueProblem{list.values[i].at,
                        list.file.empty() ? wrong : StrCat("value ", i + 1, origin, ": ", wrong)};
  }
  if (list.values.size() < count) {
    return ValueProblem{list.end, StrCat("too few values", origin, ": expected ", count, ", found ",
                                         list.values.size())};
  }
  return std::nullopt;
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

Encoded EncodeValues(const ElementType& type, const ValueList& list) {
  Encoded encoded;
  switch (type.type_class) {
    case TypeClass::kInteger:
    case TypeClass::kEnum:
      encoded.form = type.is_signed ? Encoded::Form::kSigned : Encoded::Form::kUnsigned;
      for (const Value& value : list.values) {
        const uint64_t magnitude = value.number.magnitude;
        const ElementType::Member* const member = MemberOf(type, value);
        encoded.words.push_back(member != nullptr          ? static_cast<uint64_t>(member->value)
                                : value.number.is_negative ? 0 - magnitude
                                                           : magnitude);
      }
      break;
    case TypeClass::kReal:
      encoded.form = Encoded::Form::kReal;
      for (const Value& value : list.values)
        encoded.reals.push_back(WithinRange(type, value.number));
      break;
    case TypeClass::kString:
      encoded.form = type.is_variable ? Encoded::Form::kPointers : Encoded::Form::kFixed;
      for (const Value& value : list.values) {
        if (type.is_variable) {
          encoded.texts.push_back(value.text);
          continue;
        }
        encoded.fixed += value.text;
        encoded.fixed.append(type.size_bytes - value.text.size(),
                             type.pad == StringPad::kSpacePad ? ' ' : '\0');
      }
      for (const std::string& text : encoded.texts) encoded.pointers.push_back(text.c_str());
      break;
  }
  return encoded;
}

}  // namespace h5mirror::edit
