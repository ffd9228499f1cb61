#include "sync/closed_copy.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/process/io.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

// Version 3, addresses of 8 bytes, base address `base`, both flags of an SWMR writer.
std::string SwmrSuperblock(char base) {
  std::string bytes("\x89HDF\r\n\x1a\n\x03\x08\x08\x05", 12);
  bytes += std::string(8, '\0') + std::string(8, '\xff') + std::string(8, '\1');
  bytes.resize(48, '\0');
  bytes[13] = base;
  return bytes;
}

class ClosedCopyTest : public testing::Test {
 protected:
  ClosedCopyTest() : file_(mkstemp(path_)) { unlink(path_); }

  void Write(const std::string& bytes) {
    ASSERT_TRUE(PwriteAll(file_.get(), 0, bytes, path_).ok());
  }
  std::string Read(uint64_t offset, size_t length) {
    std::string bytes(length, '\0');
    EXPECT_EQ(PreadUpTo(file_.get(), offset, bytes.data(), length, path_).value(), length);
    return bytes;
  }

  char path_[32] = "/tmp/closed_copy_test.XXXXXX";
  OwnedFd file_;
};

TEST_F(ClosedCopyTest, ASuperblockBehindAUserBlockIsClosed) {
  Write(std::string(1024, 'u') + SwmrSuperblock(4) + std::string(1000, 'd'));
  const auto patch = CloseCopy(file_.get(), 2072, path_);
  ASSERT_TRUE(patch.ok() && patch->has_value());
  EXPECT_EQ((*patch)->offset, 1024);
  EXPECT_EQ(Read(1024, 48), (*patch)->bytes);
  EXPECT_EQ(Read(1024 + 11, 1), std::string(1, '\0'));
  EXPECT_EQ(Read(1024 + 28, 2), "\x18\x08") << "the size";
  EXPECT_EQ(Read(1024 + 48, 1000), std::string(1000, 'd'));
  EXPECT_FALSE(CloseCopy(file_.get(), 2072, path_)->has_value()) << "it is closed now";
}

TEST_F(ClosedCopyTest, WhatIsNotHdf5IsLeftAsItIs) {
  Write(std::string(5000, 'x'));
  EXPECT_FALSE(CloseCopy(file_.get(), 5000, path_)->has_value());
  EXPECT_EQ(Read(0, 5000), std::string(5000, 'x'));
}

TEST(SuperblockPatchTest, PiecesAreCutAnywhere) {
  const SuperblockPatch patch{512, "abcdef"};
  std::string data(16, '.');
  patch.Apply(500, &data);
  EXPECT_EQ(data, "............abcd");
  patch.Apply(515, &data);
  EXPECT_EQ(data, "def.........abcd");
  patch.Apply(1000, &data);
  EXPECT_EQ(data, "def.........abcd");
}

}  // namespace
}  // namespace h5mirror::tools
