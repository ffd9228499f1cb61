#include "server/cluster/archive_memory.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "p/archive";

std::optional<std::string> Encode(const archive::ClusterMemory& memory) {
  if (memory.id.empty()) return std::nullopt;
  return Json{{"id", memory.id}, {"place", memory.place}, {"claimed", memory.is_claimed}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<archive::ClusterMemory> Decode(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is = [&](const char* key, Json::value_t type) {
    return json.is_object() && json.contains(key) && json[key].type() == type;
  };
  if (!is("id", Json::value_t::string) || !is("place", Json::value_t::string) ||
      !is("claimed", Json::value_t::boolean)) {
    return absl::DataLossError(
        StrCat("the registry has a text of another form in ", kName, ": ", text));
  }
  return archive::ClusterMemory{json["id"], json["place"], json["claimed"]};
}

absl::StatusOr<archive::ClusterMemory> Remembered(cluster::Registry& registry) {
  H5M_ASSIGN_OR_RETURN(const cluster::RegistryView view, registry.Read({std::string(kName)}));
  const auto text = cluster::TextOf(view, kName);
  return text ? Decode(*text) : archive::ClusterMemory();
}

absl::Status Remember(cluster::Registry& registry, const archive::ClusterMemory& before,
                      const archive::ClusterMemory& after) {
  const cluster::Expectation expected{kName, Encode(before)};
  const cluster::NewText changed{kName, Encode(after).value_or("")};
  return registry.CompareAndSet({&expected, 1}, {&changed, 1});
}

}  // namespace

archive::ClusterMark::Settings ClusterMarkOf(const Config& config, cluster::Registry& registry) {
  archive::ClusterMark::Settings settings;
  const std::string place = config.cluster->Registry();
  settings.cluster = StrCat(config.root.native(), " with the registry ", place);
  settings.memory_place = StrCat(kName, " in ", place);
  settings.remembered = [&registry] { return Remembered(registry); };
  settings.remember = [&registry](const archive::ClusterMemory& before,
                                  const archive::ClusterMemory& after) {
    return Remember(registry, before, after);
  };
  return settings;
}

}  // namespace h5mirror::server
