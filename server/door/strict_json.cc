#include "server/door/strict_json.h"

#include <set>
#include <string>
#include <vector>

namespace h5mirror::server {
namespace {

// Copies and comparisons recurse, so without a bound a stranger's text would choose the depth of
// the stack.
constexpr int kDepthMax = 16;

}  // namespace

std::optional<nlohmann::json> ParseStrictJson(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the objects around
  bool is_refused = false;
  const auto look = [&](int depth, Event event, nlohmann::json& value) {
    if (is_refused) return false;  // The rest is read over, and not kept.
    if (event == Event::object_start || event == Event::array_start) {
      is_refused = depth >= kDepthMax;
    }
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key) is_refused = !names.back().insert(value.get<std::string>()).second;
    return !is_refused;
  };
  nlohmann::json object =
      nlohmann::json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (is_refused || !object.is_object()) return std::nullopt;
  return object;
}

std::optional<std::string> TextMember(const nlohmann::json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

}  // namespace h5mirror::server
