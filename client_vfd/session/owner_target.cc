#include "client_vfd/session/owner_target.h"

#include "rpc/server_address.h"

namespace h5mirror::vfd {
namespace {

// In a row. Servers of a cluster that disagree do so for a second: then it is asked again later.
constexpr int kRedirectsMax = 4;

// A credential does not go over the network as plain text. A source that has none now may have one
// at the next call.
bool MayGoTo(bool is_here, const rpc::ClientOptions& server) {
  const bool shows_none = server.token.empty() && server.token_source.empty();
  return is_here || shows_none || !server.ca_pem.empty();
}

}  // namespace

bool OwnerTarget::Follow(const rpc::ClientOptions& server, std::string_view address) {
  if (redirects_ == kRedirectsMax) return false;
  const auto named = rpc::ParseServerAddress(address);
  if (!named.ok() || !MayGoTo(named->loopback, server)) return false;
  ++redirects_;
  target_ = named->target;
  is_here_ = named->loopback;
  return true;
}

rpc::ClientOptions OwnerTarget::Apply(rpc::ClientOptions server) const {
  if (!target_.empty() && MayGoTo(is_here_, server)) server.target = target_;
  return server;
}

}  // namespace h5mirror::vfd
