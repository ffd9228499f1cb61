#include "server/calls/own_file.h"

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

absl::Status CheckMadeBy(const Principal& principal, const store::File& file,
                         const store::VersionInfo& version, Right right) {
  const std::string& maker = version.provenance.verified_user;
  if (!maker.empty() && maker == principal.name) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat("version ", version.version, " of ", file.name(), " was made by ",
             maker.empty() ? std::string("a writer without a name") : StrCat("\"", maker, "\""),
             ", so ", CallerName(principal), " needs the right \"", NameOf(right), "\" for this"));
}

}  // namespace

absl::Status CheckOwnFile(const Principal& principal, Rights rights, store::File& file) {
  if (rights.Has(Right::kDelete)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file.Info());
  if (info.version_count > 0) {
    H5M_RETURN_IF_ERROR(CheckMadeBy(principal, file, info.newest_version, Right::kDelete));
    H5M_ASSIGN_OR_RETURN(const store::VersionInfo oldest,
                         file.FindVersionBack(info.version_count - 1));
    return CheckMadeBy(principal, file, oldest, Right::kDelete);
  }
  return absl::PermissionDeniedError(
      StrCat(file.name(), " has no version, so no version names its maker: ", CallerName(principal),
             " needs the right \"", NameOf(Right::kDelete), "\" for this"));
}

absl::Status CheckOwnVersion(const Principal& principal, Rights rights, store::File& file,
                             store::VersionNumber version) {
  if (rights.Has(Right::kRestore)) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo found, file.GetVersion(version));
  return CheckMadeBy(principal, file, found, Right::kRestore);
}

absl::Status CheckOwnTag(const Principal& principal, Rights rights, store::File& file,
                         const std::string& tag, store::VersionNumber to) {
  if (rights.Has(Right::kDelete)) return absl::OkStatus();
  const absl::StatusOr<store::VersionInfo> tagged = file.FindVersionTagged(tag);
  if (absl::IsNotFound(tagged.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(tagged.status());
  if (tagged->version == to) return absl::OkStatus();
  return CheckMadeBy(principal, file, *tagged, Right::kDelete);
}

}  // namespace h5mirror::server
