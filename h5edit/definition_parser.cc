#include "h5edit/definition_parser.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "base/strings.h"
#include "h5edit/type_parser.h"
#include "h5edit/values.h"

namespace h5mirror::edit {
namespace {

constexpr size_t kRankMax = 32;  // H5S_MAX_RANK
constexpr uint64_t kElementsMax = uint64_t{1} << 62;

uint64_t ProductOf(const std::vector<uint64_t>& dims) {
  uint64_t product = 1;
  for (uint64_t size : dims)
    product = size != 0 && product > kElementsMax / size ? kElementsMax + 1 : product * size;
  return product;
}

uint64_t CountOf(const SpaceSpec& space) {
  return space.kind == SpaceSpec::Kind::kNull ? 0 : ProductOf(space.dims);
}

bool StartsSpace(const Token& token) {
  return token.Is("DATASPACE") || token.Is("SCALAR") || token.Is("NULL") || token.Is("SIMPLE") ||
         token.Is("(");
}

}  // namespace

bool DefinitionParser::Parse(Definition* out) {
  if (!in_.Expect("{")) return false;
  out->type.at = out->space.at = in_.at();
  if (!Type(&out->type)) return false;
  if (StartsSpace(in_.Peek()) && !Space(&out->space)) return false;
  if (in_.Peek().Is("LAYOUT") && !LayoutAndMore(out)) return false;
  // A dataset may be without values.
  const bool ends = out->layout.has_value() && in_.Peek().Is("}");
  if (!ends && !DefinedValues(out)) return false;
  if (!in_.Expect("}")) return false;
  const ValueList* const values = out->values.has_value() ? &*out->values : nullptr;
  if (const auto wrong = TakeOpaqueSizes(values, &out->type))
    return in_.FailAt(wrong->at, wrong->message);
  return CheckLayout(*out) && CheckValues(*out);
}

bool DefinitionParser::Type(TypeSpec* out) {
  out->name = "H5T_NATIVE_FLOAT";
  const bool has_word = in_.Take("DATATYPE");
  return !(has_word || TypeParser::Starts(in_.Peek())) || TypeParser(in_).Parse(out);
}

bool DefinitionParser::LayoutAndMore(Definition* out) {
  if (!Layout(&out->layout.emplace())) return false;
  while (in_.Take("FILTER")) {
    if (!Filter(&*out->layout)) return false;
  }
  return !in_.Take("FILLVALUE") || values_.One(&out->fill_value.emplace());
}

bool DefinitionParser::DefinedValues(Definition* out) {
  const Token& next = in_.Peek();
  if (!next.Is("DATA") && !next.Is("{") && !next.Is("FROM")) {
    return in_.Fail(next.Is("}") ? "the values, in { }"
                                 : "a type, a space or the values, in this order");
  }
  return Values(&out->values.emplace());
}

bool DefinitionParser::Space(SpaceSpec* out) {
  in_.Take("DATASPACE");
  out->at = in_.at();
  if (in_.Take("SCALAR")) return true;
  if (in_.Take("NULL")) {
    out->kind = SpaceSpec::Kind::kNull;
    return true;
  }
  out->kind = SpaceSpec::Kind::kSimple;
  const bool is_dumped = in_.Take("SIMPLE") && in_.Take("{");
  if (!in_.Peek().Is("(")) return in_.Fail("SCALAR, NULL or dimensions, such as (2, 3)");
  if (!Dims(&out->dims, false)) return false;
  if (in_.Peek().kind == TokenKind::kPath && in_.Peek().text == "/") {
    in_.Next();
    const size_t at = in_.at();
    if (!Dims(&out->max_dims, true)) return false;
    if (out->max_dims.size() != out->dims.size())
      return in_.FailAt(at, "as many maximum dimensions as dimensions are expected");
    for (size_t i = 0; i < out->dims.size(); ++i) {
      if (out->max_dims[i] < out->dims[i])
        return in_.FailAt(at, "a maximum dimension is smaller than the dimension");
    }
  }
  return !is_dumped || in_.Expect("}");
}

bool DefinitionParser::Dims(std::vector<uint64_t>* out, bool may_be_unlimited) {
  const size_t begin = in_.at();
  if (!in_.Expect("(")) return false;
  do {
    uint64_t size = 0;
    if (!Dimension(may_be_unlimited, &size)) return false;
    out->push_back(size);
  } while (in_.Take(","));
  if (!in_.Peek().Is(")")) return in_.Fail("',' or ')'");
  in_.Next();
  if (out->size() > kRankMax)
    return in_.FailAt(begin, StrCat("at most ", kRankMax, " dimensions, found ", out->size()));
  if (!may_be_unlimited && ProductOf(*out) > kElementsMax)
    return in_.FailAt(begin, "too many elements");
  return true;
}

bool DefinitionParser::Dimension(bool may_be_unlimited, uint64_t* out) {
  if (in_.Peek().Is("H5S_UNLIMITED")) {
    if (!may_be_unlimited)
      return in_.FailAt(in_.at(), "H5S_UNLIMITED is for the maximum dimensions of a dataset");
    in_.Next();
    *out = kUnlimited;
    return true;
  }
  Number number;
  const Token& token = in_.Peek();
  if (token.kind != TokenKind::kNumber || !ParseNumber(token.text, &number) || number.is_real)
    return in_.Fail("the size of a dimension");
  if (number.is_negative || number.magnitude == 0)
    return in_.FailAt(in_.at(), "a dimension must be at least 1");
  if (number.is_too_large || number.magnitude >= (uint64_t{1} << 62))
    return in_.FailAt(in_.at(), "a dimension is too large");
  *out = number.magnitude;
  in_.Next();
  return true;
}

bool DefinitionParser::Layout(LayoutSpec* out) {
  out->at = in_.at();
  in_.Next();
  size_t which = 0;
  if (!in_.TakeOneOf({"CONTIGUOUS", "COMPACT", "CHUNKED"}, &which)) return false;
  out->kind = static_cast<LayoutSpec::Kind>(which);
  out->chunk_at = in_.at();
  return out->kind != LayoutSpec::Kind::kChunked || Dims(&out->chunk, false);
}

bool DefinitionParser::Filter(LayoutSpec* out) {
  const size_t at = in_.at();
  size_t which = 0;
  if (!in_.TakeOneOf({"SHUFFLE", "DEFLATE", "FLETCHER32"}, &which)) return false;
  if (out->kind != LayoutSpec::Kind::kChunked) return in_.FailAt(at, "filters need LAYOUT CHUNKED");
  LayoutSpec::Filter filter;
  filter.kind = static_cast<LayoutSpec::Filter::Kind>(which);
  if (filter.kind == LayoutSpec::Filter::Kind::kDeflate) {
    Number number;
    const Token& token = in_.Peek();
    if (token.kind != TokenKind::kNumber || !ParseNumber(token.text, &number) || number.is_real)
      return in_.Fail("a level from 0 to 9");
    if (number.is_negative || number.magnitude > 9)
      return in_.FailAt(in_.at(), "the level is 0 to 9");
    filter.level = static_cast<unsigned>(number.magnitude);
    in_.Next();
  }
  out->filters.push_back(filter);
  return true;
}

bool DefinitionParser::Ranges(std::vector<IndexRange>* out) {
  in_.Next();
  if (in_.Take("]")) return true;
  do {
    if (!Range(&out->emplace_back())) return false;
  } while (in_.Take(","));
  if (!in_.Peek().Is("]")) return in_.Fail("',' or ']'");
  in_.Next();
  return true;
}

bool DefinitionParser::Range(IndexRange* out) {
  out->at = in_.at();
  const Token& token = in_.Peek();
  const size_t colon = token.text.find(':');
  const bool is_word = token.kind == TokenKind::kNumber || token.kind == TokenKind::kName;
  const auto number = [](std::string_view text, uint64_t* value) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
           absl::SimpleAtoi(ToAbsl(text), value);
  };
  const std::string_view text = token.text;
  if (!is_word || !number(text.substr(0, colon), &out->start) ||
      (colon != std::string::npos && !number(text.substr(colon + 1), &out->count))) {
    return in_.Fail("an index, or start:count");
  }
  if (out->count == 0) return in_.FailAt(out->at, "the count must be at least 1");
  in_.Next();
  return true;
}

bool DefinitionParser::CheckAttribute(const Definition& definition) {
  if (!definition.space.max_dims.empty() && definition.space.max_dims != definition.space.dims) {
    return in_.FailAt(definition.space.at,
                      "an attribute cannot be extended: its maximum dimensions are its dimensions");
  }
  return true;
}

bool DefinitionParser::CheckLayout(const Definition& definition) {
  if (!definition.layout.has_value()) return true;
  const LayoutSpec& layout = *definition.layout;
  const SpaceSpec& space = definition.space;
  const ElementType element = ElementTypeOf(definition.type);
  if (layout.kind == LayoutSpec::Kind::kChunked) {
    if (space.kind != SpaceSpec::Kind::kSimple)
      return in_.FailAt(layout.at, "only a space with dimensions can be chunked");
    if (layout.chunk.size() != space.dims.size())
      return in_.FailAt(layout.at, "a chunk has as many dimensions as its dataset");
    if (IsLargeChunk(ProductOf(layout.chunk), element.size_bytes))
      return in_.FailAt(layout.chunk_at, kLargeChunk);
  } else if (!space.max_dims.empty() && space.max_dims != space.dims) {
    return in_.FailAt(layout.at, "a dataset that can be extended must be chunked");
  }
  if (!definition.fill_value.has_value()) return true;
  ValueList list;
  list.values = {*definition.fill_value};
  const auto wrong = edit::CheckValues(element, list, 1);
  if (wrong) return in_.FailAt(wrong->at, wrong->message);
  if (PointsElsewhere(element)) return in_.FailAt(definition.fill_value->at, kNoFillValue);
  return true;
}

bool DefinitionParser::CheckValues(const Definition& definition) {
  if (!definition.values.has_value()) return true;
  const auto wrong = edit::CheckValues(ElementTypeOf(definition.type), *definition.values,
                                       CountOf(definition.space));
  return !wrong || in_.FailAt(wrong->at, wrong->message);
}

}  // namespace h5mirror::edit
