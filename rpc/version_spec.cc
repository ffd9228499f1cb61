#include "rpc/version_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr std::string_view kTagPrefix = "tag:";

// Digits only: SimpleAtoi alone would take a sign and spaces.
bool ParseCount(std::string_view text, int64_t* count) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(ToAbsl(text), count);
}

// Nothing else that names a version has such a character, but a tag.
bool IsMeantAsTime(std::string_view text) {
  return text.find_first_of("T:") != std::string_view::npos || text.ends_with("ago") ||
         std::count(text.begin(), text.end(), '-') == 2;
}

}  // namespace

absl::StatusOr<VersionSpec> ParseVersionSpec(std::string_view text, absl::TimeZone zone) {
  VersionSpec spec;
  std::string_view rest = text;
  if (rest.starts_with("latest")) {
    rest.remove_prefix(6);
    if (rest.empty()) return spec;
    if (rest.starts_with("-") && ParseCount(rest.substr(1), &spec.back)) return spec;
  } else if (rest.starts_with(kTagPrefix)) {
    spec.tag = std::string(rest.substr(kTagPrefix.size()));
    if (!spec.tag.empty()) return spec;
  } else if (ParseCount(rest, &spec.number)) {
    if (spec.number > 0) return spec;
  } else if (auto at = ParseTimeSpec(rest, zone); at.ok()) {
    spec.at = *std::move(at);
    return spec;
  } else if (IsMeantAsTime(rest)) {
    return at.status();
  }
  return absl::InvalidArgumentError(StrCat("version '", text, "': ", kVersionForm, kTimeForm));
}

}  // namespace h5mirror::rpc
