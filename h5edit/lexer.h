// From a script's text to its words.
#ifndef H5MIRROR_H5EDIT_LEXER_H_
#define H5MIRROR_H5EDIT_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5edit/source.h"

namespace h5mirror::edit {

enum class TokenKind : uint8_t {
  kEnd,
  kPunctuation,  // one of { } ( ) [ ] , ; /
  kKeyword,      // CREATE, H5T_STD_I32BE, ...
  kNumber,       // 12, -0x1F, 0.1E1, -inf, nan
  kName,         // an identifier
  kQuoted,       // '...' or "..."
  kPath,         // holds a slash; may end in a quoted component
  kPattern,      // a word with * or ? in it, which stand for others; may end as a path does
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t offset = 0;  // in the script
  size_t length = 0;
  // Without quotes and with escapes resolved. Of a path: all before its quoted component.
  std::string text;
  // Of a path or pattern: its quoted component.
  bool has_quoted_part = false;
  std::string quoted_part;

  bool Is(std::string_view word) const {
    return (kind == TokenKind::kPunctuation || kind == TokenKind::kKeyword) && text == word;
  }
};

// The value of a number. Integers are kept as magnitude and sign, so that all of 64 bits can be
// said.
struct Number {
  bool is_real = false;
  bool is_negative = false;
  bool is_too_large = false;  // an integer beyond 64 bits, or a real beyond a double
  uint64_t magnitude = 0;
  double real = 0;  // of an integer, too
  bool is_infinity = false;
};

// Whether `word` is a number, and which.
bool ParseNumber(std::string_view word, Number* number);

// Whether `word` must be quoted where a name is meant.
bool IsReserved(std::string_view word);

// All words of a script, a kEnd last; or the first problem.
bool Tokenize(const Source& source, std::vector<Token>* tokens, Problem* problem);

// Whether a name must be quoted to be read back as one.
bool NeedsQuotes(std::string_view name);
// 'name', with what needs it escaped.
std::string Quote(std::string_view name);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_LEXER_H_
