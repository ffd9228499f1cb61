// absl::Status <-> grpc::Status, the only place that translates.
#ifndef H5MIRROR_RPC_STATUS_H_
#define H5MIRROR_RPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace h5mirror::rpc {

// The codes are the same numbers; messages are cut at 4 KiB so that they fit a trailer.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_STATUS_H_
