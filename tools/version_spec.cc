#include "tools/version_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tools/text.h"

namespace h5mirror::tools {
namespace {

constexpr std::string_view kWhatIsRight =
    "a version is a number from 1, latest, latest-K, tag:NAME, or a time ";
constexpr std::string_view kTagPrefix = "tag:";

// Digits only: SimpleAtoi alone would take a sign and spaces.
bool ParseCount(std::string_view text, int64_t* count) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(ToAbsl(text), count);
}

absl::Status Wrong(std::string_view text) {
  return absl::InvalidArgumentError(StrCat("version '", text, "': ", kWhatIsRight, kTimeForm));
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
  return Wrong(text);
}

absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text, absl::TimeZone zone) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' names no version: write FILE@VERSION; ", kWhatIsRight, kTimeForm));
  }
  FileAtVersion result;
  result.file = std::string(text.substr(0, at));
  H5M_ASSIGN_OR_RETURN(result.version, ParseVersionSpec(text.substr(at + 1), zone));
  return result;
}

absl::StatusOr<int64_t> ResolveVersion(Context& context, rpc::Client& client,
                                       const std::string& name, const VersionSpec& spec) {
  if (spec.number > 0) return spec.number;
  v1::FindVersionRequest request;
  request.set_name(name);
  if (!spec.tag.empty()) {
    request.set_tag(spec.tag);
  } else if (spec.at.has_value()) {
    NoteLocalTime(context, *spec.at);
    *request.mutable_at_time() = ToProto(spec.at->time);
  } else {
    request.set_back(spec.back);
  }
  const absl::StatusOr<v1::Version> version = client.FindVersion(request);
  if (absl::IsUnimplemented(version.status())) {
    return absl::FailedPreconditionError(StrCat(
        version.status().message(), "; an older server finds versions by number only: update it"));
  }
  H5M_RETURN_IF_ERROR(version.status());
  return version->version();
}

}  // namespace h5mirror::tools
