// Which server of a cluster a session talks to, once the configured one has named another.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OWNER_TARGET_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OWNER_TARGET_H_

#include <string>
#include <string_view>

#include "rpc/client_options.h"

namespace h5mirror::vfd {

// Not thread-safe.
class OwnerTarget {
 public:
  // `server`: as configured, with the newest token. False: the session stays where it is. So it
  // does after too many answers of this kind in a row, and where a credential would go over the
  // network as plain text.
  bool Follow(const rpc::ClientOptions& server, std::string_view address);

  // The server has taken the stream: the answers in a row are over.
  void OnOpened() { redirects_ = 0; }
  // Whoever has the file now, the server that is configured knows.
  void Forget() {
    target_.clear();
    redirects_ = 0;
  }

  // No other server was named.
  bool is_configured() const { return target_.empty(); }
  // `server` with the target of the one that was named. A credential that has come since, and may
  // not go there, goes to the configured server.
  rpc::ClientOptions Apply(rpc::ClientOptions server) const;

 private:
  std::string target_;  // for gRPC; empty: the configured server
  bool is_here_ = false;
  int redirects_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OWNER_TARGET_H_
