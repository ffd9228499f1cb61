// The caller of an HTTP request.
#ifndef H5MIRROR_SERVER_HTTP_HTTP_CALLER_H_
#define H5MIRROR_SERVER_HTTP_HTTP_CALLER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/calls/call_source.h"
#include "server/door/client_certificates.h"
#include "server/door/peer.h"

namespace h5mirror::server {

// The caller, by its connection and the headers of its request.
struct HttpIdentity {
  std::optional<std::string> authorization = std::nullopt;  // "Bearer TOKEN"
  Peer peer = {};
  std::string connection_key = {};
  // The client's certificate and those between it and the authority, DER, as the handshake has
  // shown that the client has the key of the first. Their signatures are not verified yet.
  std::vector<std::string> certificates = {};
};

// In the form of grpc::ServerContextBase::peer().
std::string GrpcPeerText(const Peer& peer);

// Verifies the chain of a client against the present authority, and returns the client's own
// certificate, PEM. kUnauthenticated: no authority has signed it, it is not for clients, or it has
// expired.
absl::StatusOr<std::string> VerifyClientChain(const std::vector<std::string>& certificates,
                                              const ClientCertificates& clients);

// One request. Thread-safe.
class HttpCallSource final : public CallSource {
 public:
  // `clients`: null, where certificates do not count; must outlive this. `admit` is told that the
  // caller is known, before the call is looked at any further. `cancel` ends the connection.
  HttpCallSource(HttpIdentity identity, const ClientCertificates* clients,
                 std::function<void()> admit, std::function<void()> cancel)
      : identity_(std::move(identity)),
        clients_(clients),
        admit_(std::move(admit)),
        cancel_(std::move(cancel)) {}

  // Calls `then`, once, when Authenticate() need not wait for munged or for the name service any
  // more. `then` may be destroyed without a call.
  void Await(const Authenticator& authenticator, std::function<void()> then) const;

  absl::StatusOr<Principal> Authenticate(const Authenticator& authenticator) const override;
  std::string peer() const override { return GrpcPeerText(identity_.peer); }
  std::optional<uid_t> uid() const override;
  // The principal in the workers' queue before the caller is known.
  std::string worker_key() const { return identity_.peer.Name(); }
  std::string connection_key() const override { return identity_.connection_key; }
  // The answer ends the connection.
  void Brake(const Authenticator&, std::shared_ptr<CallBrake>) const override {}
  void Cancel(const absl::Status&) const override { cancel_(); }
  int HttpStatusOf(const absl::Status& refusal) const override;

 private:
  std::optional<std::string_view> authorization() const;

  const HttpIdentity identity_;
  const ClientCertificates* const clients_;
  const std::function<void()> admit_;
  const std::function<void()> cancel_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_HTTP_CALLER_H_
