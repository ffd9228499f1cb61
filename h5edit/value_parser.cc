#include "h5edit/value_parser.h"

#include <utility>

#include "base/strings.h"
#include "h5edit/target_words.h"

namespace h5mirror::edit {
namespace {

bool StartsReference(const Token& token) {
  return token.Is("DATASET") || token.Is("GROUP") || token.Is("DATATYPE") || token.Is("NULL");
}

// All of a value of a file is at the place that names the file.
void MoveTo(size_t at, Value* value) {
  value->at = value->end = at;
  for (Value& item : value->items) MoveTo(at, &item);
}

}  // namespace

bool ValueParser::List(ValueList* out) {
  in_.Take("DATA");
  out->at = in_.at();
  if (in_.Peek().Is("FROM")) return FromFile(out);
  return in_.Expect("{") && Items(0, "}", &out->end, &out->values);
}

// To the closing bracket, which is taken.
bool ValueParser::Items(int depth, std::string_view closing, size_t* end, std::vector<Value>* out) {
  if (!in_.Peek().Is(closing)) {
    do {
      if (depth == 0) SkipIndex();
      if (!One(depth, &out->emplace_back())) return false;
    } while (More(out->back()));
  }
  *end = in_.at();
  if (!in_.Peek().Is(closing)) return in_.Fail(StrCat("',' or '", closing, "'"));
  in_.Next();
  return true;
}

// h5dump writes no commas between references.
bool ValueParser::More(const Value& before) {
  if (in_.Take(",")) return true;
  return (before.kind == Value::Kind::kReference || before.kind == Value::Kind::kNull) &&
         StartsReference(in_.Peek());
}

// "(0,1): ", which h5dump writes before the first value of a line.
void ValueParser::SkipIndex() {
  if (!in_.Peek().Is("(")) return;
  size_t ahead = 0;  // Where a '(' or a ',' is.
  do {
    if (in_.Peek(ahead + 1).kind != TokenKind::kNumber) return;
    ahead += 2;
  } while (in_.Peek(ahead).Is(","));
  const Token& colon = in_.Peek(ahead + 1);
  if (in_.Peek(ahead).Is(")") && colon.kind == TokenKind::kName && colon.text == ":")
    in_.Skip(ahead + 2);
}

bool ValueParser::One(int depth, Value* out) {
  const Token& token = in_.Peek();
  out->at = out->end = token.offset;
  out->text = token.text;
  switch (token.kind) {
    case TokenKind::kNumber:
      ParseNumber(token.text, &out->number);
      break;
    case TokenKind::kQuoted:
      out->kind = Value::Kind::kQuoted;
      break;
    case TokenKind::kName:
      out->kind = Value::Kind::kWord;
      break;
    case TokenKind::kPath:
      out->kind = Value::Kind::kPath;
      out->text = PathText(token);
      break;
    default:
      return Nested(depth, out);
  }
  in_.Next();
  return true;
}

bool ValueParser::Nested(int depth, Value* out) {
  if (depth >= kDepthMax)
    return in_.FailAt(in_.at(), StrCat("values are nested to a depth of ", kDepthMax));
  if (in_.Take("{")) {
    out->kind = Value::Kind::kCompound;
    return Items(depth + 1, "}", &out->end, &out->items);
  }
  if (in_.Take("[")) {
    out->kind = Value::Kind::kArray;
    return Items(depth + 1, "]", &out->end, &out->items);
  }
  if (in_.Take("(")) {
    out->kind = Value::Kind::kList;
    return Items(depth + 1, ")", &out->end, &out->items);
  }
  if (!StartsReference(in_.Peek())) return in_.Fail("a value");
  return Reference(out);
}

bool ValueParser::Reference(Value* out) {
  if (in_.Take("NULL")) {
    out->kind = Value::Kind::kNull;
    return true;
  }
  out->kind = Value::Kind::kReference;
  out->word = in_.Peek().Is("DATASET") ? ObjectWord::kDataset
              : in_.Peek().Is("GROUP") ? ObjectWord::kGroup
                                       : ObjectWord::kDatatype;
  in_.Next();
  if (in_.Peek().kind == TokenKind::kNumber) in_.Next();  // The address, as h5dump writes it.
  if (!TokenStream::IsName(in_.Peek())) return in_.Fail("the path of an object");
  const Token& path = in_.Next();
  out->text = PathText(path);
  if (in_.Take("DATA")) return in_.Expect("{") && SkipToBrace() && in_.Expect("}");
  return !in_.Peek().Is("{") || Region(out);
}

// "{REGION_TYPE BLOCK (0,1)-(2,3), ...}", and what h5dump says of the dataset behind it.
bool ValueParser::Region(Value* out) {
  in_.Next();
  if (!in_.TakeName("REGION_TYPE")) return in_.Fail("REGION_TYPE");
  size_t which = 0;
  if (!in_.TakeOneOf({"BLOCK", "POINT"}, &which)) return false;
  out->region = which == 0 ? Value::Region::kBlocks : Value::Region::kPoints;
  do {
    if (!Corner(&out->items.emplace_back())) return false;
    if (which == 1) continue;
    if (!in_.TakeName("-")) return in_.Fail("'-', and the last element of the block");
    if (!Corner(&out->items.emplace_back())) return false;
  } while (in_.Take(","));
  if (in_.Peek().Is("DATATYPE") || in_.Peek().Is("DATASPACE") || in_.Peek().Is("DATA")) {
    if (!SkipToBrace()) return false;
  }
  out->end = in_.at();
  return in_.Expect("}");
}

// "(0,1)": an element of a dataset.
bool ValueParser::Corner(Value* out) {
  out->at = in_.at();
  out->kind = Value::Kind::kList;
  if (!in_.Expect("(")) return false;
  do {
    Value& index = out->items.emplace_back();
    index.at = in_.at();
    uint64_t value = 0;
    if (!in_.TakeInteger("an index", 0, INT64_MAX, &value)) return false;
    index.number.magnitude = value;
  } while (in_.Take(","));
  out->end = in_.at();
  return in_.Peek().Is(")") ? (in_.Next(), true) : in_.Fail("',' or ')'");
}

// Up to the '}' that closes what is open here.
bool ValueParser::SkipToBrace() {
  for (size_t open = 0; !in_.AtEnd(); in_.Next()) {
    if (in_.Peek().Is("{")) ++open;
    if (in_.Peek().Is("}") && open-- == 0) return true;
  }
  return in_.Fail("'}'");
}

bool ValueParser::FromFile(ValueList* out) {
  in_.Next();
  const size_t at = in_.at();
  out->end = at;
  if (in_.Peek().kind != TokenKind::kQuoted) return in_.Fail("the name of a file, in quotes");
  out->file = in_.Next().text;
  std::string text, error;
  if (!read_file_(out->file, &text, &error)) return in_.FailAt(at, error);
  const Source source(out->file, std::move(text));
  std::vector<Token> tokens;
  Problem problem;
  const auto wrong = [&](const Place& place, const std::string& message) {
    return in_.FailAt(at, StrCat(out->file, ":", place.line, ":", place.column, ": ", message));
  };
  if (!Tokenize(source, &tokens, &problem)) return wrong(problem.at, problem.message);
  TokenStream stream(source, std::move(tokens));
  ValueParser values(stream, read_file_);
  while (!stream.AtEnd()) {
    if (stream.Take(",")) continue;
    values.SkipIndex();  // As h5dump -o writes them.
    if (stream.AtEnd()) break;
    Value& value = out->values.emplace_back();
    if (!values.One(&value)) return wrong(stream.problem().at, stream.problem().message);
    MoveTo(at, &value);
  }
  return true;
}

}  // namespace h5mirror::edit
