#include "base/cli_help.h"

#include <memory>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kDescriptionColumn = 26;
constexpr size_t kContinuedIndent = 4;

// The words of `text` in lines of at most `columns`. The first line begins with `first` spaces, the
// others with `rest`.
std::string Wrap(std::string_view text, size_t columns, size_t first, size_t rest) {
  std::string wrapped;
  std::string line(first, ' ');
  bool is_empty = true;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ' ', absl::SkipEmpty())) {
    const std::string word(part);
    if (!is_empty && line.size() + 1 + word.size() > columns) {
      StrAppend(&wrapped, line, "\n");
      line.assign(rest, ' ');
      is_empty = true;
    }
    if (!is_empty) line.push_back(' ');
    line += word;
    is_empty = false;
  }
  return wrapped + line;
}

size_t IndentOf(std::string_view line) {
  const size_t indent = line.find_first_not_of(' ');
  return indent == std::string_view::npos ? 0 : indent;
}

// A name with its description beside it, or below it if the name is long.
std::string Entry(const std::string& name, const std::string& description) {
  std::string head = StrCat("  ", name);
  if (head.size() > kHelpColumns) head = Wrap(name, kHelpColumns, 2, 2 + kContinuedIndent);
  if (description.empty()) return StrCat(head, "\n");
  const bool is_beside = head.size() + 1 < kDescriptionColumn;
  const std::string body = Wrap(description, kHelpColumns, kDescriptionColumn, kDescriptionColumn);
  if (!is_beside) return StrCat(head, "\n", body, "\n");
  return StrCat(head, body.substr(head.size()), "\n");
}

class NarrowHelp : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return Entry(verb->get_display_name(true), verb->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Fill(CLI::Formatter::make_description(app), kHelpColumns);
  }
  std::string make_footer(const CLI::App* app) const override {
    return Fill(CLI::Formatter::make_footer(app), kHelpColumns);
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    return StrCat(Wrap(usage.substr(0, usage.find('\n')), kHelpColumns, 0, kContinuedIndent), "\n");
  }
};

}  // namespace

std::string Fill(std::string_view text, size_t columns) {
  std::string filled;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) StrAppend(&filled, Wrap(paragraph, columns, 0, 0), "\n");
    paragraph.clear();
  };
  const bool ends_line = !text.empty() && text.back() == '\n';
  if (ends_line) text.remove_suffix(1);
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), '\n')) {
    const std::string line(part);
    const size_t indent = IndentOf(line);
    if (!line.empty() && indent == 0) {
      StrAppend(&paragraph, paragraph.empty() ? "" : " ", line);
      // A title is a paragraph of its own.
      if (line.back() == ':') end_paragraph();
      continue;
    }
    end_paragraph();
    const bool fits = line.size() <= columns;
    StrAppend(&filled, fits ? line : Wrap(line, columns, indent, indent + kContinuedIndent), "\n");
  }
  end_paragraph();
  if (!ends_line && !filled.empty()) filled.pop_back();
  return filled;
}

void UseNarrowHelp(CLI::App& app) { app.formatter(std::make_shared<NarrowHelp>()); }

}  // namespace h5mirror
