#include "ceph/file_size_max.h"

#include <nlohmann/json.hpp>

namespace h5mirror::ceph {
namespace {

using Json = nlohmann::json;

// The number in `dump` that `fscid` means.
Json NumberOf(const Json& dump, int64_t fscid) {
  if (fscid >= 1) return fscid;
  const auto number = dump.find("default_fscid");
  return number == dump.end() ? Json() : *number;
}

}  // namespace

std::optional<uint64_t> FindFileSizeMax(std::string_view fs_dump_json, int64_t fscid) {
  const Json dump = Json::parse(fs_dump_json, nullptr, /*allow_exceptions=*/false);
  const auto filesystems = dump.find("filesystems");
  if (!dump.is_object() || filesystems == dump.end() || !filesystems->is_array()) {
    return std::nullopt;
  }
  const Json number = NumberOf(dump, fscid);
  for (const Json& each : *filesystems) {
    if (!each.is_object() || !each.contains("id") || each["id"] != number) continue;
    const auto map = each.find("mdsmap");
    if (map == each.end() || !map->is_object()) return std::nullopt;
    const auto max = map->find("max_file_size");
    if (max == map->end() || !max->is_number_unsigned()) return std::nullopt;
    return max->get<uint64_t>();
  }
  return std::nullopt;
}

}  // namespace h5mirror::ceph
