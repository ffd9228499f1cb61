// Common parts of the unary and server-streaming calls.
#ifndef H5MIRROR_SERVER_CALLS_CALL_H_
#define H5MIRROR_SERVER_CALLS_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "onion_store/store.h"
#include "server/calls/call_source.h"
#include "server/calls/callers.h"
#include "server/door/auth.h"
#include "server/metrics/metrics.h"
#include "server/state/commit_board.h"
#include "server/state/lease_table.h"

namespace h5mirror::server {

class CutBoard;
class EventSink;
class FairPool;
class HistoryPruner;
class MirrorStates;
class SpaceQuotas;
class WriteRates;

// The objects that all services share. They must outlive the services.
struct ServiceEnvironment {
  store::Store& store;
  LeaseTable& leases;
  Clock& clock;
  Metrics& metrics;
  const Authenticator& authenticator;
  CommitBoard& commits;
  HistoryPruner& pruner;
  MirrorStates& mirrors;
  SpaceQuotas& quotas;
  // Null only in tests of a single part.
  Callers* callers = nullptr;
  FairPool* workers = nullptr;  // for calls that hold no thread of gRPC
  CutBoard* cuts = nullptr;
  CallerLimits* limits = nullptr;
  EventSink* events = nullptr;
  WriteRates* rates = nullptr;
};

// Where a caller without a name comes from, for limits: its network address, or the user at the
// other end of its Unix socket. Empty, where it has a name.
std::string AddressOf(const grpc::ServerContextBase& context, const Principal& principal);

// The principal of a call by its `authorization` header, or by the user of its Unix socket.
absl::StatusOr<Principal> AuthenticateCall(const grpc::ServerContextBase& context,
                                           const Authenticator& authenticator);

// Callers::Admit(), and counts calls without a valid token.
absl::StatusOr<Callers::Ticket> AdmitCall(const ServiceEnvironment& environment,
                                          const grpc::ServerContextBase& context,
                                          const char* method, Needs needs, CallUse use,
                                          uint64_t cost = 1);
absl::StatusOr<Callers::Ticket> AdmitCall(const ServiceEnvironment& environment,
                                          std::shared_ptr<const CallSource> source,
                                          const char* method, Needs needs, CallUse use,
                                          uint64_t cost = 1);
// AdmitCall() with one need, of a file, on a thread that must not wait. If tables name owners, the
// caller is admitted by its right to any file; `late` then holds the check of this file.
absl::StatusOr<Callers::Ticket> AdmitWithoutWait(const ServiceEnvironment& environment,
                                                 const grpc::ServerContextBase& context,
                                                 const char* method, const Need& need, CallUse use,
                                                 LateCheck* late);

// Checks `needs` again, if tables name owners: since the call was admitted, the names may have got
// other files, of other owners. Call it when the files to change are open or leased, or when the
// answer was read. Errors: as Authenticator::Check().
absl::Status CheckAgain(const ServiceEnvironment& environment, const Principal& principal,
                        const Needs& needs);

// For a call that gives a file another name. The file keeps its owner, so the caller needs `right`
// to the new name as the name of this owner's file. Otherwise a file could get a name at which
// neither caller nor owner can reach it.
absl::Status CheckNewName(const ServiceEnvironment& environment, const Principal& principal,
                          Right right, const std::string& new_name, const store::FileOwner& owner);

// To be called at the end of a call that began at `start`. Measures, and logs errors for the
// operator: kInternal, kDataLoss, kResourceExhausted of the disk, a caller without the right.
void NoteCallDone(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                  std::string_view method, absl::Duration start, const absl::Status& status);
void NoteCallDone(const ServiceEnvironment& environment, const CallSource& source,
                  std::string_view method, absl::Duration start, const absl::Status& status);

// To be called at the end of a call that was not admitted. (Callers logs calls over a limit.)
void NoteRefused(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                 std::string_view method, absl::Duration start, const absl::Status& status);
void NoteRefused(const ServiceEnvironment& environment, const CallSource& source,
                 std::string_view method, absl::Duration start, const absl::Status& status);

// Runs the body of one call: authenticates, checks `needs` (none: any caller), measures, translates
// the status, and logs as NoteCallDone().
grpc::Status RunCall(const ServiceEnvironment& environment, const grpc::ServerContext& context,
                     const char* method, Needs needs,
                     absl::FunctionRef<absl::Status(const Principal&)> body);

// RunCall() of a body that may take minutes. It ends with kCancelled soon after HasGone(), and the
// caller hears why.
grpc::Status RunLongCall(const ServiceEnvironment& environment, const grpc::ServerContext& context,
                         const char* method, Needs needs,
                         absl::FunctionRef<absl::Status(const Callers::Ticket&)> body);
// Whether the caller of a long call has gone, or has lost a right that the call needs.
inline bool HasGone(const grpc::ServerContext& context, const Callers::Ticket& ticket) {
  return context.IsCancelled() || !ticket.revoked().ok();
}

// "a.h5 is being written by ..." for a caller with the right to know the writer. For other callers
// the text does not name the writer.
std::string BeingWritten(const Authenticator& authenticator, const Principal& principal,
                         const std::string& name, const LeaseHolder& holder);

// A lease of `name` that the server holds for one call, so that no writer comes in between. The
// destructor gives it back.
class CallLease {
 public:
  enum class Writer {
    kRespect,  // kFailedPrecondition names the writer that holds the lease
    kRevoke,   // the writer is fenced
  };
  static absl::StatusOr<CallLease> Take(const ServiceEnvironment& environment, std::string name,
                                        const Principal& principal,
                                        const grpc::ServerContext& context, Writer writer);
  ~CallLease();
  CallLease(CallLease&& other) noexcept;
  CallLease& operator=(CallLease&&) = delete;

  // True: a writer was fenced.
  bool revoked() const { return revoked_; }

 private:
  CallLease(LeaseTable& leases, std::string name, LeaseId lease, bool revoked)
      : leases_(leases), name_(std::move(name)), lease_(lease), revoked_(revoked) {}

  LeaseTable& leases_;
  std::string name_;
  LeaseId lease_;
  bool revoked_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_CALL_H_
