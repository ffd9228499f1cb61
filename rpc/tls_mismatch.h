// Finds out whether TLS is the reason why a connection fails: only one side speaks it, or the
// client refuses the server's certificate. gRPC's errors do not tell this, or not in words that
// people understand.
#ifndef H5MIRROR_RPC_TLS_MISMATCH_H_
#define H5MIRROR_RPC_TLS_MISMATCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// The reason and the way out; unset: TLS is not the reason, or it is unknown. `error` is gRPC's, of
// a failed connection with `options`. If it does not say, and no CA is set, this asks the server:
// on a connection of its own it sends the start of a TLS handshake, and reads the first bytes of
// the answer. It sends no token. A server is asked once in a minute, and the answer is remembered
// as long. Blocks for at most `timeout`. Thread-safe.
std::optional<std::string> FindTlsMismatch(const ClientOptions& options, std::string_view error,
                                           absl::Duration timeout);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TLS_MISMATCH_H_
