// A local file as blocks to compare: bytes beyond its end read as zeros, and holes are not read.
#ifndef H5MIRROR_SYNC_LOCAL_BLOCKS_H_
#define H5MIRROR_SYNC_LOCAL_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/block_digest.h"
#include "base/extent.h"

namespace h5mirror::tools {

// Not thread-safe. `fd` must stay open. A file that changes meanwhile gives any mixture of old and
// new bytes. A caller that must tell them apart checks the file's times, or reads again.
class LocalBlocks {
 public:
  // `path` is for messages. Where `stopped` becomes true, all reads fail with kCancelled.
  LocalBlocks(int fd, uint64_t size_bytes, std::string path,
              std::function<bool()> stopped = nullptr);

  uint64_t size_bytes() const { return size_bytes_; }
  // Of the bytes of `block`, at most 1 MiB.
  absl::StatusOr<BlockDigest> DigestOf(Extent block);
  absl::StatusOr<bool> IsZeros(Extent block);
  // The start of the next stretch that is no hole, at or after `from`; unset: none.
  std::optional<uint64_t> NextDataOffset(uint64_t from);

 private:
  absl::StatusOr<std::string_view> Read(Extent block);
  bool IsHole(Extent block);

  const int fd_;
  const uint64_t size_bytes_;
  const std::string path_;
  const std::function<bool()> stopped_;
  std::string buffer_;
  ZeroDigests zeros_;
  // The stretch of data found last, and from where it was looked for: no other lies between.
  std::optional<Extent> data_;
  uint64_t searched_from_ = 0;
  bool searched_ = false;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_LOCAL_BLOCKS_H_
