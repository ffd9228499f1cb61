// The digest by which two sides compare blocks of a file without sending them: XXH3-128, in the
// canonical form that the wire carries (proto/h5mirror/v1/files.proto, DigestFile).
#ifndef H5MIRROR_BASE_BLOCK_DIGEST_H_
#define H5MIRROR_BASE_BLOCK_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace h5mirror {

using BlockDigest = std::array<char, 16>;

BlockDigest DigestOf(std::string_view block);

// The digest of zeros, which a hole reads as. Computed once for blocks of the full size, so that a
// sparse file costs next to nothing. Not thread-safe.
class ZeroDigests {
 public:
  // `block_size_bytes` > 0.
  explicit ZeroDigests(size_t block_size_bytes);
  // Of `size_bytes` zeros, at most the block size.
  const BlockDigest& Of(size_t size_bytes);

 private:
  const size_t block_size_bytes_;
  const BlockDigest full_;
  size_t other_size_bytes_ = 0;
  BlockDigest other_;  // of the last size asked for that was not the full one
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_BLOCK_DIGEST_H_
