// Whether gRPC may begin in this process.
#ifndef H5MIRROR_RPC_GRPC_THREADS_H_
#define H5MIRROR_RPC_GRPC_THREADS_H_

#include "absl/status/status.h"

namespace h5mirror::rpc {

// kResourceExhausted: gRPC has not begun in this process, and the limits leave it too few threads.
// It would hang, now or at its end. To be asked before the first channel or queue is made. Starts
// threads to find out, so it may take 1 ms. Thread-safe.
absl::Status CheckGrpcThreads();

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_GRPC_THREADS_H_
