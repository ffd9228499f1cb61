// The words of a script, one after the other, and the message if a word does not fit.
#ifndef H5MIRROR_H5EDIT_TOKEN_STREAM_H_
#define H5MIRROR_H5EDIT_TOKEN_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "h5edit/lexer.h"

namespace h5mirror::edit {

class TokenStream {
 public:
  // `tokens` end with a kEnd. `source` must outlive it.
  TokenStream(const Source& source, std::vector<Token> tokens)
      : source_(source), tokens_(std::move(tokens)) {}

  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  // The word at hand, or the one so many words behind it; beyond the end the last.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  // Its offset in the script.
  size_t at() const { return Peek().offset; }
  const Token& Next() {
    const Token& token = Peek();
    Skip(1);
    return token;
  }
  void Skip(size_t count) { next_ = std::min(next_ + count, tokens_.size() - 1); }

  // Takes the current word if it is this punctuation or keyword.
  bool Take(std::string_view word);
  // The same; any other word is noted as a problem.
  bool Expect(std::string_view word);
  // Takes the current word if it is `word`, which is a keyword only here.
  bool TakeName(std::string_view word);
  // Takes one of `words`, of either kind, and tells which. Any other word is noted as a problem.
  bool TakeOneOf(std::initializer_list<std::string_view> words, size_t* which);
  // Takes an integer from `least` to `most`; "WHAT must be at least 1" is a problem.
  bool TakeInteger(std::string_view what, uint64_t least, uint64_t most, uint64_t* out);

  // Whether a token may name an object or an attribute.
  static bool IsName(const Token& token) {
    return token.kind == TokenKind::kName || token.kind == TokenKind::kQuoted ||
           token.kind == TokenKind::kPath;
  }

  // Notes a problem, the first one counts, and returns false: "expected ..., found ...".
  bool Fail(std::string_view expected);
  bool FailAt(size_t offset, std::string message);
  const Problem& problem() const { return problem_; }

 private:
  // True: the current place is within brackets, where values stand and no names of objects or
  // attributes.
  bool IsInBrackets() const;

  const Source& source_;
  const std::vector<Token> tokens_;
  size_t next_ = 0;
  bool failed_ = false;
  Problem problem_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_TOKEN_STREAM_H_
