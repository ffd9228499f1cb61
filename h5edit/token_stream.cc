#include "h5edit/token_stream.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::edit {
namespace {

constexpr size_t kShownBytes = 40;

std::string Describe(const Source& source, const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the script";
  std::string text(source.text().substr(token.offset, token.length));
  if (text.size() > kShownBytes) text = text.substr(0, CharacterStart(text, kShownBytes)) + "...";
  switch (token.kind) {
    case TokenKind::kPunctuation:
      return StrCat("'", text, "'");
    case TokenKind::kKeyword:
      return StrCat("the keyword ", text);
    case TokenKind::kNumber:
      return StrCat("the number ", text);
    case TokenKind::kQuoted:
      return StrCat("the string ", text);
    case TokenKind::kPattern:
      return StrCat("the pattern ", text);
    default:
      return text;
  }
}

}  // namespace

bool TokenStream::Take(std::string_view word) {
  if (!Peek().Is(word)) return false;
  Skip(1);
  return true;
}

bool TokenStream::Expect(std::string_view word) {
  if (Take(word)) return true;
  const bool is_mark = word.size() == 1;
  return Fail(is_mark ? StrCat("'", word, "'") : std::string(word));
}

bool TokenStream::TakeName(std::string_view word) {
  if (Peek().kind != TokenKind::kName || Peek().text != word) return false;
  Skip(1);
  return true;
}

bool TokenStream::TakeOneOf(std::initializer_list<std::string_view> words, size_t* which) {
  std::string all;
  *which = 0;
  for (std::string_view word : words) {
    if (Take(word) || TakeName(word)) return true;
    StrAppend(&all, all.empty() ? "" : " or ", word);
    ++*which;
  }
  return Fail(all);
}

bool TokenStream::TakeInteger(std::string_view what, uint64_t least, uint64_t most, uint64_t* out) {
  Number number;
  const Token& token = Peek();
  if (token.kind != TokenKind::kNumber || !ParseNumber(token.text, &number) || number.is_real)
    return Fail(StrCat("a number for ", what));
  if (number.is_negative || number.magnitude < least)
    return FailAt(at(), StrCat(what, " must be at least ", least));
  if (number.is_too_large || number.magnitude > most)
    return FailAt(at(), StrCat(what, " is too large"));
  *out = number.magnitude;
  Skip(1);
  return true;
}

bool TokenStream::Fail(std::string_view expected) {
  const Token& token = Peek();
  std::string message = StrCat("expected ", expected, ", found ", Describe(source_, token));
  const bool takes_names = !IsInBrackets() || expected.find("name") != std::string_view::npos ||
                           expected.find("path") != std::string_view::npos;
  if (takes_names && (token.kind == TokenKind::kKeyword || token.kind == TokenKind::kNumber ||
                      token.kind == TokenKind::kPattern)) {
    StrAppend(&message, "; as a name it is written in quotes");
  }
  return FailAt(token.offset, std::move(message));
}

bool TokenStream::IsInBrackets() const {
  int depth = 0;
  for (size_t i = 0; i < next_; ++i) {
    if (tokens_[i].kind != TokenKind::kPunctuation) continue;
    if (std::string_view("{([").find(tokens_[i].text) != std::string_view::npos) ++depth;
    if (std::string_view("})]").find(tokens_[i].text) != std::string_view::npos) --depth;
  }
  return depth > 0;
}

bool TokenStream::FailAt(size_t offset, std::string message) {
  if (!failed_) problem_ = {source_.PlaceOf(offset), std::move(message)};
  failed_ = true;
  return false;
}

}  // namespace h5mirror::edit
