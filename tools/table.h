// Rows of text in aligned columns.
#ifndef H5MIRROR_TOOLS_TABLE_H_
#define H5MIRROR_TOOLS_TABLE_H_

#include <string>
#include <vector>

#include "tools/streams.h"

namespace h5mirror::tools {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

// On a terminal the titles are bold and the last column is clipped to the width; in a pipe
// the same columns come plain and whole. Not thread-safe.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column; cells are made printable.
  void AddRow(const std::vector<std::string>& cells);
  // Prints what was added since the last call; titles only the first time. So a long list
  // can be printed page by page: columns only ever get wider.
  void Print(std::ostream& out, Sink sink, int width_columns);
  bool empty() const { return rows_.empty(); }

 private:
  std::string Line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_TABLE_H_
