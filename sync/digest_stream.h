// The server's digests of a version, block by block.
#ifndef H5MIRROR_SYNC_DIGEST_STREAM_H_
#define H5MIRROR_SYNC_DIGEST_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "rpc/client.h"
#include "rpc/digest_blocks.h"

namespace h5mirror::tools {

// The two levels: a difference in a large block is looked for in small ones.
inline constexpr uint64_t kLargeBlockBytes = 1 << 20;
inline constexpr uint64_t kSmallBlockBytes = 4096;

struct DigestQuery {
  std::string name;
  int64_t version = 0;  // 0: the newest
  uint64_t block_size_bytes = kLargeBlockBytes;
  // Rising, apart, of whole blocks but for the version's end; none: all of it.
  absl::Span<const Extent> ranges;
};

using rpc::DigestSink;

// Calls `sink` for each block, in order, and returns the version.
// Adds the bytes of request and answer to `*wire_bytes`.
// Errors: those of Files.DigestFile and of the sink; kDataLoss other digests than asked for.
absl::StatusOr<v1::Version> StreamDigests(rpc::Client& client, const DigestQuery& query,
                                          uint64_t* wire_bytes, DigestSink sink);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_DIGEST_STREAM_H_
