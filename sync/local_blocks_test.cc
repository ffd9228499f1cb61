#include "sync/local_blocks.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

class LocalBlocksTest : public testing::Test {
 protected:
  LocalBlocksTest() : file_(std::tmpfile()) {}
  ~LocalBlocksTest() override { std::fclose(file_); }

  int fd() const { return fileno(file_); }
  void Put(off_t offset, const std::string& bytes) {
    ASSERT_EQ(pwrite(fd(), bytes.data(), bytes.size(), offset), static_cast<ssize_t>(bytes.size()));
  }

  std::FILE* file_;
};

TEST_F(LocalBlocksTest, BytesBeyondTheEndAreZeros) {
  Put(0, "abc");
  LocalBlocks blocks(fd(), 3, "x");
  EXPECT_EQ(*blocks.DigestOf({0, 3}), h5mirror::DigestOf("abc"));
  EXPECT_EQ(*blocks.DigestOf({0, 5}), h5mirror::DigestOf(std::string("abc\0\0", 5)));
  EXPECT_FALSE(*blocks.IsZeros({0, 4096}));
  EXPECT_TRUE(*blocks.IsZeros({4096, 4096}));
}

TEST_F(LocalBlocksTest, OnlyTheSizeThatItWasGivenCounts) {
  Put(0, std::string(10'000, 'x'));
  LocalBlocks blocks(fd(), 5000, "x");
  EXPECT_EQ(*blocks.DigestOf({4096, 4096}),
            h5mirror::DigestOf(std::string(904, 'x') + std::string(3192, '\0')));
  EXPECT_EQ(blocks.NextDataOffset(5000), std::nullopt);
}

TEST_F(LocalBlocksTest, HolesAreZerosAndSkipped) {
  constexpr uint64_t kFar = uint64_t{1} << 40;
  ASSERT_EQ(ftruncate(fd(), kFar + 4096), 0);
  Put(static_cast<off_t>(kFar), "end");
  LocalBlocks blocks(fd(), kFar + 4096, "x");
  EXPECT_TRUE(*blocks.IsZeros({0, 1 << 20}));
  EXPECT_EQ(*blocks.DigestOf({0, 1 << 20}), h5mirror::DigestOf(std::string(1 << 20, '\0')));
  EXPECT_EQ(blocks.NextDataOffset(4096), kFar);
  EXPECT_FALSE(*blocks.IsZeros({kFar, 4096}));
  // Backwards too.
  EXPECT_TRUE(*blocks.IsZeros({8192, 4096}));
}

}  // namespace
}  // namespace h5mirror::tools
