#include "base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace h5mirror {
namespace {

constexpr size_t kMaxWord = 100;

// Levenshtein's distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string_view NearestName(std::string_view word, absl::Span<const std::string_view> names,
                             size_t edits_max) {
  if (word.size() > kMaxWord) return {};
  std::string_view nearest;
  size_t least = edits_max + 1;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

}  // namespace h5mirror
