#include "base/block_digest.h"

// Compiled in: the plugin links this room, and other people's programs should not have to load
// another library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <string>

namespace h5mirror {

BlockDigest DigestOf(std::string_view block) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(block.data(), block.size()));
  BlockDigest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest));
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

ZeroDigests::ZeroDigests(size_t block_size_bytes)
    : block_size_bytes_(block_size_bytes),
      full_(DigestOf(std::string(block_size_bytes, '\0'))),
      other_(DigestOf("")) {}

const BlockDigest& ZeroDigests::Of(size_t size_bytes) {
  if (size_bytes == block_size_bytes_) return full_;
  if (size_bytes != other_size_bytes_) {
    other_ = DigestOf(std::string(size_bytes, '\0'));
    other_size_bytes_ = size_bytes;
  }
  return other_;
}

}  // namespace h5mirror
