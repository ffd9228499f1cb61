// The memory of this process, and the shares of its limit.
#ifndef H5MIRROR_SERVER_SETTINGS_MEMORY_H_
#define H5MIRROR_SERVER_SETTINGS_MEMORY_H_

#include <cstdint>

namespace h5mirror::server {

// Resident bytes of the process now; 0: /proc does not say.
uint64_t ResidentBytes();

// The parts of memory_max. The rest is for code, threads and the allocator.
struct MemoryShares {
  uint64_t store_bytes = 0;   // index of staged pages, buffers of apply and of readers
  uint64_t grpc_bytes = 0;    // gRPC's quota: receive buffers of all connections
  uint64_t window_bytes = 0;  // within grpc_bytes: probed windows of all connections
  int lookahead_bytes = 0;    // per stream: the bytes that a client may send unasked
};
MemoryShares ShareMemory(uint64_t memory_max_bytes);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_MEMORY_H_
