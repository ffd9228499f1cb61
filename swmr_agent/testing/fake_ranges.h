// A cut's bytes for tests, and what was asked for of them.
#ifndef H5MIRROR_SWMR_AGENT_TESTING_FAKE_RANGES_H_
#define H5MIRROR_SWMR_AGENT_TESTING_FAKE_RANGES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/extent.h"
#include "rpc/version_source.h"
#include "swmr_agent/block_pool.h"

namespace h5mirror::agent {

inline std::string RandomBytes(uint64_t size, uint32_t seed) {
  std::minstd_rand random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Outlives its readers.
struct FakeRanges {
  explicit FakeRanges(std::string content) : bytes(std::move(content)) {}

  rpc::RangeReader Reader() {
    return [this](uint64_t offset, uint64_t length, rpc::RangeSink sink,
                  rpc::MetadataAhead* ahead) -> absl::Status {
      {
        absl::MutexLock lock(&mutex);
        asked.push_back({offset, length});
      }
      if (!failure.ok()) return failure;
      const absl::Status sunk = sink(offset, std::string_view(bytes).substr(offset, length));
      if (!sunk.ok() || ahead == nullptr) return sunk;
      uint64_t sent = 0;
      for (const uint64_t index : metadata) {
        if (index * kBlockBytes < ahead->from) continue;
        ahead->next = index * kBlockBytes;
        if (sent >= ahead->length_bytes) return absl::OkStatus();
        const auto block = std::string_view(bytes).substr(index * kBlockBytes, kBlockBytes);
        sent += block.size();
        const absl::Status status = ahead->sink(index * kBlockBytes, block);
        if (!status.ok()) return status;
      }
      ahead->next = 0;
      return absl::OkStatus();
    };
  }

  std::string bytes;
  std::set<uint64_t> metadata;  // blocks
  absl::Status failure;
  absl::Mutex mutex;
  std::vector<Extent> asked;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_TESTING_FAKE_RANGES_H_
