#include "server/calls/own_file.h"

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

absl::Status CheckMadeBy(const Principal& principal, const store::File& file,
                         const store::VersionInfo& version) {
  const std::string& maker = version.provenance.verified_user;
  if (!maker.empty() && maker == principal.name) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat("version ", version.version, " of ", file.name(), " was made by ",
             maker.empty() ? "a writer without a token" : StrCat("token \"", maker, "\""),
             ", so token \"", principal.name, "\" needs the right \"admin\" for this"));
}

}  // namespace

absl::Status CheckOwnFile(const Principal& principal, store::File& file) {
  if (principal.rights.Has(Right::kAdmin)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file.Info());
  if (info.version_count > 0) {
    H5M_RETURN_IF_ERROR(CheckMadeBy(principal, file, info.newest_version));
    H5M_ASSIGN_OR_RETURN(const store::VersionInfo oldest,
                         file.FindVersionBack(info.version_count - 1));
    return CheckMadeBy(principal, file, oldest);
  }
  return absl::PermissionDeniedError(StrCat(file.name(), " has no version that says whose it is"));
}

absl::Status CheckOwnVersion(const Principal& principal, store::File& file,
                             store::VersionNumber version) {
  if (principal.rights.Has(Right::kAdmin)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo found, file.GetVersion(version));
  return CheckMadeBy(principal, file, found);
}

}  // namespace h5mirror::server
