// Files: names that change, files that are removed and brought back.
#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "rpc/elsewhere.h"
#include "server/calls/page_budget.h"
#include "server/quotas/space_quotas.h"
#include "server/services/files_service.h"
#include "server/state/convert.h"
#include "server/state/mirror_states.h"
#include "server/state/write_rates.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr int kRemovedDefault = 1000;
constexpr int kRemovedMax = 10000;

v1::RemovedFile ToProto(const store::RemovedFile& file) {
  v1::RemovedFile removed;
  removed.set_removal_id(file.id);
  removed.set_name(file.name);
  *removed.mutable_remove_time() = server::ToProto(file.removed);
  *removed.mutable_expire_time() = server::ToProto(file.expires);
  removed.set_disk_bytes(static_cast<int64_t>(file.disk_bytes));
  removed.mutable_writer()->set_claimed_user(file.who.claimed_user);
  removed.mutable_writer()->set_host(file.who.host);
  removed.mutable_writer()->set_program(file.who.program);
  removed.mutable_writer()->set_pid(file.who.pid);
  removed.set_verified_user(file.who.verified_user);
  return removed;
}

// In a cluster an id is "CELL:ID". Without the cell, as older releases gave it, it counts too.
bool IsId(const store::RemovedFile& file, std::string_view id) {
  if (file.id == id) return true;
  const size_t colon = file.id.rfind(':');
  return colon != file.id.npos && std::string_view(file.id).substr(colon + 1) == id;
}

// A name in the cell that the removal was in.
std::string NameBeside(const v1::UndeleteFileRequest& request) {
  if (!request.name().empty()) return request.name();
  const size_t colon = request.removal_id().rfind(':');
  return colon == std::string::npos ? "x" : StrCat(request.removal_id().substr(0, colon), "/x");
}

// This server knows nothing of a cell of another server.
absl::Status NothingRemoved(store::Store& store, const v1::UndeleteFileRequest& request) {
  const absl::Status served = store.OwnerOf(NameBeside(request)).status();
  if (absl::IsUnavailable(served)) return served;
  const bool is_by_id = request.name().empty();
  const std::string& what = is_by_id ? request.removal_id() : request.name();
  // A store without cells has any name.
  const bool lacks_cell =
      is_by_id && absl::IsInvalidArgument(served) && what.find(':') == std::string::npos;
  return absl::NotFoundError(
      StrCat("nothing was removed as ", what, lacks_cell ? " here" : "",
             ", or its retention has ended; see h5mirror ls --removed",
             lacks_cell ? ", which tells the id with its cell, CELL:ID" : ""));
}

}  // namespace

absl::StatusOr<v1::FileStatus> FilesService::StatusOfName(const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file, environment_.store.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(v1::FileStatus status, StatusOf(*file));
  status.clear_lease();  // The one of this call.
  return status;
}

absl::StatusOr<Bytes16> FilesService::FileIdOf(const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file, environment_.store.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
  return info.file_id;
}

grpc::Status FilesService::MoveFile(grpc::ServerContext* context,
                                    const v1::MoveFileRequest* request,
                                    v1::MoveFileResponse* response) {
  return RunCall(
      environment_, *context, "MoveFile",
      {{Right::kDelete, request->name()}, {Right::kDelete, request->new_name()}},
      [&](const Principal& principal) {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        H5M_RETURN_IF_ERROR(store::CheckName(request->new_name()));
        // Nobody begins to write either name meanwhile.
        H5M_ASSIGN_OR_RETURN(const CallLease from,
                             CallLease::Take(environment_, request->name(), principal, *context,
                                             CallLease::Writer::kRespect));
        if (request->name() == request->new_name()) {
          return absl::AlreadyExistsError(StrCat(request->name(), " has that name already"));
        }
        H5M_ASSIGN_OR_RETURN(const CallLease to,
                             CallLease::Take(environment_, request->new_name(), principal, *context,
                                             CallLease::Writer::kRespect));
        H5M_RETURN_IF_ERROR(
            CheckAgain(environment_, principal,
                       {{Right::kDelete, request->name()}, {Right::kDelete, request->new_name()}}));
        H5M_ASSIGN_OR_RETURN(const store::FileOwner owner,
                             environment_.store.OwnerOf(request->name()));
        H5M_RETURN_IF_ERROR(
            CheckNewName(environment_, principal, Right::kDelete, request->new_name(), owner));
        H5M_RETURN_IF_ERROR(environment_.quotas.MayMove(request->name(), request->new_name()));
        H5M_RETURN_IF_ERROR(environment_.store.Move(request->name(), request->new_name()));
        environment_.quotas.Moved(request->name(), request->new_name());
        environment_.metrics.checks().Renamed(request->name(), request->new_name());
        spdlog::info("move: file={} to {} ({})", Quoted(request->name()),
                     Quoted(request->new_name()), CallerName(principal));
        return TellDone(request->new_name(), *response->mutable_file());
      });
}

grpc::Status FilesService::SetFileOwner(grpc::ServerContext* context,
                                        const v1::SetFileOwnerRequest* request,
                                        v1::SetFileOwnerResponse* response) {
  // For the audit log: to whom.
  Needs needs = OneFile(Right::kOperate, request->name());
  needs.push_back({Right::kOperate, "", 0, request->owner()});
  return RunCall(
      environment_, *context, "SetFileOwner", std::move(needs), [&](const Principal& principal) {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        H5M_RETURN_IF_ERROR(CheckKindOfOwner(request->owner()));
        H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                             environment_.store.OpenFile(request->name()));
        H5M_RETURN_IF_ERROR(
            CheckAgain(environment_, principal, OneFile(Right::kOperate, request->name())));
        H5M_RETURN_IF_ERROR(file->SetOwner(request->owner()));
        spdlog::info("chown: file={} is of {} ({})", Quoted(request->name()),
                     request->owner().empty() ? "nobody" : LogValue(request->owner()),
                     CallerName(principal));
        H5M_ASSIGN_OR_RETURN(*response->mutable_file(), StatusOf(*file));
        return absl::OkStatus();
      });
}

grpc::Status FilesService::RemoveFile(grpc::ServerContext* context,
                                      const v1::RemoveFileRequest* request,
                                      v1::RemoveFileResponse* response) {
  return RunCall(
      environment_, *context, "RemoveFile", OneFile(Right::kDelete, request->name()),
      [&](const Principal& principal) {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        H5M_RETURN_IF_ERROR(CheckWriter(request->writer()));
        H5M_ASSIGN_OR_RETURN(const CallLease lease,
                             CallLease::Take(environment_, request->name(), principal, *context,
                                             CallLease::Writer::kRespect));
        H5M_RETURN_IF_ERROR(
            CheckAgain(environment_, principal, OneFile(Right::kDelete, request->name())));
        const absl::StatusOr<Bytes16> file_id = FileIdOf(request->name());
        H5M_ASSIGN_OR_RETURN(
            const store::RemovedFile removed,
            environment_.store.Remove(
                request->name(),
                MakeProvenance(request->writer(), principal.name, "", absl::InfinitePast()),
                removed_keep_));
        environment_.metrics.checks().Forget(request->name());
        environment_.quotas.Removed(removed);
        if (file_id.ok()) environment_.mirrors.Forget(*file_id);
        if (file_id.ok() && environment_.rates != nullptr) environment_.rates->Forget(*file_id);
        spdlog::info("remove: file={} as {} until {}, by {} ({})", Quoted(request->name()),
                     removed.id, absl::FormatTime(removed.expires, absl::UTCTimeZone()),
                     LogValue(request->writer().claimed_user()), CallerName(principal));
        *response->mutable_removed() = ToProto(removed);
        return absl::OkStatus();
      });
}

grpc::Status FilesService::ListRemovedFiles(grpc::ServerContext* context,
                                            const v1::ListRemovedFilesRequest* request,
                                            v1::ListRemovedFilesResponse* response) {
  return RunCall(
      environment_, *context, "ListRemovedFiles", AnyFile(Right::kRead),
      [&](const Principal& principal) { return ListRemoved(principal, *request, *response); });
}

// Page tokens are removal ids: a page starts after its token.
absl::Status FilesService::ListRemoved(const Principal& principal,
                                       const v1::ListRemovedFilesRequest& request,
                                       v1::ListRemovedFilesResponse& response) {
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError(StrCat("page_size ", request.page_size(), " is negative"));
  }
  const int limit =
      request.page_size() == 0 ? kRemovedDefault : std::min(request.page_size(), kRemovedMax);
  H5M_ASSIGN_OR_RETURN(std::vector<store::RemovedFile> files, environment_.store.ListRemoved());
  std::erase_if(files, [&](const store::RemovedFile& file) {
    const store::FileOwner owner{true, file.owner};
    return !environment_.authenticator.RightsTo(principal, file.name, &owner).Has(Right::kRead);
  });
  auto at = files.begin();
  if (!request.page_token().empty()) {
    at = std::find_if(files.begin(), files.end(), [&](const store::RemovedFile& file) {
      return file.id == request.page_token();
    });
    if (at == files.end()) return absl::InvalidArgumentError("page_token: start the list again");
    ++at;
  }
  const store::RemovedFile* last = nullptr;
  PageBudget budget;
  for (; at != files.end(); ++at) {
    if (!request.name().empty() && at->name != request.name()) continue;
    v1::RemovedFile row = ToProto(*at);
    if (response.files_size() == limit || !budget.Takes(row)) {
      response.set_next_page_token(last->id);
      break;
    }
    *response.add_files() = std::move(row);
    last = &*at;
  }
  return absl::OkStatus();
}

grpc::Status FilesService::UndeleteFile(grpc::ServerContext* context,
                                        const v1::UndeleteFileRequest* request,
                                        v1::UndeleteFileResponse* response) {
  // The files are known only within the call. So the audit log shows the request's own words.
  Needs needs = AnyFile(Right::kDelete);
  needs[0].shown = request->name().empty() ? request->removal_id() : request->name();
  if (!request->new_name().empty()) needs.push_back({Right::kDelete, "", 0, request->new_name()});
  return RunCall(environment_, *context, "UndeleteFile", std::move(needs),
                 [&](const Principal& principal) {
                   return Undelete(*context, principal, *request, *response);
                 });
}

absl::Status FilesService::Undelete(const grpc::ServerContext& context, const Principal& principal,
                                    const v1::UndeleteFileRequest& request,
                                    v1::UndeleteFileResponse& response) {
  if (request.name().empty() == request.removal_id().empty()) {
    return absl::InvalidArgumentError("one of name and removal_id must be set");
  }
  H5M_ASSIGN_OR_RETURN(const std::vector<store::RemovedFile> files,
                       environment_.store.ListRemoved());
  const Authenticator& authenticator = environment_.authenticator;
  // The same answer for one that the caller may not see. Its owner counts, not that of a file which
  // has its name now.
  const auto is_meant = [&](const store::RemovedFile& file) {
    const store::FileOwner owner{true, file.owner};
    return (request.name().empty() ? IsId(file, request.removal_id())
                                   : file.name == request.name()) &&
           !authenticator.RightsTo(principal, file.name, &owner).empty();
  };
  const auto found = std::find_if(files.begin(), files.end(), is_meant);
  if (found == files.end()) return NothingRemoved(environment_.store, request);
  if (request.name().empty()) {
    const auto other = std::find_if(found + 1, files.end(), is_meant);
    if (other != files.end()) {
      return absl::InvalidArgumentError(StrCat(request.removal_id(), " may be ", found->id, " or ",
                                               other->id, ": give the whole id"));
    }
  }
  const store::FileOwner owner{true, found->owner};
  const std::string name = request.new_name().empty() ? found->name : request.new_name();
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  H5M_RETURN_IF_ERROR(authenticator.Check(principal, {Right::kDelete, found->name}, &owner));
  H5M_RETURN_IF_ERROR(authenticator.Check(principal, {Right::kDelete, name}));
  H5M_ASSIGN_OR_RETURN(
      const CallLease lease,
      CallLease::Take(environment_, name, principal, context, CallLease::Writer::kRespect));
  H5M_RETURN_IF_ERROR(CheckAgain(environment_, principal, OneFile(Right::kDelete, name)));
  H5M_RETURN_IF_ERROR(CheckNewName(environment_, principal, Right::kDelete, name, owner));
  H5M_RETURN_IF_ERROR(environment_.quotas.MayUndelete(*found, name));
  H5M_RETURN_IF_ERROR(environment_.store.Undelete(found->id, name).status());
  environment_.quotas.Undeleted(*found, name);
  spdlog::info("undelete: {} as file={} ({})", found->id, Quoted(name), CallerName(principal));
  return TellDone(name, *response.mutable_file());
}

absl::Status FilesService::TellDone(const std::string& name, v1::FileStatus& told) {
  absl::StatusOr<v1::FileStatus> status = StatusOfName(name);
  if (!status.ok()) return rpc::WithoutElsewhere(status.status());
  told = *std::move(status);
  return absl::OkStatus();
}

}  // namespace h5mirror::server
