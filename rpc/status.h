// absl::Status <-> grpc::Status, the only place that translates.
#ifndef H5MIRROR_RPC_STATUS_H_
#define H5MIRROR_RPC_STATUS_H_

#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace h5mirror::rpc {

// Of the limit of a caller that asks too often, in messages of kResourceExhausted.
inline constexpr std::string_view kCallsASecond = "calls a second";
// The call was refused as its caller asks too often: nothing was done, and it may be made again.
bool IsTooOften(const absl::Status& status);

// The codes are the same numbers; messages are cut at 4 KiB so that they fit a trailer.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);
// Of a call that this process has not cancelled. A server that ends cancels the calls in hand:
// kCancelled becomes kUnavailable, and the message says so.
absl::Status FromServer(const grpc::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_STATUS_H_
