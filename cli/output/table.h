// Rows of text in aligned columns.
#ifndef H5MIRROR_CLI_OUTPUT_TABLE_H_
#define H5MIRROR_CLI_OUTPUT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output/streams.h"

namespace h5mirror::tools {

enum class Align { kLeft, kRight };

// How a column behaves on a terminal that is too narrow for all columns.
enum class Narrow {
  kWhole,    // stays, and the terminal wraps it
  kClip,     // stays, clipped to what the whole ones leave of the width
  kLeaveOut  // is left out; the last of them first
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Narrow narrow = Narrow::kWhole;
  size_t width_min = 0;  // for a list that is printed row by row: later cells are wider
};

// In a pipe all columns come plain and whole. On a terminal the titles are bold, and lines fit into
// its width: first columns are left out, then others clipped. Not thread-safe.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column; cells are made printable.
  void AddRow(const std::vector<std::string>& cells);
  // Prints the rows added since the last call; the titles only the first time. So a long list can
  // be printed page by page. Columns only get wider, and columns that the first page left out stay
  // out.
  void Print(std::ostream& out, Sink sink, int width_columns);
  bool empty() const { return rows_.empty(); }

 private:
  std::string Line(const std::vector<std::string>& cells, Sink sink) const;
  // The width of a line if each clippable column takes at most `clip_max`.
  size_t LineWidth(size_t clip_max) const;
  void LeaveOut(size_t width);
  // Clips columns so that lines are at most `width` wide, as far as possible.
  void ClipTo(size_t width);
  void ClipEachTo(size_t most);

  std::vector<Column> columns_;
  std::vector<bool> left_out_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_TABLE_H_
