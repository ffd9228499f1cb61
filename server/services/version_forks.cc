// Versions::ForkVersion and PromoteVersion: docs/design/044-forks.md.
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/head_reader.h"
#include "server/history/history_pruner.h"
#include "server/quotas/space_quotas.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"
#include "server/state/mirror_states.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

Needs NeedsOf(const v1::ForkVersionRequest& request) {
  return {{Right::kRead, request.name(), request.version()}, {Right::kWrite, request.new_name()}};
}

Needs NeedsOf(const v1::PromoteVersionRequest& request) {
  return {{Right::kRead, request.name(), request.version()},
          {Right::kRestore, request.into_name()}};
}

// Checks the common fields of both requests.
template <typename Request>
absl::StatusOr<Bytes16> CheckRequest(const Request& request) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  const auto request_id = FromByteString(request.request_id());
  if (!request_id.ok()) return absl::InvalidArgumentError("request_id is not 16 bytes");
  H5M_RETURN_IF_ERROR(CheckWriter(request.writer()));
  H5M_RETURN_IF_ERROR(CheckComment(request.comment()));
  return *request_id;
}

template <typename Request>
store::Provenance ProvenanceOf(const Request& request, const Principal& principal) {
  return MakeProvenance(request.writer(), principal.name, request.comment(), absl::InfinitePast());
}

// All of it counts, also where blocks are shared: either file may have to pay for them later.
absl::Status TakeSpace(WriterSpace& space, const std::string& name, uint64_t size_bytes) {
  H5M_RETURN_IF_ERROR(space.Open(name, size_bytes, /*may_create=*/true));
  const Extent all{0, size_bytes};
  return space.Write({&all, 1});
}

}  // namespace

grpc::Status VersionsService::ForkVersion(grpc::ServerContext* context,
                                          const v1::ForkVersionRequest* request,
                                          v1::ForkVersionResponse* response) {
  return RunLongCall(
      environment_, *context, "ForkVersion", NeedsOf(*request),
      [&](const Callers::Ticket& ticket) { return Fork(*context, ticket, *request, *response); });
}

absl::Status VersionsService::Fork(const grpc::ServerContext& context,
                                   const Callers::Ticket& ticket,
                                   const v1::ForkVersionRequest& request,
                                   v1::ForkVersionResponse& response) {
  const Principal& principal = ticket.principal();
  store::ForkRequest fork;
  H5M_ASSIGN_OR_RETURN(fork.request_id, CheckRequest(request));
  H5M_RETURN_IF_ERROR(store::CheckName(request.new_name()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  // Nobody begins to write the new name meanwhile.
  H5M_ASSIGN_OR_RETURN(const CallLease lease,
                       CallLease::Take(environment_, request.new_name(), principal, context,
                                       CallLease::Writer::kRespect));
  H5M_RETURN_IF_ERROR(CheckAgain(environment_, principal, NeedsOf(request)));
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo wanted, file->GetVersion(request.version()));
  WriterSpace space(&environment_.quotas);
  const absl::Cleanup measure = [&space] { space.End(); };
  // Where a file is there, the store answers a repeat of its request, or refuses.
  if (!environment_.store.OpenFile(request.new_name()).ok()) {
    H5M_RETURN_IF_ERROR(TakeSpace(space, request.new_name(), wanted.size_bytes));
  }
  fork.is_cancelled = [&] { return HasGone(context, ticket); };
  fork.provenance = ProvenanceOf(request, principal);
  fork.access = {
      0,
      HeadReaderOf(principal, environment_.authenticator.RightsTo(principal, request.new_name())),
      OwnerName(principal)};
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo made,
                       environment_.store.Fork(*file, wanted.version, request.new_name(), fork));
  environment_.pruner.Grew(request.new_name());
  spdlog::info("fork: file={} version {} as file={}, by {} ({})", Quoted(request.name()),
               wanted.version, Quoted(request.new_name()),
               LogValue(request.writer().claimed_user()), CallerName(principal));
  *response.mutable_version() = ToProto(made);
  return absl::OkStatus();
}

grpc::Status VersionsService::PromoteVersion(grpc::ServerContext* context,
                                             const v1::PromoteVersionRequest* request,
                                             v1::PromoteVersionResponse* response) {
  return RunLongCall(environment_, *context, "PromoteVersion", NeedsOf(*request),
                     [&](const Callers::Ticket& ticket) {
                       return Promote(*context, ticket, *request, *response);
                     });
}

absl::StatusOr<std::optional<CallLease>> VersionsService::LeaseFor(
    const grpc::ServerContext& context, const Principal& principal,
    const v1::PromoteVersionRequest& request) {
  std::optional<CallLease> lease;
  if (!request.dry_run()) {
    H5M_ASSIGN_OR_RETURN(CallLease taken,
                         CallLease::Take(environment_, request.into_name(), principal, context,
                                         CallLease::Writer::kRespect));
    lease.emplace(std::move(taken));
  } else if (const auto holder = environment_.leases.HolderOf(request.into_name())) {
    return absl::FailedPreconditionError(
        BeingWritten(environment_.authenticator, principal, request.into_name(), *holder));
  }
  return lease;
}

absl::Status VersionsService::Promote(const grpc::ServerContext& context,
                                      const Callers::Ticket& ticket,
                                      const v1::PromoteVersionRequest& request,
                                      v1::PromoteVersionResponse& response) {
  const Principal& principal = ticket.principal();
  store::PromoteRequest promote;
  H5M_ASSIGN_OR_RETURN(promote.request_id, CheckRequest(request));
  H5M_ASSIGN_OR_RETURN(const auto fork, Open(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto into, Open(request.into_name()));
  H5M_ASSIGN_OR_RETURN(const std::optional<CallLease> lease, LeaseFor(context, principal, request));
  H5M_RETURN_IF_ERROR(CheckAgain(environment_, principal, NeedsOf(request)));
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo wanted, fork->GetVersion(request.version()));
  if (environment_.quotas.ledger.is_on()) {
    H5M_ASSIGN_OR_RETURN(const store::FileInfo info, into->Info());
    H5M_RETURN_IF_ERROR(
        environment_.quotas.MayRollBack(request.into_name(), wanted.size_bytes, info.size_bytes));
  }
  promote.is_cancelled = [&] { return HasGone(context, ticket); };
  promote.version = wanted.version;
  promote.provenance = ProvenanceOf(request, principal);
  if (request.dry_run()) promote.mode = store::PromoteMode::kTry;
  H5M_ASSIGN_OR_RETURN(const store::Promotion made, into->Promote(*fork, promote));
  *response.mutable_version() = ToProto(made.version);
  response.set_unchanged(made.unchanged);
  response.set_promoted_version(made.promoted);
  response.set_differing_bytes(static_cast<int64_t>(made.differing_bytes));
  if (request.dry_run() || made.unchanged) return absl::OkStatus();
  environment_.pruner.Grew(request.into_name());
  environment_.quotas.counter.Changed(request.into_name());
  if (const auto info = into->Info(); info.ok()) environment_.mirrors.Settle(*info);
  spdlog::info("promote: file={} version {} made version {} of file={}, by {} ({})",
               Quoted(request.name()), made.promoted, made.version.version,
               Quoted(request.into_name()), LogValue(request.writer().claimed_user()),
               CallerName(principal));
  return absl::OkStatus();
}

}  // namespace h5mirror::server
