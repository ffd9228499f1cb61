#include "server/settings/name_pattern.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "base/strings.h"
#include "server/settings/access_rules.h"

namespace h5mirror::server {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

std::optional<NamePattern::Field> FieldOf(std::string_view name) {
  if (name == "cn") return NamePattern::Field::kCommonName;
  if (name == "uri") return NamePattern::Field::kUri;
  if (name == "dns") return NamePattern::Field::kDns;
  if (name == "email") return NamePattern::Field::kEmail;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<NamePattern> NamePattern::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  const size_t user = text.find(kUserInGlob);
  const std::optional<Field> field = FieldOf(text.substr(0, std::min(colon, text.size())));
  const bool is_once =
      user != std::string_view::npos && text.find(kUserInGlob, user + 1) == std::string_view::npos;
  if (!field.has_value() || colon == std::string_view::npos || !is_once || user < colon) {
    return absl::InvalidArgumentError(StrCat(
        "\"", text, "\" is no pattern: write cn:, uri:, dns: or email: and a text with ${user}, ",
        "as in \"uri:spiffe://site/user/${user}\""));
  }
  return NamePattern{*field, std::string(text.substr(colon + 1, user - colon - 1)),
                     std::string(text.substr(user + kUserInGlob.size()))};
}

std::string NamePattern::NameIn(std::string_view text) const {
  if (text.size() <= before.size() + behind.size() || !text.starts_with(before) ||
      !text.ends_with(behind)) {
    return "";
  }
  const std::string_view name =
      text.substr(before.size(), text.size() - before.size() - behind.size());
  const bool is_dots = name == "." || name == "..";
  return !is_dots && std::all_of(name.begin(), name.end(), IsNameCharacter) ? std::string(name)
                                                                            : "";
}

}  // namespace h5mirror::server
