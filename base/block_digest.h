// The digest of a block: XXH3-128, in the canonical form that the wire carries. Two sides compare
// digests instead of sending the blocks (proto/h5mirror/v1/files.proto, DigestFile).
#ifndef H5MIRROR_BASE_BLOCK_DIGEST_H_
#define H5MIRROR_BASE_BLOCK_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace h5mirror {

using BlockDigest = std::array<char, 16>;

BlockDigest DigestOf(std::string_view block);

// Digests of zeros: a hole reads as zeros. The digest of a full block is computed once, so a sparse
// file costs next to nothing. Not thread-safe.
class ZeroDigests {
 public:
  // `block_size_bytes` > 0.
  explicit ZeroDigests(size_t block_size_bytes);
  // The digest of `size_bytes` zeros. `size_bytes` is at most the block size.
  const BlockDigest& Of(size_t size_bytes);

 private:
  const size_t block_size_bytes_;
  const BlockDigest full_;
  size_t other_size_bytes_ = 0;
  BlockDigest other_;  // the digest of other_size_bytes_ zeros
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_BLOCK_DIGEST_H_
