#include "h5edit/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "base/strings.h"
#include "base/utf8.h"
#include "h5edit/lexer.h"

namespace h5mirror::edit {
namespace {

std::string Marked(char mark, const std::string& text) {
  std::string marked;
  std::string_view left = text;
  while (!left.empty()) {
    const size_t end = std::min(left.find('\n'), left.size() - 1) + 1;
    marked += mark;
    marked += left.substr(0, end);
    left.remove_prefix(end);
  }
  return marked;
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const size_t length = CharacterBytes(text.substr(at));
    if (length == 0) {
      json += "\\ufffd";  // JSON is UTF-8, and attributes may hold anything.
    } else if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (byte < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      json += escape.data();
    } else {
      json += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return PrintableJson(json + "\"");
}

std::string TargetText(const Statement& statement) {
  const bool is_new = statement.verb == Verb::kCopyAttribute || statement.verb == Verb::kLinkHard ||
                      statement.verb == Verb::kLinkSoft || statement.verb == Verb::kLinkExternal;
  const Target& target = is_new ? statement.destination : statement.target;
  if (target.attribute.empty()) return target.object;
  return StrCat(target.object, " ",
                NeedsQuotes(target.attribute) ? Quote(target.attribute) : target.attribute);
}

void Report::JsonLine(const Statement& statement, const char* status, const std::string& message,
                      const std::string& before, const std::string& after) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? std::string("null") : JsonString(text);
  };
  std::cout << StrCat("{\"line\": ", source_.PlaceOf(statement.begin).line,
                      ", \"command\": ", JsonString(VerbName(statement.verb)),
                      ", \"target\": ", JsonString(TargetText(statement)),
                      ", \"status\": ", JsonString(status), ", \"message\": ", or_null(message),
                      ", \"old\": ", or_null(before), ", \"new\": ", or_null(after), "}\n");
}

void Report::Done(const Statement& statement, const std::string& before, const std::string& after,
                  const std::string& output) {
  ++done_count_;
  if (options_.verbose) {
    std::cerr << StrCat("h5edit: ", source_.name(), ":", source_.PlaceOf(statement.begin).line,
                        ": ", VerbName(statement.verb), " ", TargetText(statement),
                        options_.dry_run ? ": would be done\n" : ": done\n");
  }
  if (options_.json) return JsonLine(statement, "ok", "", before, output.empty() ? after : output);
  std::cout << output;
  if (options_.diff && before != after) {
    std::cout << StrCat("@@ ", TargetText(statement), "\n") << Marked('-', before)
              << Marked('+', after);
  }
}

void Report::Failed(const Statement& statement, const Problem& problem) {
  std::cout << std::flush;
  std::cerr << source_.Explain(problem);
  if (options_.json) JsonLine(statement, "error", problem.message, "", "");
}

void Report::SyntaxError(const Problem& problem) {
  std::cerr << source_.Explain(problem);
  if (!options_.json) return;
  std::cout << StrCat("{\"line\": ", problem.at.line, ", \"command\": null, \"target\": null, ",
                      "\"status\": \"error\", \"message\": ", JsonString(problem.message),
                      ", \"old\": null, \"new\": null}\n");
}

void Report::Error(const std::string& message) {
  std::cerr << StrCat("h5edit: ", Printable(message), "\n");
}

void Report::Left(const Statement& statement, const std::string& left) {
  std::cerr << StrCat("h5edit: the command ", VerbName(statement.verb), " failed; ",
                      Printable(options_.file), " ", Printable(left), "\n");
}

void Report::Summary(int exit_code, size_t statement_count) {
  if (!options_.json) return;
  std::cout << StrCat("{\"file\": ", JsonString(options_.file),
                      ", \"statements\": ", statement_count, ", \"done\": ", done_count_,
                      ", \"dryrun\": ", options_.dry_run ? "true" : "false",
                      ", \"exit\": ", exit_code, "}\n");
}

}  // namespace h5mirror::edit
