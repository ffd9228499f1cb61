#include "base/block_digest.h"

#include <string>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

TEST(BlockDigestTest, IsTheCanonicalFormOfXxh3) {
  // XXH3_128bits of no bytes, big-endian, as xxhsum -H2 prints it.
  const BlockDigest digest = DigestOf("");
  EXPECT_EQ(std::string(digest.data(), 8), "\x99\xaa\x06\xd3\x01\x47\x98\xd8");
}

TEST(BlockDigestTest, ZerosOfAnySizeAreKnown) {
  ZeroDigests zeros(4096);
  EXPECT_EQ(zeros.Of(4096), DigestOf(std::string(4096, '\0')));
  EXPECT_EQ(zeros.Of(100), DigestOf(std::string(100, '\0')));
  EXPECT_EQ(zeros.Of(0), DigestOf(""));
  EXPECT_EQ(zeros.Of(4096), DigestOf(std::string(4096, '\0')));
}

TEST(BlockDigestTest, OneBitChangesIt) {
  std::string block(4096, 'x');
  const BlockDigest before = DigestOf(block);
  block[4095] ^= 1;
  EXPECT_NE(DigestOf(block), before);
}

}  // namespace
}  // namespace h5mirror
