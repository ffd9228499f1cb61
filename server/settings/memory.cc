#include "server/settings/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace h5mirror::server {

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

MemoryShares ShareMemory(uint64_t memory_max_bytes) {
  MemoryShares shares;
  shares.store_bytes = memory_max_bytes / 4;
  shares.grpc_bytes = memory_max_bytes / 4;
  shares.window_bytes = memory_max_bytes / 8;
  shares.lookahead_bytes = static_cast<int>(
      std::clamp<uint64_t>(memory_max_bytes / 256, uint64_t{256} << 10, uint64_t{16} << 20));
  return shares;
}

}  // namespace h5mirror::server
