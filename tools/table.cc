#include "tools/table.h"

#include <algorithm>

#include "tools/text.h"

namespace h5mirror::tools {

void Table::AddRow(const std::vector<std::string>& cells) {
  std::vector<std::string> row;
  for (const std::string& cell : cells) row.push_back(cell.empty() ? "-" : Printable(cell));
  row.resize(columns_.size(), "-");
  rows_.push_back(std::move(row));
}

std::string Table::Line(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t width = DisplayWidth(cells[i]);
    const std::string pad(widths_[i] > width ? widths_[i] - width : 0, ' ');
    if (i > 0) line += "  ";
    if (columns_[i].align == Align::kRight) line += pad;
    line += cells[i];
    if (columns_[i].align == Align::kLeft && i + 1 < cells.size()) line += pad;
  }
  return line;
}

void Table::Print(std::ostream& out, Sink sink, int width_columns) {
  const bool first = widths_.empty();
  widths_.resize(columns_.size(), 0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths_[i] = std::max(widths_[i], DisplayWidth(columns_[i].title));
    for (const auto& row : rows_) widths_[i] = std::max(widths_[i], DisplayWidth(row[i]));
  }
  const bool terminal = sink == Sink::kTerminal;
  const auto fit = [&](const std::string& line) {
    return terminal ? Clip(line, static_cast<size_t>(std::max(width_columns, 20))) : line;
  };
  if (first) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    out << (terminal ? "\033[1m" : "") << fit(Line(titles)) << (terminal ? "\033[0m" : "") << "\n";
  }
  for (const auto& row : rows_) out << fit(Line(row)) << "\n";
  rows_.clear();
}

}  // namespace h5mirror::tools
