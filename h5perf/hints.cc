#include "h5perf/hints.h"

#include <algorithm>

#include "base/strings.h"

namespace h5mirror::pperf {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

absl::StatusOr<Hints> ParseHints(std::string_view text, size_t key_max, size_t value_max) {
  Hints hints;
  while (!text.empty()) {
    const std::string_view item = Trim(text.substr(0, text.find(';')));
    text.remove_prefix(std::min(text.find(';'), text.size() - 1) + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string key(Trim(item.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty()) {
      return absl::InvalidArgumentError(
          StrCat("HDF5_MPI_INFO has '", item, "'; it takes key=value, separated by ;"));
    }
    const std::string value(Trim(item.substr(equals + 1)));
    if (key.size() > key_max || value.size() > value_max) {
      return absl::InvalidArgumentError(StrCat("HDF5_MPI_INFO has '", item,
                                               "'; this MPI takes keys of ", key_max,
                                               " and values of ", value_max, " bytes"));
    }
    std::erase_if(hints, [&](const auto& hint) { return hint.first == key; });
    hints.emplace_back(key, value);
  }
  return hints;
}

}  // namespace h5mirror::pperf
