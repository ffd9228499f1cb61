// Channels to a server, tuned for one long stream of large frames.
#ifndef H5MIRROR_RPC_CHANNEL_H_
#define H5MIRROR_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// Largest payload of one frame and largest message, both directions.
inline constexpr uint32_t kMaxFrameBytes = 1 << 20;
inline constexpr int kMaxMessageBytes = (1 << 20) + (512 << 10);
// The wire protocol versions that this build speaks.
inline constexpr uint32_t kProtocolOldest = 1;
inline constexpr uint32_t kProtocolNewest = 1;

// Makes a channel of its own (not one shared with others in the process). TLS when the
// options hold a CA. BDP probing is off and the windows are set by hand: measured 1.2-1.3
// times faster on loopback, see bench/mirror. Does not connect yet.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);

// The token that a call shows now; empty: none. May ask munged, as CurrentMungeToken() does.
std::string CredentialNow(const ClientOptions& options);

// Adds CredentialNow(), if any, to a call, and returns it.
std::string Authorize(const ClientOptions& options, grpc::ClientContext& context);

// True: the call that ended with `status` deserves a second try, and a credential other than
// `shown` is ready for it. A restarted server refuses each credential of munge that was decoded
// before its restart; other tokens stay valid. May ask munged.
bool RenewCredential(const ClientOptions& options, const std::string& shown,
                     const absl::Status& status);

// Waits until the channel is connected. kUnavailable names the server and the last error. Returns
// at once if TLS is in the way (rpc/tls_mismatch.h), and after `refused_max` if nothing listens at
// the address.
absl::Status WaitConnected(grpc::Channel& channel, const ClientOptions& options,
                           absl::Duration timeout,
                           absl::Duration refused_max = absl::InfiniteDuration());

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CHANNEL_H_
