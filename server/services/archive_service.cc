#include "server/services/archive_service.h"

#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "rpc/timestamp.h"
#include "server/quotas/space_quotas.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(20);
constexpr absl::Duration kCountTimeout = absl::Seconds(10);
constexpr int kCountPagesMax = 100;
constexpr absl::Duration kTellEvery = absl::Milliseconds(200);

v1::ArchiveHistoryResponse ToProto(const ArchiveOrder::State& state) {
  const store::ArchiveProgress& progress = state.progress;
  v1::ArchiveHistoryResponse message;
  message.set_started(state.started);
  message.set_segments_archived(progress.segments_archived);
  message.set_segments_to_archive(progress.segments_to_archive);
  message.set_archived_bytes(static_cast<int64_t>(progress.archived_bytes));
  message.set_freed_bytes(static_cast<int64_t>(progress.freed_bytes));
  message.set_objects_deleted(progress.objects_deleted);
  message.set_left(progress.left);
  message.set_done(state.done);
  return message;
}

}  // namespace

grpc::Status ArchiveService::ArchiveHistory(
    grpc::ServerContext* context, const v1::ArchiveHistoryRequest* request,
    grpc::ServerWriter<v1::ArchiveHistoryResponse>* writer) {
  const auto run = [&](const Callers::Ticket& ticket) -> absl::Status {
    if (request->keep_bytes() < 0) {
      return absl::InvalidArgumentError("keep_bytes must not be negative");
    }
    H5M_RETURN_IF_ERROR(environment_.store.OpenFile(request->name()).status());
    H5M_ASSIGN_OR_RETURN(
        const auto order,
        keeper_.Order(request->name(), static_cast<uint64_t>(request->keep_bytes())));
    const absl::Cleanup give_up = [&] {
      order->GiveUp();
      environment_.quotas.counter.Changed(request->name());
    };
    absl::Time next = absl::Now();
    for (;;) {
      const ArchiveOrder::State state = order->Look();
      if (state.done) {
        H5M_RETURN_IF_ERROR(state.status);
        spdlog::info("archive: file={} by {}", Quoted(request->name()),
                     CallerName(ticket.principal()));
        writer->Write(ToProto(state));
        return absl::OkStatus();
      }
      if (HasGone(*context, ticket)) return absl::CancelledError("the caller has gone");
      if (absl::Now() >= next) {
        next = absl::Now() + kTellEvery;
        writer->Write(ToProto(state));
      }
      absl::SleepFor(kLookEvery);
    }
  };
  return RunLongCall(environment_, *context, "ArchiveHistory",
                     OneFile(Right::kOperate, request->name()), run);
}

absl::Status ArchiveService::CountObjects(const grpc::ServerContext& context,
                                          const std::string& name,
                                          v1::GetArchiveResponse& response) {
  H5M_ASSIGN_OR_RETURN(const auto file, environment_.store.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(const auto archive, find_(name));
  if (archive == nullptr) return absl::OkStatus();
  const std::string prefix = StrCat("files/", HexOf(file->file_id()), "/");
  int64_t objects = 0, bytes = 0;
  std::string next;
  const absl::Time deadline = absl::Now() + kCountTimeout;
  int pages = 0;
  do {
    if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration() || ++pages > kCountPagesMax) return absl::OkStatus();
    const auto page = archive->List(prefix, next, store::kObjectListMax, left);
    if (!page.ok()) return absl::OkStatus();  // The caller is told that calls fail.
    for (const store::ObjectInfo& object : page->objects) {
      ++objects;
      bytes += static_cast<int64_t>(object.size_bytes);
    }
    next = page->next;
  } while (!next.empty());
  response.set_file_objects(objects);
  response.set_file_bytes(bytes);
  return absl::OkStatus();
}

grpc::Status ArchiveService::GetArchive(grpc::ServerContext* context,
                                        const v1::GetArchiveRequest* request,
                                        v1::GetArchiveResponse* response) {
  const std::string& name = request->name();
  Needs needs = name.empty() ? Needs{} : OneFile(Right::kRead, name);
  const auto answer = [&](const Principal& principal) -> absl::Status {
    archive::RootArchive* const archive = keeper_.archive();
    response->set_has_archive(archive != nullptr);
    if (archive == nullptr) return absl::OkStatus();
    if (!name.empty()) H5M_RETURN_IF_ERROR(CountObjects(*context, name, *response));
    const archive::ArchiveStanding standing = archive->Standing();
    const ArchiveCounts counts = keeper_.Counts();
    const bool may_see = principal.rights.Has(Right::kOperate);
    if (may_see) response->set_place(archive->Describe());
    if (!standing.error.empty()) {
      response->set_error(may_see ? standing.error : "calls of the archive fail");
      *response->mutable_failing_since_time() = rpc::ToProto(standing.failing_since);
    }
    if (standing.last_success != absl::InfinitePast()) {
      *response->mutable_last_success_time() = rpc::ToProto(standing.last_success);
    }
    response->set_segments_archived(counts.segments_archived);
    response->set_archived_bytes(static_cast<int64_t>(counts.archived_bytes));
    if (counts.next_pass != absl::InfiniteFuture()) {
      *response->mutable_next_pass_time() = rpc::ToProto(counts.next_pass);
    }
    return absl::OkStatus();
  };
  return RunCall(environment_, *context, "GetArchive", std::move(needs), answer);
}

}  // namespace h5mirror::server
