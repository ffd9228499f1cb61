#include "h5edit/type_parser.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "h5edit/bytes_text.h"
#include "h5edit/target_words.h"
#include "h5edit/type_names.h"

namespace h5mirror::edit {
namespace {

constexpr size_t kRankMax = 32;  // H5S_MAX_RANK

bool IsMadeOfOthers(const Token& token) {
  constexpr std::string_view kWords[] = {"H5T_STRING", "H5T_ENUM",   "H5T_COMPOUND", "H5T_ARRAY",
                                         "H5T_VLEN",   "H5T_OPAQUE", "H5T_REFERENCE"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&token](std::string_view word) { return token.Is(word); });
}

// `first` is the first value of this type; nullptr: there is none.
const TypeSpec* TakeSizes(const Value* first, TypeSpec* type) {
  if (type->type_class == TypeClass::kOpaque && type->size == 0) {
    std::string bytes;
    if (first == nullptr || !ParseBytes(first->text, &bytes)) return type;
    type->size = bytes.size();
  }
  for (size_t i = 0; i < type->parts.size(); ++i) {
    const bool has_item = first != nullptr && i < first->items.size();
    if (const TypeSpec* none = TakeSizes(has_item ? &first->items[i] : nullptr, &type->parts[i]))
      return none;
  }
  return nullptr;
}

}  // namespace

bool TypeParser::Starts(const Token& token) {
  return (token.kind == TokenKind::kKeyword && token.text.starts_with("H5T_")) ||
         token.kind == TokenKind::kQuoted || token.kind == TokenKind::kPath;
}

bool TypeParser::Parse(TypeSpec* out) {
  const size_t at = in_.at();
  if (!Type(0, out)) return false;
  return ElementTypeOf(*out).size_bytes <= kTypeBytesMax || in_.FailAt(at, "the type is too large");
}

bool TypeParser::Type(int depth, TypeSpec* out) {
  out->at = in_.at();
  if (depth > kDepthMax)
    return in_.FailAt(out->at, StrCat("types are made of types to a depth of ", kDepthMax));
  out->name.clear();
  if (in_.Take("H5T_STRING")) return StringBody(out);
  if (in_.Take("H5T_ENUM")) return EnumBody(out);
  if (in_.Take("H5T_COMPOUND")) return CompoundBody(depth, out);
  if (in_.Take("H5T_ARRAY")) return ArrayBody(depth, out);
  if (in_.Take("H5T_VLEN")) return ListBody(depth, out);
  if (in_.Take("H5T_OPAQUE")) return OpaqueBody(out);
  if (in_.Take("H5T_REFERENCE")) return ReferenceBody(out);
  const Token& token = in_.Peek();
  if (token.kind == TokenKind::kQuoted || token.kind == TokenKind::kPath) return Committed(out);
  return Predefined(out);
}

bool TypeParser::Predefined(TypeSpec* out) {
  const Token& token = in_.Peek();
  if (token.kind != TokenKind::kKeyword && token.kind != TokenKind::kName)
    return in_.Fail("a type, such as H5T_STD_I32LE");
  const PredefinedType* type = FindPredefined(token.text);
  if (type == nullptr) {
    const std::string_view near = NearestPredefined(token.text);
    return in_.FailAt(in_.at(), StrCat("unknown type ", token.text,
                                       near.empty() ? "" : StrCat("; did you mean ", near, "?")));
  }
  in_.Next();
  out->name = type->name;
  out->type_class = type->type_class;
  return true;
}

bool TypeParser::Committed(TypeSpec* out) {
  out->type_class = TypeClass::kCommitted;
  const Token& token = in_.Next();
  out->name = PathText(token);
  if (out->name.empty() || out->name.find('\0') != std::string::npos)
    return in_.FailAt(out->at, "not the path of a committed type");
  if (out->name[0] != '/') out->name = "/" + out->name;
  return true;
}

bool TypeParser::StringBody(TypeSpec* out) {
  out->type_class = TypeClass::kString;
  if (!in_.Expect("{")) return false;
  while (!in_.Peek().Is("}")) {
    if (!StringProperty(out)) return false;
    in_.Take(";");
  }
  if (out->size == 0 && !out->is_variable) return in_.Fail("STRSIZE, which a string must have");
  return in_.Expect("}");
}

bool TypeParser::StringProperty(TypeSpec* out) {
  size_t which = 0;
  if (!in_.TakeOneOf({"STRSIZE", "STRPAD", "CSET", "CTYPE"}, &which)) return false;
  size_t word = 0;
  switch (which) {
    case 0:
      if (in_.Take("H5T_VARIABLE")) return out->is_variable = true;
      return in_.TakeInteger("STRSIZE", 1, kTypeBytesMax, &out->size);
    case 1:
      if (!in_.TakeOneOf({"H5T_STR_NULLTERM", "H5T_STR_NULLPAD", "H5T_STR_SPACEPAD"}, &word))
        return false;
      out->pad = static_cast<StringPad>(word);
      return true;
    case 2:
      if (!in_.TakeOneOf({"H5T_CSET_ASCII", "H5T_CSET_UTF8"}, &word)) return false;
      out->is_utf8 = word == 1;
      return true;
    default:
      if (!in_.TakeOneOf({"H5T_C_S1", "H5T_FORTRAN_S1"}, &word)) return false;
      out->is_fortran = word == 1;
      return true;
  }
}

bool TypeParser::MemberName(std::string* out) {
  const size_t at = in_.at();
  if (in_.Peek().kind != TokenKind::kQuoted && in_.Peek().kind != TokenKind::kName)
    return in_.Fail("the name of a member");
  *out = in_.Next().text;
  return (!out->empty() && out->find('\0') == std::string::npos) ||
         in_.FailAt(at, "not a name for a member");
}

bool TypeParser::EnumBody(TypeSpec* out) {
  if (!in_.Expect("{")) return false;
  const size_t base_at = in_.at();
  if (IsMadeOfOthers(in_.Peek())) return in_.Fail("an integer type");
  TypeSpec base;
  if (!Predefined(&base)) return false;
  if (base.type_class != TypeClass::kInteger)
    return in_.FailAt(base_at, "the base of an enum is an integer type");
  out->type_class = TypeClass::kEnum;
  out->name = base.name;
  const ElementType element = ElementTypeOf(base);
  while (in_.Take(";"), !in_.Peek().Is("}")) {
    if (!EnumMemberOf(element, out)) return false;
  }
  if (out->members.empty()) return in_.Fail("the name of a member");
  return in_.Expect("}");
}

bool TypeParser::EnumMemberOf(const ElementType& base, TypeSpec* out) {
  EnumMember member;
  member.at = in_.at();
  if (!MemberName(&member.name)) return false;
  ValueList value;
  value.values.resize(1);
  value.values[0].at = in_.at();
  if (in_.Peek().kind != TokenKind::kNumber) return in_.Fail("the number of the member");
  ParseNumber(in_.Next().text, &value.values[0].number);
  if (auto wrong = CheckValues(base, value, 1)) return in_.FailAt(wrong->at, wrong->message);
  member.value = value.values[0].number;
  for (const EnumMember& other : out->members) {
    const bool same = other.value.magnitude == member.value.magnitude &&
                      other.value.is_negative == member.value.is_negative;
    if (other.name == member.name || same)
      return in_.FailAt(member.at, StrCat("the enum has ", other.name, " already"));
  }
  out->members.push_back(std::move(member));
  return true;
}

bool TypeParser::CompoundBody(int depth, TypeSpec* out) {
  out->type_class = TypeClass::kCompound;
  if (!in_.Expect("{")) return false;
  std::set<std::string> names;
  while (!in_.Peek().Is("}")) {
    TypeSpec& part = out->parts.emplace_back();
    if (!Type(depth + 1, &part)) return false;
    const size_t at = in_.at();
    if (!MemberName(&part.member)) return false;
    if (!names.insert(part.member).second)
      return in_.FailAt(at, StrCat("the compound has a member ", part.member, " already"));
    if (!in_.Take(";") && !in_.Peek().Is("}")) return in_.Fail("';' or '}'");
  }
  if (out->parts.empty()) return in_.Fail("the type of a member");
  return in_.Expect("}");
}

bool TypeParser::ArrayBody(int depth, TypeSpec* out) {
  out->type_class = TypeClass::kArray;
  if (!in_.Expect("{")) return false;
  const size_t at = in_.at();
  if (!in_.Peek().Is("[")) return in_.Fail("the dimensions of the array, such as [2][3]");
  while (in_.Take("[")) {
    uint64_t size = 0;
    if (!in_.TakeInteger("a dimension", 1, kTypeBytesMax, &size) || !in_.Expect("]")) return false;
    out->dims.push_back(size);
  }
  if (out->dims.size() > kRankMax)
    return in_.FailAt(at, StrCat("at most ", kRankMax, " dimensions, found ", out->dims.size()));
  return Type(depth + 1, &out->parts.emplace_back()) && (in_.Take(";"), in_.Expect("}"));
}

bool TypeParser::ListBody(int depth, TypeSpec* out) {
  out->type_class = TypeClass::kList;
  return in_.Expect("{") && Type(depth + 1, &out->parts.emplace_back()) &&
         (in_.Take(";"), in_.Expect("}"));
}

bool TypeParser::OpaqueBody(TypeSpec* out) {
  constexpr size_t kTagMax = 255;  // H5T_OPAQUE_TAG_MAX - 1
  out->type_class = TypeClass::kOpaque;
  if (!in_.Expect("{")) return false;
  while (!in_.Peek().Is("}")) {
    size_t which = 0;
    if (!in_.TakeOneOf({"OPQ_SIZE", "OPAQUE_SIZE", "OPQ_TAG", "OPAQUE_TAG"}, &which)) return false;
    if (which < 2) {
      if (!in_.TakeInteger("OPQ_SIZE", 1, kTypeBytesMax, &out->size)) return false;
    } else {
      const size_t at = in_.at();
      if (in_.Peek().kind != TokenKind::kQuoted) return in_.Fail("a tag, in quotes");
      out->tag = in_.Next().text;
      if (out->tag.size() > kTagMax || out->tag.find('\0') != std::string::npos)
        return in_.FailAt(at, StrCat("a tag has at most ", kTagMax, " bytes, and no NUL"));
    }
    in_.Take(";");
  }
  return in_.Expect("}");
}

bool TypeParser::ReferenceBody(TypeSpec* out) {
  out->type_class = TypeClass::kReference;
  size_t which = 0;
  if (!in_.Expect("{") ||
      !in_.TakeOneOf({"H5T_STD_REF_OBJECT", "H5T_STD_REF_OBJ", "H5T_STD_REF_DSETREG"}, &which))
    return false;
  out->is_region = which == 2;
  in_.Take(";");
  return in_.Expect("}");
}

std::optional<ValueProblem> TakeOpaqueSizes(const ValueList* values, TypeSpec* type) {
  const bool has_value = values != nullptr && !values->values.empty();
  const TypeSpec* const none = TakeSizes(has_value ? &values->values[0] : nullptr, type);
  if (none == nullptr) return std::nullopt;
  return ValueProblem{none->at,
                      "the size of the opaque type is not said: write OPQ_SIZE, or a first value "
                      "that tells it, such as 01:02:ff"};
}

}  // namespace h5mirror::edit
