#include "rpc/grpc_threads.h"

#include <grpc/grpc.h>

#include "base/free_threads.h"

namespace h5mirror::rpc {

absl::Status CheckGrpcThreads() {
  const size_t threads = ThreadsOfGrpc();
  if (grpc_is_initialized() != 0 || CanStartThreads(threads)) return absl::OkStatus();
  return absl::ResourceExhaustedError(TooFewThreads(threads));
}

}  // namespace h5mirror::rpc
