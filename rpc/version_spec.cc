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
  } else if (rest.find('T') != std::string_view::npos) {
    H5M_ASSIGN_OR_RETURN(spec.at, ParseTimeSpec(rest, zone));
    return spec;
  } else if (ParseCount(rest, &spec.number) && spec.number > 0) {
    return spec;
  }
  return absl::InvalidArgumentError(StrCat("version '", text, "': ", kVersionForm, kTimeForm));
}

}  // namespace h5mirror::rpc
