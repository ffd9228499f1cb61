// A script as it was given, and places in it.
#ifndef H5MIRROR_H5EDIT_SOURCE_H_
#define H5MIRROR_H5EDIT_SOURCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5mirror::edit {

// A place in a script. Line and column count from 1, columns in characters of UTF-8.
struct Place {
  size_t offset = 0;  // in bytes
  int line = 1;
  int column = 1;
};

// An error, and its place.
struct Problem {
  Place at;
  std::string message;
};

// Immutable.
class Source {
 public:
  // `name` is what messages call it: the path of the script, or "-c". A byte order mark is skipped.
  Source(std::string name, const std::string& text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  // Of the byte at `offset`; the end is one more than the last byte.
  Place PlaceOf(size_t offset) const;
  // Bytes that a script cannot hold: NUL, or those that are not UTF-8.
  std::optional<Problem> CheckEncoding() const;
  // "h5edit: NAME:LINE:COL: MESSAGE", the line itself, and a caret below the place. The message
  // stays one line, whatever the names in it are.
  std::string Explain(const Problem& problem) const;

 private:
  const std::string name_;
  const std::string text_;
  const std::vector<size_t> line_starts_;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_SOURCE_H_
