#include "h5edit/lexer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/charconv.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "h5edit/bytes_text.h"

namespace h5mirror::edit {
namespace {

constexpr std::string_view kPunctuation = "{}()[],;";

constexpr std::array<std::string_view, 48> kWords = {
    "CREATE",        "DELETE",     "MODIFY",     "RENAME",         "COPY",       "DATASET",
    "GROUP",         "ATTRIBUTE",  "DATATYPE",   "DATASPACE",      "DATA",       "SCALAR",
    "NULL",          "SIMPLE",     "STRSIZE",    "STRPAD",         "CSET",       "CTYPE",
    "SHOW",          "LIST",       "IF",         "EXISTS",         "OR",         "REPLACE",
    "OBJECT",        "MOVE",       "LINK",       "HARD",           "SOFT",       "EXTERNAL",
    "FROM",          "LAYOUT",     "CONTIGUOUS", "COMPACT",        "CHUNKED",    "FILTER",
    "SHUFFLE",       "FLETCHER32", "DEFLATE",    "FILLVALUE",      "H5T_STRING", "H5T_VARIABLE",
    "H5S_UNLIMITED", "H5T_ENUM",   "H5T_C_S1",   "H5T_FORTRAN_S1", "TO",         "APPEND"};

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("_.-+:@%~$").find(c) != std::string_view::npos;
}
bool IsWildcard(char c) { return c == '*' || c == '?'; }
bool IsQuote(char c) { return c == '\'' || c == '"'; }
// Of a word, a path or a pattern.
bool IsWordPart(char c) { return IsWordCharacter(c) || c == '/' || IsWildcard(c); }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out += static_cast<char>(0xE0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Reads one script; keeps the first problem.
class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  bool Run(std::vector<Token>* tokens) {
    while (true) {
      SkipBlank();
      Token token;
      token.offset = at_;
      if (at_ == text_.size()) {
        tokens->push_back(std::move(token));
        return true;
      }
      if (!Next(&token)) return false;
      token.length = at_ - token.offset;
      tokens->push_back(std::move(token));
    }
  }
  const Problem& problem() const { return problem_; }

 private:
  bool Fail(size_t offset, std::string message) {
    problem_ = {source_.PlaceOf(offset), std::move(message)};
    return false;
  }

  void SkipBlank() {
    while (at_ < text_.size()) {
      if (IsSpace(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  bool Next(Token* token) {
    const char c = text_[at_];
    if (kPunctuation.find(c) != std::string_view::npos) {
      token->kind = TokenKind::kPunctuation;
      token->text = c;
      ++at_;
      return true;
    }
    if (IsQuote(c)) {
      token->kind = TokenKind::kQuoted;
      return Quoted(&token->text);
    }
    if (IsWordPart(c)) return Word(token);
    return Fail(at_, StrCat("unexpected character '", std::string_view(&text_[at_], 1),
                            "'; a name that has it is written in quotes"));
  }

  // Whether the next character is one of those; the end is none.
  bool IsAt(bool (*is_one)(char)) const { return at_ < text_.size() && is_one(text_[at_]); }

  bool Word(Token* token) {
    while (IsAt(IsWordPart)) ++at_;
    token->text = text_.substr(token->offset, at_ - token->offset);
    // Else "DELETE /a#1;" would be about /a.
    if (at_ < text_.size() && text_[at_] == '#') {
      return Fail(at_,
                  "a '#' in the middle of a word: a comment has a blank before it, and a name "
                  "with a '#' is written in quotes");
    }
    if (IsAt(IsQuote) && !QuotedPart(token)) return false;
    token->kind = KindOf(token->text);
    return true;
  }

  // The component that a path ends with.
  bool QuotedPart(Token* token) {
    if (token->text.find('/') == std::string::npos)
      return Fail(at_, "a quote in the middle of a word; expected a blank before it");
    token->has_quoted_part = true;
    if (!Quoted(&token->quoted_part)) return false;
    if (IsAt(IsWordPart) || IsAt(IsQuote))
      return Fail(at_, "a path ends with its quoted component; expected a blank or ';' after it");
    return true;
  }

  static TokenKind KindOf(const std::string& word) {
    if (std::any_of(word.begin(), word.end(), IsWildcard)) return TokenKind::kPattern;
    if (word.find('/') != std::string::npos) return TokenKind::kPath;
    Number number;
    if (ParseNumber(word, &number)) return TokenKind::kNumber;
    return IsReserved(word) ? TokenKind::kKeyword : TokenKind::kName;
  }

  bool Quoted(std::string* out) {
    const size_t begin = at_;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        *out += text_[at_++];
      } else if (!Escape(out)) {
        return false;
      }
    }
    if (at_ == text_.size())
      return Fail(begin, StrCat("the quote that begins here has no end; expected ",
                                std::string_view(&quote, 1)));
    ++at_;
    return true;
  }

  bool Escape(std::string* out) {
    const size_t begin = at_++;
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case '\\':
      case '\'':
      case '"':
        *out += c;
        return true;
      case 'n':
        *out += '\n';
        return true;
      case 't':
        *out += '\t';
        return true;
      case 'r':
        *out += '\r';
        return true;
      case '0':
      case '1':
      case '2':
      case '3':
        return OctalEscape(begin, out);
      case 'x':
        return HexEscape(begin, 2, out);
      case 'u':
        return HexEscape(begin, 4, out);
      default:
        return Fail(
            begin,
            "unknown escape; expected one of \\\\ \\' \\\" \\n \\t \\r \\0 \\ooo \\xHH \\uHHHH");
    }
  }

  // \ooo is a byte; a NUL is also \0. Of a byte above \177 within a compound h5dump writes the
  // octal digits of a negative number, eleven.
  bool OctalEscape(size_t begin, std::string* out) {
    constexpr std::string_view kNegative = "37777777";
    const std::string_view rest = text_.substr(begin + 1);
    const size_t skipped = rest.starts_with(kNegative) ? kNegative.size() : 0;
    unsigned byte = 0;
    size_t count = 0;
    for (; count < 3 && skipped + count < rest.size(); ++count) {
      const char c = rest[skipped + count];
      if (c < '0' || c > '7') break;
      byte = byte * 8 + static_cast<unsigned>(c - '0');
    }
    if (count < 3 && rest[0] != '0')
      return Fail(begin, "expected 3 octal digits after this escape");
    *out += count < 3 ? '\0' : static_cast<char>(byte);
    at_ = begin + 1 + (count < 3 ? 1 : skipped + 3);
    return true;
  }

  bool HexEscape(size_t begin, int digits, std::string* out) {
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = at_ < text_.size() ? HexDigit(text_[at_]) : -1;
      if (digit < 0)
        return Fail(begin, StrCat("expected ", digits, " hexadecimal digits after this escape"));
      code = code * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    if (digits == 2) {
      *out += static_cast<char>(code);
    } else if (code >= 0xD800 && code <= 0xDFFF) {
      return Fail(begin, "half of a surrogate pair; write the character itself");
    } else {
      AppendUtf8(code, out);
    }
    return true;
  }

  const Source& source_;
  const std::string_view text_;
  size_t at_ = 0;
  Problem problem_;
};

bool ParseMagnitude(std::string_view digits, uint64_t base, Number* number) {
  if (digits.empty()) return false;
  for (char c : digits) {
    const int digit = HexDigit(c);
    if (digit < 0 || static_cast<uint64_t>(digit) >= base) return false;
    const auto value = static_cast<uint64_t>(digit);
    if (number->magnitude > (std::numeric_limits<uint64_t>::max() - value) / base)
      number->is_too_large = true;
    if (!number->is_too_large) number->magnitude = number->magnitude * base + value;
  }
  return true;
}

// Of digits that 64 bits do not hold; infinite where a double does not, either.
double RealOf(std::string_view digits, bool is_hex) {
  double real = 0;
  if (!is_hex) {
    const auto parsed = absl::from_chars(digits.data(), digits.data() + digits.size(), real);
    return parsed.ec == std::errc() ? real : std::numeric_limits<double>::infinity();
  }
  for (char c : digits) real = real * 16 + HexDigit(c);
  return real;
}

// Digits with a '.' and/or an exponent.
bool IsRealSpelling(std::string_view digits) {
  size_t at = 0;
  size_t mantissa = 0;
  bool has_point = false;
  for (; at < digits.size() && (IsDigit(digits[at]) || (digits[at] == '.' && !has_point)); ++at) {
    has_point = has_point || digits[at] == '.';
    mantissa += IsDigit(digits[at]) ? 1 : 0;
  }
  if (mantissa == 0) return false;
  if (at == digits.size()) return has_point;
  if (digits[at] != 'e' && digits[at] != 'E') return false;
  ++at;
  if (at < digits.size() && (digits[at] == '+' || digits[at] == '-')) ++at;
  return at < digits.size() && std::all_of(digits.begin() + at, digits.end(), IsDigit);
}

double SignOf(const Number& number) { return number.is_negative ? -1 : 1; }

// "inf" or "nan".
bool ParseSpecial(std::string_view word, Number* number) {
  number->is_real = true;
  number->is_infinity = word == "inf";
  number->real = SignOf(*number) * (number->is_infinity ? std::numeric_limits<double>::infinity()
                                                        : std::numeric_limits<double>::quiet_NaN());
  return true;
}

bool ParseInteger(std::string_view digits, uint64_t base, Number* number) {
  if (!ParseMagnitude(digits, base, number)) return false;
  number->real = SignOf(*number) * (number->is_too_large ? RealOf(digits, base == 16)
                                                         : static_cast<double>(number->magnitude));
  return true;
}

bool ParseReal(std::string_view digits, Number* number) {
  if (!IsRealSpelling(digits)) return false;
  number->is_real = true;
  double real = 0;
  const auto parsed = absl::from_chars(digits.data(), digits.data() + digits.size(), real);
  number->is_too_large = parsed.ec == std::errc::result_out_of_range && real > 1;
  number->real = SignOf(*number) * real;
  return true;
}

bool IsHex(std::string_view digits) {
  return digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
}

}  // namespace

bool ParseNumber(std::string_view word, Number* number) {
  *number = Number();
  std::string_view digits = word;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    number->is_negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (digits == "inf" || digits == "nan") return ParseSpecial(digits, number);
  if (digits.empty() || !(IsDigit(digits[0]) || digits[0] == '.')) return false;
  if (IsHex(digits)) return ParseInteger(digits.substr(2), 16, number);
  return ParseInteger(digits, 10, number) || ParseReal(digits, number);
}

bool IsReserved(std::string_view word) {
  if (word.starts_with("H5T_") || word.starts_with("H5S_")) return true;
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool Tokenize(const Source& source, std::vector<Token>* tokens, Problem* problem) {
  if (auto wrong = source.CheckEncoding()) {
    *problem = *wrong;
    return false;
  }
  Lexer lexer(source);
  if (lexer.Run(tokens)) return true;
  *problem = lexer.problem();
  return false;
}

bool NeedsQuotes(std::string_view name) {
  Number number;
  return name.empty() || IsReserved(name) || ParseNumber(name, &number) ||
         !std::all_of(name.begin(), name.end(), IsWordCharacter) || Printable(name) != name;
}

std::string Quote(std::string_view name) {
  return QuotedWith('\'', name, [](unsigned char byte) {
    constexpr std::string_view kHex = "0123456789abcdef";
    return std::string{'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  });
}

}  // namespace h5mirror::edit
