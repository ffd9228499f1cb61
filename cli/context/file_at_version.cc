#include "cli/context/file_at_version.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/version_request.h"

namespace h5mirror::tools {

void NoteLocalTime(Context& context, const TimeSpec& spec) {
  if (spec.local_text.empty()) return;
  context.Note(rpc::MeaningOf(spec));
}

absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text, absl::TimeZone zone) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) {
    return absl::InvalidArgumentError(StrCat("'", text, "' names no version: write FILE@VERSION; ",
                                             rpc::kVersionForm, kTimeForm));
  }
  FileAtVersion result;
  result.file = std::string(text.substr(0, at));
  H5M_ASSIGN_OR_RETURN(result.version, ParseVersionSpec(text.substr(at + 1), zone));
  return result;
}

absl::StatusOr<int64_t> ResolveVersion(Context& context, rpc::Client& client,
                                       const std::string& name, const VersionSpec& spec) {
  if (spec.number > 0) return spec.number;
  if (spec.at.has_value()) NoteLocalTime(context, *spec.at);
  const absl::StatusOr<v1::Version> version = client.FindVersion(rpc::FindRequest(name, spec));
  if (absl::IsUnimplemented(version.status())) {
    return absl::FailedPreconditionError(StrCat(
        version.status().message(), "; an older server finds versions by number only: update it"));
  }
  H5M_RETURN_IF_ERROR(version.status());
  return version->version();
}

}  // namespace h5mirror::tools
