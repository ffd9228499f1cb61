// Names of the files in a history: docs/reference/format.md, "Files and directories".
#ifndef H5MIRROR_ONION_STORE_HISTORY_NAMES_H_
#define H5MIRROR_ONION_STORE_HISTORY_NAMES_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace h5mirror::store {

// Names of files that are being pruned, by the id of the file.
inline constexpr char kPruneMarks[] = ".h5mirror/pruning";
// Names of files that were compared with their local file.
inline constexpr char kCheckMarks[] = ".h5mirror/checked";

// The number after `prefix` in a name of the history; nullopt: the name is of another kind.
inline std::optional<int64_t> NumberAfter(std::string_view name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
  int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// Whether a file of the history is a segment of pre-images or an old head. These are made only once
// an index is durable. So if there is no index beside them, the index was lost.
inline bool ProvesAnIndex(std::string_view name) {
  return NumberAfter(name, "pages-").has_value() || NumberAfter(name, "head-").has_value();
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_HISTORY_NAMES_H_
