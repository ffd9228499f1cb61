#include "server/services/files_service.h"

#include <algorithm>
#include <chrono>

#include "base/status_macros.h"
#include "base/strings.h"
#include "server/calls/page_budget.h"
#include "server/history/history_pruner.h"
#include "server/state/convert.h"
#include "server/state/mirror_states.h"
#include "server/state/write_rates.h"

namespace h5mirror::server {
namespace {

constexpr int kFilesDefault = 1000;
constexpr int kFilesMax = 10000;
// Files that are looked at together for their states.
constexpr size_t kStateStep = 500;
// Looks at files that were closed long take a disk's time. A page of them must not take minutes.
constexpr absl::Duration kLooksMax = absl::Seconds(2);

// True: some names may be hidden from the caller.
bool IsNarrowed(const Authenticator& authenticator, const Principal& principal) {
  return authenticator.has_rules() ||
         (principal.token != nullptr && !principal.token->limits.files.empty());
}

// The store names a path of this host, which a client has no use for.
absl::Status NotListed(const std::string& directory, const absl::Status& status) {
  if (!absl::IsNotFound(status) || directory.empty()) return status;
  return absl::NotFoundError(StrCat("no directory ", directory,
                                    "; `h5mirror ls` lists all files, `h5mirror status ", directory,
                                    "` tells of a file"));
}

absl::Status CheckDirectory(const std::string& directory) {
  return directory.empty() ? absl::OkStatus() : store::CheckName(directory);
}

absl::Status CheckStates(const v1::ListFilesRequest& request) {
  for (const int state : request.states()) {
    if (state != v1::MIRROR_STATE_UNSPECIFIED && v1::MirrorState_IsValid(state)) continue;
    return absl::InvalidArgumentError(StrCat("states: ", state, " is no state of a mirror"));
  }
  return absl::OkStatus();
}

// True: some files may be left out of the list.
bool IsChoice(const v1::ListFilesRequest& request) {
  return request.states_size() > 0 || request.forks_only();
}

v1::FileSummary ToProto(const store::FileSummary& file) {
  v1::FileSummary summary;
  summary.set_name(file.name);
  summary.set_size_bytes(static_cast<int64_t>(file.size_bytes));
  *summary.mutable_modify_time() = server::ToProto(file.modify_time);
  return summary;
}

// Waits until the head holds the newest durable cut. It waits in slices, so as to notice a caller
// that has gone and a server that stops.
absl::Status Settle(const grpc::ServerContext& context, store::File& file) {
  for (;;) {
    const absl::Status status = file.WaitApplied(absl::Milliseconds(200));
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
    if (std::chrono::system_clock::now() >= context.deadline()) return status;
  }
}

}  // namespace

grpc::Status FilesService::ListFiles(grpc::ServerContext* context,
                                     const v1::ListFilesRequest* request,
                                     v1::ListFilesResponse* response) {
  return RunCall(
      environment_, *context, "ListFiles", AnyFile(Right::kRead), [&](const Principal& principal) {
        return List([&] { return context->IsCancelled(); }, principal, *request, *response);
      });
}

// A look at each name until there are enough that the caller may read.
absl::StatusOr<std::vector<store::FileSummary>> FilesService::ListVisible(
    IsCancelled is_cancelled, const Principal& principal, const std::string& directory,
    std::string after, size_t count) {
  // Each step walks the directories from their top: few steps, where most names may be hidden.
  const size_t step = IsNarrowed(environment_.authenticator, principal)
                          ? std::max<size_t>(count, kFilesMax)
                          : count;
  // Then each name may take a look at the disk.
  const bool is_slow = environment_.authenticator.asks_owners();
  std::vector<store::FileSummary> visible;
  for (;;) {
    H5M_ASSIGN_OR_RETURN(std::vector<store::FileSummary> files,
                         environment_.store.List(directory, after, step));
    const bool is_last = files.size() < step;
    if (!files.empty()) after = files.back().name;
    for (store::FileSummary& file : files) {
      if (visible.size() == count || (is_slow && is_cancelled())) break;
      if (MayRead(principal, file.name)) visible.push_back(std::move(file));
    }
    if (is_last || visible.size() == count) return visible;
    if (is_cancelled()) return absl::CancelledError("the caller has gone");
  }
}

absl::Status FilesService::CheckNotHidden(IsCancelled is_cancelled, const Principal& principal,
                                          const std::string& directory) {
  if (directory.empty() || !IsNarrowed(environment_.authenticator, principal)) {
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(const std::vector<store::FileSummary> files,
                       ListVisible(is_cancelled, principal, directory, "", 1));
  return files.empty() ? absl::NotFoundError("it has no file to list") : absl::OkStatus();
}

bool FilesService::MayRead(const Principal& principal, const std::string& name) const {
  return environment_.authenticator.RightsTo(principal, name).Has(Right::kRead);
}

absl::StatusOr<bool> FilesService::Describe(const v1::ListFilesRequest& request,
                                            const store::FileSummary& file,
                                            v1::FileSummary& summary) {
  const absl::StatusOr<store::FileInfo> looked = environment_.store.Glance(file);
  if (absl::IsNotFound(looked.status())) return false;  // Gone since it was listed.
  // A damaged file must not hide the others. Its own status tells the damage.
  if (absl::IsDataLoss(looked.status())) return !IsChoice(request);
  H5M_RETURN_IF_ERROR(looked.status());
  const store::FileInfo& info = *looked;
  *summary.mutable_mirror() = environment_.mirrors.StatusOf(info);
  if (info.forked_from) *summary.mutable_forked_from() = ToProto(*info.forked_from);
  if (auto writer = LastWriterOf(info, environment_.leases.HolderOf(file.name))) {
    *summary.mutable_last_writer() = *std::move(writer);
  }
  summary.set_history_bytes(static_cast<int64_t>(info.history_bytes));
  if (environment_.rates != nullptr) {
    if (auto writes = environment_.rates->Of(info.file_id)) {
      *summary.mutable_recent_writes() = *std::move(writes);
    }
  }
  if (request.forks_only() && !info.forked_from) return false;
  const auto& states = request.states();
  return states.empty() ||
         std::find(states.begin(), states.end(), summary.mirror().state()) != states.end();
}

absl::Status FilesService::ListByLook(IsCancelled is_cancelled, const Principal& principal,
                                      const v1::ListFilesRequest& request, int limit,
                                      v1::ListFilesResponse& response) {
  std::string after = request.page_token();
  PageBudget budget;
  const absl::Duration end = environment_.clock.Monotonic() + kLooksMax;
  // Each step walks the directories anew: one, where all files are wanted.
  const size_t step =
      IsChoice(request) ? kStateStep : std::min<size_t>(static_cast<size_t>(limit) + 1, kFilesMax);
  for (size_t looked_at = 0; looked_at < kFilesMax; looked_at += step) {
    H5M_ASSIGN_OR_RETURN(const std::vector<store::FileSummary> files,
                         ListVisible(is_cancelled, principal, request.directory(), after, step));
    for (const store::FileSummary& file : files) {
      if (after != request.page_token() && environment_.clock.Monotonic() >= end) {
        response.set_next_page_token(after);
        return absl::OkStatus();
      }
      v1::FileSummary summary = ToProto(file);
      H5M_ASSIGN_OR_RETURN(bool is_wanted, Describe(request, file, summary));
      // Another file may have got the name since it was listed.
      if (environment_.authenticator.asks_owners() && !MayRead(principal, file.name)) {
        is_wanted = false;
      }
      const bool is_full = is_wanted && (response.files_size() == limit || !budget.Takes(summary));
      if (is_full) {
        response.set_next_page_token(after);
        return absl::OkStatus();
      }
      if (is_wanted) *response.add_files() = std::move(summary);
      after = file.name;
    }
    if (files.size() < step) return absl::OkStatus();
    if (is_cancelled()) return absl::CancelledError("the caller has gone");
  }
  response.set_next_page_token(after);
  return absl::OkStatus();
}

absl::Status FilesService::List(IsCancelled is_cancelled, const Principal& principal,
                                const v1::ListFilesRequest& request,
                                v1::ListFilesResponse& response) {
  H5M_RETURN_IF_ERROR(CheckDirectory(request.directory()));
  if (!request.page_token().empty() && !store::CheckName(request.page_token()).ok()) {
    return absl::InvalidArgumentError("page_token is not from this server");
  }
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError(StrCat("page_size ", request.page_size(), " is negative"));
  }
  const int limit =
      request.page_size() == 0 ? kFilesDefault : std::min(request.page_size(), kFilesMax);
  H5M_RETURN_IF_ERROR(CheckStates(request));
  if (IsChoice(request) || request.details()) {
    absl::Status listed = ListByLook(is_cancelled, principal, request, limit, response);
    // A page that is not the last has files that the caller may read.
    if (listed.ok() && response.files().empty() && response.next_page_token().empty()) {
      listed = CheckNotHidden(is_cancelled, principal, request.directory());
    }
    return listed.ok() ? listed : NotListed(request.directory(), listed);
  }
  // One more than asked for tells whether there is a next page.
  auto listed = ListVisible(is_cancelled, principal, request.directory(), request.page_token(),
                            static_cast<size_t>(limit) + 1);
  if (listed.ok() && listed->empty()) {
    const absl::Status seen = CheckNotHidden(is_cancelled, principal, request.directory());
    if (!seen.ok()) listed = seen;
  }
  if (!listed.ok()) return NotListed(request.directory(), listed.status());
  std::vector<store::FileSummary> files = *std::move(listed);
  if (files.size() > static_cast<size_t>(limit)) {
    files.resize(static_cast<size_t>(limit));
    response.set_next_page_token(files.back().name);
  }
  PageBudget budget;
  for (const store::FileSummary& file : files) {
    v1::FileSummary summary = ToProto(file);
    if (!budget.Takes(summary)) {
      response.set_next_page_token(response.files().rbegin()->name());
      break;
    }
    *response.add_files() = std::move(summary);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::FileStatus> FilesService::StatusOf(store::File& file) {
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file.Info());
  v1::FileStatus status = ToProto(file.name(), info, environment_.leases.HolderOf(file.name()));
  *status.mutable_mirror() = environment_.mirrors.StatusOf(info);
  status.set_history_notice(environment_.pruner.NoticeOf(file.name()));
  return status;
}

absl::StatusOr<v1::FileStatus> FilesService::GetStatus(const std::string& name) {
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file, environment_.store.OpenFile(name));
  return StatusOf(*file);
}

grpc::Status FilesService::GetFile(grpc::ServerContext* context, const v1::GetFileRequest* request,
                                   v1::GetFileResponse* response) {
  return RunCall(environment_, *context, "GetFile", OneFile(Right::kRead, request->name()),
                 [&](const Principal&) { return Get(*context, *request, *response); });
}

absl::Status FilesService::Get(const grpc::ServerContext& context,
                               const v1::GetFileRequest& request, v1::GetFileResponse& response) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                       environment_.store.OpenFile(request.name()));
  if (request.settle()) H5M_RETURN_IF_ERROR(Settle(context, *file));
  H5M_ASSIGN_OR_RETURN(*response.mutable_file(), StatusOf(*file));
  return absl::OkStatus();
}

grpc::Status FilesService::AdoptFile(grpc::ServerContext* context,
                                     const v1::AdoptFileRequest* request,
                                     v1::AdoptFileResponse* response) {
  return RunCall(
      environment_, *context, "AdoptFile", OneFile(Right::kRestore, request->name()),
      [&](const Principal& principal) {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        H5M_RETURN_IF_ERROR(CheckOrigin(request->origin()));
        H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                             environment_.store.OpenFile(request->name()));
        H5M_ASSIGN_OR_RETURN(const CallLease lease,
                             CallLease::Take(environment_, request->name(), principal, *context,
                                             CallLease::Writer::kRespect));
        H5M_RETURN_IF_ERROR(
            CheckAgain(environment_, principal, OneFile(Right::kRestore, request->name())));
        H5M_RETURN_IF_ERROR(file->SetOrigin(request->version(), FromProto(request->origin()),
                                            FromProto(request->local())));
        // The adopting client has compared the two files. They count as equal from now on, also
        // where nothing else tells so.
        H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
        environment_.mirrors.FoundEqual(request->name(), info.file_id);
        H5M_ASSIGN_OR_RETURN(*response->mutable_file(), StatusOf(*file));
        response->mutable_file()->clear_lease();  // The one of this call.
        return absl::OkStatus();
      });
}

}  // namespace h5mirror::server
