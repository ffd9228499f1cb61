#include "h5edit/source.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::edit {
namespace {

// The part of a line that is shown: a generated script may be one line of a megabyte.
constexpr size_t kShownBefore = 60;
constexpr size_t kShownAfter = 40;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// GCC 12 takes the obvious starts_with() of a moved string for uninitialized memory.
std::string WithoutMark(const std::string& text) {
  return text.compare(0, 3, "\xEF\xBB\xBF") == 0 ? text.substr(3) : text;
}

std::vector<size_t> LineStarts(std::string_view text) {
  std::vector<size_t> starts = {0};
  for (size_t at = 0; (at = text.find('\n', at)) != std::string_view::npos;) starts.push_back(++at);
  return starts;
}

}  // namespace

Source::Source(std::string name, const std::string& text)
    : name_(std::move(name)), text_(WithoutMark(text)), line_starts_(LineStarts(text_)) {}

Place Source::PlaceOf(size_t offset) const {
  Place place;
  place.offset = std::min(offset, text_.size());
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), place.offset);
  place.line = static_cast<int>(next - line_starts_.begin());
  const std::string_view line =
      std::string_view(text_).substr(*(next - 1), place.offset - *(next - 1));
  place.column = 1 + static_cast<int>(std::count_if(line.begin(), line.end(),
                                                    [](char c) { return !IsContinuation(c); }));
  return place;
}

std::optional<Problem> Source::CheckEncoding() const {
  const std::string_view text = text_;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\0') return Problem{PlaceOf(at), "a NUL byte: a script is text"};
    const size_t length = CharacterBytes(text.substr(at));
    if (length == 0) return Problem{PlaceOf(at), "a byte that is not UTF-8"};
    at += length;
  }
  return std::nullopt;
}

std::string Source::Explain(const Problem& problem) const {
  const std::string_view text = text_;
  const size_t at = std::min(problem.at.offset, text.size());
  const size_t begin = text.substr(0, at).rfind('\n') + 1;
  const size_t end = std::min(text.find('\n', at), text.size());
  const size_t from = CharacterStart(text, std::max(begin, at - std::min(at, kShownBefore)));
  const size_t to = CharacterStart(text, std::min(end, at + kShownAfter));
  std::string shown(text.substr(from, to - from));
  std::string caret;
  for (char c : shown.substr(0, at - from)) {
    if (!IsContinuation(c)) caret += c == '\t' ? '\t' : ' ';
  }
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; }, ' ');
  return StrCat("h5edit: ", name_, ":", problem.at.line, ":", problem.at.column, ": ",
                Printable(problem.message), "\n  ", shown, "\n  ", caret, "^\n");
}

}  // namespace h5mirror::edit
