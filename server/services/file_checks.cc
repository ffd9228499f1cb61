// Files.RecordCheck: a local file was compared with its mirror.
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/own_file.h"
#include "server/notify/event.h"
#include "server/services/files_service.h"
#include "server/state/convert.h"
#include "server/state/mirror_states.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {

grpc::Status FilesService::RecordCheck(grpc::ServerContext* context,
                                       const v1::RecordCheckRequest* request,
                                       v1::RecordCheckResponse* response) {
  return RunCall(
      environment_, *context, "RecordCheck", OneFile(Right::kWrite, request->name()),
      [&](const Principal& principal) -> absl::Status {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        if (request->differing_bytes() < 0) {
          return absl::InvalidArgumentError(
              StrCat("differing_bytes ", request->differing_bytes(), " is negative"));
        }
        H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                             environment_.store.OpenFile(request->name()));
        H5M_RETURN_IF_ERROR(
            CheckAgain(environment_, principal, OneFile(Right::kWrite, request->name())));
        const absl::Status own = CheckOwnVersion(
            principal, environment_.authenticator.RightsTo(principal, request->name()), *file,
            request->version());
        if (absl::IsNotFound(own)) return absl::InvalidArgumentError(own.message());
        H5M_RETURN_IF_ERROR(own);
        H5M_ASSIGN_OR_RETURN(const store::CheckInfo check,
                             file->RecordCheck(request->version(),
                                               static_cast<uint64_t>(request->differing_bytes())));
        environment_.metrics.checks().Note(request->name(), check);
        H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
        const store::VersionInfo& newest = info.newest_version;
        if (check.differing_bytes == 0 && newest.version == check.version &&
            newest.cut == info.last_cut) {
          environment_.mirrors.FoundEqual(request->name(), info.file_id);
        }
        if (check.differing_bytes > 0) {
          spdlog::warn("check: file={} differs from its local file in {} bytes (version {}, {})",
                       Quoted(request->name()), check.differing_bytes, check.version,
                       CallerName(principal));
          Notify(environment_.events,
                 {.kind = EventKind::kVerifyFailed,
                  .file = request->name(),
                  .cause = "differs",  // Hides no damage that the store has found.
                  .text = StrCat("it differs from its local file, as ", CallerName(principal),
                                 " has found"),
                  .numbers = {{"differing_bytes", static_cast<int64_t>(check.differing_bytes)},
                              {"version", check.version}}});
        } else {
          spdlog::info("check: file={} is equal to its local file (version {}, {})",
                       Quoted(request->name()), check.version, CallerName(principal));
        }
        *response->mutable_check() = ToProto(check);
        return absl::OkStatus();
      });
}

}  // namespace h5mirror::server
