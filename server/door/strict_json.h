// Parses JSON from untrusted clients.
#ifndef H5MIRROR_SERVER_DOOR_STRICT_JSON_H_
#define H5MIRROR_SERVER_DOOR_STRICT_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace h5mirror::server {

// One JSON object. nullopt: `text` is not one, nests more than 16 objects and arrays, or names a
// member twice. Two readers could choose different ones of the two members.
std::optional<nlohmann::json> ParseStrictJson(std::string_view text);

// The text of a member; nullopt: there is none, or it is no string.
std::optional<std::string> TextMember(const nlohmann::json& object, const char* name);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_STRICT_JSON_H_
