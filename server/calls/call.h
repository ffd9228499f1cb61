// What the unary and server-streaming calls have in common.
#ifndef H5MIRROR_SERVER_CALLS_CALL_H_
#define H5MIRROR_SERVER_CALLS_CALL_H_

#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "onion_store/store.h"
#include "server/calls/callers.h"
#include "server/door/auth.h"
#include "server/metrics/metrics.h"
#include "server/state/commit_board.h"
#include "server/state/lease_table.h"

namespace h5mirror::server {

class CutBoard;
class FairPool;
class HistoryPruner;
class MirrorStates;

// What all services share. Everything outlives them.
struct ServiceEnvironment {
  store::Store& store;
  LeaseTable& leases;
  Clock& clock;
  Metrics& metrics;
  const Authenticator& authenticator;
  CommitBoard& commits;
  HistoryPruner& pruner;
  MirrorStates& mirrors;
  // Of a server that is called; a part of one that is tested alone has none.
  Callers* callers = nullptr;
  FairPool* workers = nullptr;  // for calls that hold no thread of gRPC's
  CutBoard* cuts = nullptr;
};

// The principal of a call by its `authorization` header.
absl::StatusOr<Principal> AuthenticateCall(const grpc::ServerContextBase& context,
                                           const Authenticator& authenticator);

// Callers::Admit(), and counts those who are nobody.
absl::StatusOr<Callers::Ticket> AdmitCall(const ServiceEnvironment& environment,
                                          const grpc::ServerContextBase& context,
                                          std::optional<Right> right, CallUse use,
                                          uint64_t cost = 1);
// At the end of a call that began at `start`: measures, and logs what an operator should see
// (kInternal, kDataLoss, kResourceExhausted of the disk, a caller who may not).
void NoteCallDone(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                  std::string_view method, absl::Duration start, const absl::Status& status);

// At the end of a call that was not admitted. What was over a limit, Callers has logged.
void NoteRefused(const ServiceEnvironment& environment, const grpc::ServerContextBase& context,
                 std::string_view method, absl::Duration start, const absl::Status& status);

// Runs the body of one call: authenticates, checks `right` (nullopt: any caller), measures,
// translates the status, and logs what an operator should see (kInternal, kDataLoss).
grpc::Status RunCall(const ServiceEnvironment& environment, const grpc::ServerContext& context,
                     std::string_view method, std::optional<Right> right,
                     absl::FunctionRef<absl::Status(const Principal&)> body);

// A lease of `name` held by this server for one call, so that no writer comes in between;
// given back by the destructor.
class CallLease {
 public:
  enum class Writer {
    kRespect,  // kFailedPrecondition names the writer that holds the lease
    kRevoke,   // it is fenced
  };
  static absl::StatusOr<CallLease> Take(const ServiceEnvironment& environment, std::string name,
                                        const Principal& principal,
                                        const grpc::ServerContext& context, Writer writer);
  ~CallLease();
  CallLease(CallLease&& other) noexcept;
  CallLease& operator=(CallLease&&) = delete;

  // Whether a writer was there.
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
