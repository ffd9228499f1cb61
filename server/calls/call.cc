#include "server/calls/call.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/door/call_gate.h"
#include "server/door/refusal_log.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {

std::string AddressOf(const CallSource& source, const Principal& principal) {
  if (!principal.name.empty()) return "";
  if (const std::optional<uid_t> uid = source.uid(); uid.has_value()) {
    return Peer{.kind = Peer::Kind::kUnixSocket, .uid = *uid}.Name();
  }
  const std::string text = source.peer();
  const std::optional<Peer> peer = ParseGrpcPeer(text);
  return peer.has_value() ? peer->Name() : text;
}

absl::StatusOr<Principal> GrpcCallSource::Authenticate(const Authenticator& authenticator) const {
  const auto& metadata = context_.client_metadata();
  const auto header = metadata.find("authorization");
  std::optional<std::string_view> authorization;
  if (header != metadata.end()) authorization = {header->second.data(), header->second.size()};
  const std::string peer = context_.peer();
  absl::StatusOr<Principal> principal = authenticator.Authenticate(
      authorization,
      {.uid = UserOf(context_), .grpc_peer = peer, .certificate_pem = CertificateOf(context_)});
  if (authenticator.gate() != nullptr) authenticator.gate()->Begun(context_, principal.ok());
  return principal;
}

std::optional<uid_t> GrpcCallSource::uid() const { return UserOf(context_); }

std::string GrpcCallSource::connection_key() const { return ConnectionKey(context_); }

void GrpcCallSource::Cancel(const absl::Status& why) const {
  const grpc::Status status = rpc::ToGrpc(why);
  grpc_call* const call = const_cast<grpc::ServerContextBase&>(context_).c_call();
  grpc_call_cancel_with_status(call, static_cast<grpc_status_code>(status.error_code()),
                               status.error_message().c_str(), nullptr);
}

void GrpcCallSource::Brake(const Authenticator& authenticator,
                           std::shared_ptr<CallBrake> brake) const {
  if (authenticator.gate() != nullptr) authenticator.gate()->Brake(context_, std::move(brake));
}

std::string AddressOf(const grpc::ServerContextBase& context, const Principal& principal) {
  return AddressOf(GrpcCallSource(context), principal);
}

absl::StatusOr<Principal> AuthenticateCall(const grpc::ServerContextBase& context,
                                           const Authenticator& authenticator) {
  return GrpcCallSource(context).Authenticate(authenticator);
}

absl::StatusOr<Callers::Ticket> AdmitCall(const ServiceEnvironment& environment,
                                          const grpc::ServerContextBase& context,
                                          const char* method, Needs needs, CallUse use,
                                          uint64_t cost) {
  return AdmitCall(environment, std::make_shared<GrpcCallSource>(context), method, std::move(needs),
                   use, cost);
}

absl::StatusOr<Callers::Ticket> AdmitCall(const ServiceEnvironment& environment,
                                          std::shared_ptr<const CallSource> source,
                                          const char* method, Needs needs, CallUse use,
                                          uint64_t cost) {
  absl::StatusOr<Callers::Ticket> ticket =
      environment.callers->Admit(std::move(source), method, std::move(needs), use, cost);
  if (absl::IsUnauthenticated(ticket.status())) environment.metrics.AuthenticationFailed();
  return ticket;
}

absl::StatusOr<Callers::Ticket> AdmitWithoutWait(const ServiceEnvironment& environment,
                                                 const grpc::ServerContextBase& context,
                                                 const char* method, const Need& need, CallUse use,
                                                 LateCheck* late) {
  if (!environment.authenticator.asks_owners()) {
    return AdmitCall(environment, context, method, {need}, use);
  }
  auto ticket = AdmitCall(environment, context, method, AnyFile(need.right), use);
  if (ticket.ok()) *late = ticket->RequireLater(need);
  return ticket;
}

absl::Status CheckAgain(const ServiceEnvironment& environment, const Principal& principal,
                        const Needs& needs) {
  if (!environment.authenticator.asks_owners()) return absl::OkStatus();
  for (const Need& need : needs) {
    H5M_RETURN_IF_ERROR(environment.authenticator.Check(principal, need));
  }
  return absl::OkStatus();
}

absl::Status CheckNewName(const ServiceEnvironment& environment, const Principal& principal,
                          Right right, const std::string& new_name, const store::FileOwner& owner) {
  if (!environment.authenticator.asks_owners()) return absl::OkStatus();
  return environment.authenticator.Check(principal, {right, new_name}, &owner);
}

void NoteCallDone(const ServiceEnvironment& environment, const CallSource& source,
                  std::string_view method, absl::Duration start, const absl::Status& status) {
  if (absl::IsInternal(status) || absl::IsDataLoss(status) || absl::IsResourceExhausted(status)) {
    spdlog::error("{} from {}: {}", method, source.peer(), status.ToString());
  } else if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    RefusalLog::Instance().Warn(method, source.peer(), status, environment.clock.Monotonic());
  }
  environment.metrics.RequestDone(method, status.code(), environment.clock.Monotonic() - start);
}

void NoteCallDone(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                  std::string_view method, absl::Duration start, const absl::Status& status) {
  NoteCallDone(environment, GrpcCallSource(context), method, start, status);
}

void NoteRefused(const ServiceEnvironment& environment, const CallSource& source,
                 std::string_view method, absl::Duration start, const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) {
    return NoteCallDone(environment, source, method, start, status);
  }
  environment.metrics.RequestDone(method, status.code(), environment.clock.Monotonic() - start);
}

void NoteRefused(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                 std::string_view method, absl::Duration start, const absl::Status& status) {
  NoteRefused(environment, GrpcCallSource(context), method, start, status);
}

grpc::Status RunCall(const ServiceEnvironment& environment, const grpc::ServerContext& context,
                     const char* method, Needs needs,
                     absl::FunctionRef<absl::Status(const Principal&)> body) {
  return RunLongCall(environment, context, method, std::move(needs),
                     [&](const Callers::Ticket& ticket) { return body(ticket.principal()); });
}

grpc::Status RunLongCall(const ServiceEnvironment& environment, const grpc::ServerContext& context,
                         const char* method, Needs needs,
                         absl::FunctionRef<absl::Status(const Callers::Ticket&)> body) {
  const absl::Duration start = environment.clock.Monotonic();
  const absl::StatusOr<Callers::Ticket> ticket =
      AdmitCall(environment, context, method, needs, CallUse::kThread);
  if (!ticket.ok()) {
    NoteRefused(environment, context, method, start, ticket.status());
    return rpc::ToGrpc(ticket.status());
  }
  absl::Status status = body(*ticket);
  if (absl::IsCancelled(status) && !ticket->revoked().ok()) status = ticket->revoked();
  // Between the check and the look the name may have got another file, of another owner.
  const bool only_reads = std::all_of(needs.begin(), needs.end(),
                                      [](const Need& need) { return need.right == Right::kRead; });
  if (status.ok() && only_reads) {
    status = CheckAgain(environment, ticket->principal(), needs);
  }
  ticket->Done(status);
  NoteCallDone(environment, context, method, start, status);
  return rpc::ToGrpc(status);
}

std::string BeingWritten(const Authenticator& authenticator, const Principal& principal,
                         const std::string& name, const LeaseHolder& holder) {
  // A file that is about to be made has no owner yet, whose right would say so.
  const bool may_know =
      !authenticator.asks_owners() || authenticator.RightsTo(principal, name).Has(Right::kRead);
  return StrCat(name, " is being written by ",
                may_know ? holder.Describe() : std::string("another session"));
}

absl::StatusOr<CallLease> CallLease::Take(const ServiceEnvironment& environment, std::string name,
                                          const Principal& principal,
                                          const grpc::ServerContext& context, Writer writer) {
  LeaseHolder holder;
  holder.session_id = RandomBytes16();
  holder.claimed_user = "a command";
  holder.verified_user = principal.name;
  holder.peer = context.peer();
  holder.since = environment.clock.Now();
  if (writer == Writer::kRevoke) {
    const bool held = environment.leases.HolderOf(name).has_value();
    const LeaseId lease = environment.leases.Seize(name, holder, "a rollback was asked for");
    return CallLease(environment.leases, std::move(name), lease, held);
  }
  const LeaseTable::ClaimResult claim = environment.leases.Claim(name, holder, nullptr);
  if (claim.lease == 0) {
    return absl::FailedPreconditionError(
        BeingWritten(environment.authenticator, principal, name, *claim.holder));
  }
  return CallLease(environment.leases, std::move(name), claim.lease, false);
}

CallLease::CallLease(CallLease&& other) noexcept
    : leases_(other.leases_),
      name_(std::move(other.name_)),
      lease_(std::exchange(other.lease_, 0)),
      revoked_(other.revoked_) {}

CallLease::~CallLease() {
  if (lease_ != 0) leases_.Release(name_, lease_);
}

}  // namespace h5mirror::server
