#include "cli/output/table.h"

#include <algorithm>
#include <utility>

#include "cli/output/text.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kGap = 2;  // blanks between two columns
// A column that may be clipped counts with so much of it when others are left out for it, and is
// clipped to no less than the other.
constexpr size_t kClipWide = 32;
constexpr size_t kClipNarrow = 8;
// In a pipe it is whole, and one long cell moves only what follows it in its own line.
constexpr size_t kPadMax = 40;

}  // namespace

void Table::AddRow(const std::vector<std::string>& cells) {
  std::vector<std::string> row;
  for (const std::string& cell : cells) row.push_back(cell.empty() ? "-" : Printable(cell));
  row.resize(columns_.size(), "-");
  rows_.push_back(std::move(row));
}

std::string Table::Line(const std::vector<std::string>& cells, Sink sink) const {
  std::string line, pad;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (left_out_[i]) continue;
    // The last cell is not padded: only blanks would follow.
    if (!line.empty()) line += pad + "  ";
    const std::string cell = sink == Sink::kTerminal ? Clip(cells[i], widths_[i]) : cells[i];
    pad.assign(widths_[i] - std::min(widths_[i], DisplayWidth(cell)), ' ');
    if (columns_[i].align == Align::kRight) line += std::exchange(pad, "");
    line += cell;
  }
  return line;
}

size_t Table::LineWidth(size_t clip_max) const {
  size_t width = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (left_out_[i]) continue;
    const bool clips = columns_[i].narrow == Narrow::kClip;
    width += (width > 0 ? kGap : 0) + (clips ? std::min(widths_[i], clip_max) : widths_[i]);
  }
  return width;
}

void Table::LeaveOut(size_t width) {
  for (size_t i = columns_.size(); i-- > 0 && LineWidth(kClipWide) > width;) {
    if (columns_[i].narrow == Narrow::kLeaveOut) left_out_[i] = true;
  }
}

void Table::ClipTo(size_t width) {
  size_t most = width;
  while (most > kClipNarrow && LineWidth(most) > width) --most;
  ClipEachTo(most);
}

void Table::ClipEachTo(size_t most) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].narrow == Narrow::kClip) widths_[i] = std::min(widths_[i], most);
  }
}

void Table::Print(std::ostream& out, Sink sink, int width_columns) {
  const bool first = widths_.empty();
  const bool terminal = sink == Sink::kTerminal;
  widths_.resize(columns_.size(), 0);
  left_out_.resize(columns_.size(), false);
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths_[i] = std::max({widths_[i], DisplayWidth(columns_[i].title), columns_[i].width_min});
    for (const auto& row : rows_) widths_[i] = std::max(widths_[i], DisplayWidth(row[i]));
  }
  if (terminal) {
    const auto width = static_cast<size_t>(std::max(width_columns, 20));
    if (first) LeaveOut(width);
    ClipTo(width);
  } else {
    ClipEachTo(kPadMax);
  }
  if (first) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    out << (terminal ? "\033[1m" : "") << Line(titles, sink) << (terminal ? "\033[0m" : "") << "\n";
  }
  for (const auto& row : rows_) out << Line(row, sink) << "\n";
  rows_.clear();
}

}  // namespace h5mirror::tools
