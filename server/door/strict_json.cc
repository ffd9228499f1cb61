#include "server/door/strict_json.h"

#include <set>
#include <string>
#include <vector>

namespace h5mirror::server {

std::optional<nlohmann::json> ParseStrictJson(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the objects around
  bool has_twice = false;
  const auto look = [&](int /*depth*/, Event event, nlohmann::json& value) {
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(value.get<std::string>()).second) {
      has_twice = true;
    }
    return true;
  };
  nlohmann::json object =
      nlohmann::json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (!object.is_object() || has_twice) return std::nullopt;
  return object;
}

std::optional<std::string> TextMember(const nlohmann::json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

}  // namespace h5mirror::server
