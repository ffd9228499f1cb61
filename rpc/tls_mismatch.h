// Why a connection cannot come about that TLS is in the way of: one side speaks it and the other
// does not, or the server's certificate is not one that the client takes. gRPC's errors do not say
// so, or not in words for people.
#ifndef H5MIRROR_RPC_TLS_MISMATCH_H_
#define H5MIRROR_RPC_TLS_MISMATCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// What is in the way and the way out; unset: nothing of this kind, or it cannot be told. `error` is
// gRPC's, of a connection with `options` that has failed. Where it does not say, and no CA is set,
// the server is asked: on a connection of its own it gets the start of a TLS handshake, and its
// first bytes tell. Nothing else is sent, no token. A server is asked once in a minute; the answer
// is kept for as long. Blocks for at most `timeout`. Thread-safe.
std::optional<std::string> FindTlsMismatch(const ClientOptions& options, std::string_view error,
                                           absl::Duration timeout);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TLS_MISMATCH_H_
