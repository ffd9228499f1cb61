// A user's script for h5edit. Whatever it says, it is understood, or refused with the place of the
// error; and a name that our own code has quoted is read back unchanged.
#include <string>
#include <vector>

#include "base/utf8.h"
#include "h5edit/lexer.h"
#include "h5edit/parser.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::edit {
namespace {

bool NoFiles(const std::string& path, std::string* text, std::string* error) {
  *text = "1, 2 'three' {";
  *error = "no files here";
  return path.size() % 2 == 0;
}

void ReadScript(std::string_view text) {
  const Source source("script", std::string(text));
  std::vector<Statement> statements;
  Problem problem;
  if (!Parse(source, NoFiles, &statements, &problem)) {
    FuzzCheck(!problem.message.empty() && problem.at.offset <= source.text().size());
    FuzzCheck(problem.at.line >= 1 && problem.at.column >= 1);
    const std::string said = source.Explain(problem);
    const std::string first = said.substr(0, said.find('\n'));
    FuzzCheck(first.ends_with(Printable(problem.message)) && Printable(first) == first);
  }
  size_t end = 0;
  for (const Statement& statement : statements) {
    FuzzCheck(statement.begin >= end && statement.end > statement.begin);
    end = statement.end;
  }
  FuzzCheck(end <= source.text().size());
}

void QuoteAndRead(std::string_view name) {
  const Source source("quoted", Quote(name));
  if (source.CheckEncoding()) return;
  std::vector<Token> tokens;
  Problem problem;
  FuzzCheck(Tokenize(source, &tokens, &problem));
  FuzzCheck(tokens.size() == 2 && tokens[0].kind == TokenKind::kQuoted && tokens[0].text == name);
}

}  // namespace
}  // namespace h5mirror::edit

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = FuzzInput(data, size).rest();
  edit::ReadScript(bytes);
  edit::QuoteAndRead(bytes);
  return 0;
}
