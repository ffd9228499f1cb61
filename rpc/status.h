// absl::Status <-> grpc::Status, the only place that translates.
#ifndef H5MIRROR_RPC_STATUS_H_
#define H5MIRROR_RPC_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace h5mirror::rpc {

// The text by which a kResourceExhausted is known as a limit on calls a second.
inline constexpr std::string_view kCallsASecond = "calls a second";
// True: the call was refused because its caller makes too many calls a second. Nothing was done,
// and the call may be retried.
bool IsTooOften(const absl::Status& status);

// The codes are the same numbers; messages are cut at 4 KiB so that they fit a trailer.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);
// Of a call that this process has not cancelled. A server that ends cancels the calls in hand:
// kCancelled becomes kUnavailable, and the message says so.
absl::Status FromServer(const grpc::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_STATUS_H_
