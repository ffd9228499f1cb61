// Where a call comes from: gRPC, or the HTTP door.
#ifndef H5MIRROR_SERVER_CALLS_CALL_SOURCE_H_
#define H5MIRROR_SERVER_CALLS_CALL_SOURCE_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "server/door/auth.h"
#include "server/door/call_brake.h"

namespace h5mirror::server {

// One call, as its door knows it. Thread-safe.
class CallSource {
 public:
  virtual ~CallSource() = default;
  // The caller. Errors: as Authenticator::Authenticate().
  virtual absl::StatusOr<Principal> Authenticate(const Authenticator& authenticator) const = 0;
  // The other end, in the form of grpc::ServerContextBase::peer().
  virtual std::string peer() const = 0;
  // The user at the other end of a Unix socket.
  virtual std::optional<uid_t> uid() const = 0;
  // Tells connections apart, those of a Unix socket too.
  virtual std::string connection_key() const = 0;
  // The caller is over its limits: `brake` is to be asked about its next calls.
  virtual void Brake(const Authenticator& authenticator,
                     std::shared_ptr<CallBrake> brake) const = 0;
  // Ends the call with `why`, whether its client reads or not. Must not wait.
  virtual void Cancel(const absl::Status& why) const = 0;
  // The HTTP status code of an answer that refuses the call; 0: the call did not come by HTTP.
  virtual int HttpStatusOf(const absl::Status& refusal) const = 0;
};

// A call of gRPC. `context` must outlive this.
class GrpcCallSource final : public CallSource {
 public:
  explicit GrpcCallSource(const grpc::ServerContextBase& context) : context_(context) {}

  absl::StatusOr<Principal> Authenticate(const Authenticator& authenticator) const override;
  std::string peer() const override { return context_.peer(); }
  std::optional<uid_t> uid() const override;
  std::string connection_key() const override;
  void Brake(const Authenticator& authenticator, std::shared_ptr<CallBrake> brake) const override;
  // In place of TryCancel(), by which the client would hear of kCancelled: for an old one that is
  // the end of its work, and not one of the server's.
  void Cancel(const absl::Status& why) const override;
  int HttpStatusOf(const absl::Status&) const override { return 0; }

 private:
  const grpc::ServerContextBase& context_;
};

// Where a caller without a name comes from, for limits: its network address, or the user at the
// other end of its Unix socket. Empty, where it has a name.
std::string AddressOf(const CallSource& source, const Principal& principal);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_CALL_SOURCE_H_
