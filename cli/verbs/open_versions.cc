#include "cli/verbs/open_versions.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/output/progress.h"

namespace h5mirror::tools {
namespace {

constexpr int kVersionsAtOnce = 500;

// True: the error is of this version. Other errors concern the server, and end the work.
bool IsOfVersion(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsDataLoss(status);
}

}  // namespace

absl::StatusOr<int64_t> OpenEveryVersion(Context& context, rpc::Client& client,
                                         const std::string& file, const VersionOpener& opener,
                                         BadVersionSink sink) {
  v1::GetFileRequest file_request;
  file_request.set_name(file);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status,
                       client.GetFile(file_request, absl::Seconds(30)));
  Progress progress(context.streams(), StrCat("open versions of ", file),
                    static_cast<uint64_t>(status.version_count()), "versions");
  v1::ListVersionsRequest request;
  request.set_name(file);
  request.set_page_size(kVersionsAtOnce);
  int64_t opened = 0;
  do {
    H5M_ASSIGN_OR_RETURN(const v1::ListVersionsResponse page, client.ListVersions(request));
    for (const v1::Version& version : page.versions()) {
      const absl::Status result = opener(client, {file, version, status.page_size_bytes()});
      if (absl::IsOutOfRange(result) || absl::IsNotFound(result)) continue;
      if (!result.ok() && !IsOfVersion(result)) return result;
      if (!result.ok()) sink(version.version(), std::string(result.message()));
      progress.Update(static_cast<uint64_t>(++opened));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return opened;
}

}  // namespace h5mirror::tools
