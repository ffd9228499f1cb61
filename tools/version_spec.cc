#include "tools/version_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

constexpr std::string_view kWhatIsRight = "a version is a number from 1, latest, or latest-K";

// Digits only: SimpleAtoi alone would take a sign and spaces.
bool ParseCount(std::string_view text, int64_t* count) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(ToAbsl(text), count);
}

}  // namespace

absl::StatusOr<VersionSpec> ParseVersionSpec(std::string_view text) {
  VersionSpec spec;
  std::string_view rest = text;
  if (rest.starts_with("latest")) {
    rest.remove_prefix(6);
    if (rest.empty()) return spec;
    if (rest.starts_with("-") && ParseCount(rest.substr(1), &spec.back)) return spec;
  } else if (ParseCount(rest, &spec.number) && spec.number > 0) {
    return spec;
  }
  return absl::InvalidArgumentError(StrCat("version '", text, "': ", kWhatIsRight));
}

absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' names no version: write FILE@VERSION; ", kWhatIsRight));
  }
  FileAtVersion result;
  result.file = std::string(text.substr(0, at));
  H5M_ASSIGN_OR_RETURN(result.version, ParseVersionSpec(text.substr(at + 1)));
  return result;
}

absl::StatusOr<int64_t> ResolveVersion(rpc::Client& client, const std::string& name,
                                       const VersionSpec& spec) {
  if (spec.number > 0) return spec.number;
  v1::ListVersionsRequest request;
  request.set_name(name);
  int64_t left = spec.back;
  int64_t seen = 0;
  do {
    request.set_page_size(static_cast<int32_t>(std::min<int64_t>(left + 1, 1000)));
    H5M_ASSIGN_OR_RETURN(v1::ListVersionsResponse page, client.ListVersions(request));
    if (left < page.versions_size()) return page.versions(static_cast<int>(left)).version();
    left -= page.versions_size();
    seen += page.versions_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return absl::NotFoundError(StrCat(name, "@latest-", spec.back, ": the file has only ", seen,
                                    " versions; see h5mirror log ", name));
}

}  // namespace h5mirror::tools
