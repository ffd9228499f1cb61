// Checks each call as soon as its headers have come, before gRPC takes memory for it. gRPC 1.51
// queues calls that it has not begun to serve without a bound, also calls that were reset meanwhile
// (CVE-2023-44487). It enforces its limit of streams only once the client has acknowledged it.
#ifndef H5MIRROR_SERVER_DOOR_CALL_GATE_H_
#define H5MIRROR_SERVER_DOOR_CALL_GATE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpc/grpc_security.h"
#include "grpcpp/grpcpp.h"
#include "server/door/auth.h"
#include "server/door/call_brake.h"
#include "server/door/front_door.h"

namespace h5mirror::server {

struct CallLimits {
  // Of one connection: calls that have headers and have not come to our code. They are half open,
  // wait for a thread, or were reset before. Calls without a valid token have a smaller limit.
  int waiting = 2048;
  int waiting_without_token = 16;
  // Of all connections. Beyond this, connections with more than waiting_without_token get no more
  // calls, and connections without a valid token get none without one.
  int waiting_in_all = 16384;
  // A connection that goes on after so many refused calls is cut; sooner without a valid token.
  int refused = 1024;
  int refused_without_token = 64;
  // Refusals of callers over their limits that are held back, of all callers and of one.
  size_t held = 1024;
  size_t held_of_caller = 512;
  // Calls that wait for munged or the name service: of all connections, and of one.
  size_t parked = 1024;
  size_t parked_of_connection = 64;
  absl::Duration parked_max = absl::Seconds(5);
};

// Thread-safe. gRPC shares ownership as long as it has connections.
class CallGate : public std::enable_shared_from_this<CallGate> {
 public:
  // `authenticator` and `door` must outlive Close().
  CallGate(const Authenticator& authenticator, FrontDoor& door, const CallLimits& limits)
      : authenticator_(&authenticator), door_(&door), limits_(limits) {}

  // A call has come to our code. `admitted`: its token is valid, or the server asks for none.
  void Begun(const grpc::ServerContextBase& context, bool admitted);
  // The same for a call to the health service, which needs no token.
  void ProbeBegun(const grpc::ServerContextBase& context);
  // The caller of a call is over its limits: `brake` is asked about its next ones.
  void Brake(const grpc::ServerContextBase& context, std::shared_ptr<CallBrake> brake);
  // Answers the calls that were held back, or have waited for munged, for long enough. To be called
  // several times a second.
  void OnTimer();
  // The server is stopping: refuses all calls from now on with kUnavailable, those that are held
  // back or wait too.
  void BeginStop();
  // From now on all calls are refused. Waits for those whose token is being checked.
  void Close();

  uint64_t refused_calls() const { return refused_calls_; }

  // A call whose headers have come.
  struct Arrival {
    grpc_auth_context& connection;
    int slot = 0;
    std::optional<std::string_view> authorization = std::nullopt;
    std::string_view method = {};  // "GetServer"
    bool is_probe = false;         // a health check
  };
  // Tells gRPC the decision about a call. From any thread, once.
  using Tell = absl::AnyInvocable<void(const absl::Status&)>;
  // OK: the call may go on. Called on a thread of gRPC. A token is checked without the lock, as its
  // signature may have to be verified. `tell` is called at once, or later.
  void Enter(const Arrival& arrival, Tell tell);

 private:
  struct Connection {
    double waiting = 0;
    double refused = 0;
    absl::Duration last;
    std::string grpc_peer;  // once a call has begun
    std::string own_number;
    uint64_t number = 0;  // FrontDoor::Claim()
    int slot = 0;
    bool is_admitted = false;
    bool is_cut = false;
  };

  // The question for Authenticate(), to be asked outside of the lock.
  struct Question {
    const Authenticator* authenticator = nullptr;
    std::optional<uid_t> uid;
    std::string grpc_peer;
  };

  // When the caller is looked up. kAlways: for a call that has waited for munged. Then bad
  // credentials count as refusals, and refusals end the connection.
  enum class Ask : uint8_t { kIfCrowded, kAlways };

  // The question to settle before the call may go on; nullopt: none.
  std::optional<Question> QuestionFor(const Connection& from, Ask ask)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the call, or refuses it. As Pass().
  std::optional<absl::Status> Book(Connection& from, const Arrival& arrival, Tell& tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_full() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasManyWaiting(const Connection& from) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Connection& ConnectionOf(grpc_auth_context& connection, int slot, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Connection* Find(const grpc::ServerContextBase& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The connection of a call that has come to our code; nullptr: unknown.
  Connection* TakeBegun(const grpc::ServerContextBase& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(Connection& connection, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wait(Connection& connection, double more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdle(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: the caller is not known yet, and `tell` is taken. The call goes on by Resume(), or is
  // refused if that takes too long.
  bool Park(const Arrival& arrival, Tell& tell);
  // The caller of a parked call is known now, or nothing more is to be heard of it.
  void Resume(uint64_t number);
  // Refuses the parked calls that are due, or all, because no answer came.
  void TellParked(bool all);
  // nullopt: the refusal is held back, and `tell` is taken.
  std::optional<absl::Status> Pass(const Arrival& arrival, Tell& tell, Ask ask = Ask::kIfCrowded);
  // The caller of a call, as far as its headers say.
  uint64_t CallerKey(std::string_view connection_number,
                     std::optional<std::string_view> authorization) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the caller's brake. As Pass().
  std::optional<absl::Status> AskBrake(Connection& from, const Arrival& arrival, Tell& tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(Connection& connection, absl::Status why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  const Authenticator* authenticator_ ABSL_GUARDED_BY(mutex_);
  FrontDoor* door_ ABSL_GUARDED_BY(mutex_);
  const CallLimits limits_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int questions_ ABSL_GUARDED_BY(mutex_) = 0;  // that are being answered
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // Callers that were over their limits lately, by CallerKey().
  struct Braked {
    std::shared_ptr<CallBrake> brake;
    absl::Duration last;
    size_t held = 0;
  };
  struct Held {
    absl::Duration due;
    uint64_t caller = 0;
    absl::Status why;
    Tell tell;
  };
  absl::flat_hash_map<uint64_t, Braked> braked_ ABSL_GUARDED_BY(mutex_);
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);  // by `due`
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // A call that waits for munged. gRPC keeps the connection's context until the call was told.
  struct Parked {
    absl::Duration due;
    grpc_auth_context* connection = nullptr;
    int slot = 0;
    std::string authorization;
    std::string method;
    Tell tell;
  };
  std::map<uint64_t, Parked> parked_
      ABSL_GUARDED_BY(mutex_);  // by a number that grows, so by `due`
  uint64_t last_parked_ ABSL_GUARDED_BY(mutex_) = 0;
  double waiting_in_all_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration last_forget_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> refused_calls_{0};
};

// The user at the other end of a call's Unix socket; nullopt: it came over the network.
std::optional<uid_t> UserOf(const grpc::ServerContextBase& context);

// The certificate that a call's client has shown, PEM; empty: none. Lives as long as the context.
std::string_view CertificateOf(const grpc::ServerContextBase& context);

// A key that tells connections apart, those of a Unix socket too. Without a gate, the peer.
std::string ConnectionKey(const grpc::ServerContextBase& context);

// Credentials whose calls pass `gate` as calls of `slot`. Takes ownership of `credentials`, TLS or
// insecure ones.
std::shared_ptr<grpc::ServerCredentials> GatedCredentials(grpc_server_credentials* credentials,
                                                          std::shared_ptr<CallGate> gate, int slot);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_CALL_GATE_H_
