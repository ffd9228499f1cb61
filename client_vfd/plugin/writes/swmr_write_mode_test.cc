#include "client_vfd/plugin/writes/swmr_write_mode.h"

#include <string>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

std::string Superblock(char version, char flags) {
  std::string bytes =
      std::string("\211HDF\r\n\032\n") + version + std::string("\x08\x08", 2) + flags;
  bytes.resize(48);
  return bytes;
}

SwmrFlag FlagOf(uint64_t offset, const std::string& bytes) {
  return SwmrFlagOf(offset, bytes.size(), bytes.data());
}

TEST(SuperblockTest, SwmrWriteFlagIsSeen) {
  EXPECT_EQ(FlagOf(0, Superblock(3, 5)), SwmrFlag::kSet);
  EXPECT_EQ(FlagOf(512, Superblock(3, 4)), SwmrFlag::kSet);
}

TEST(SuperblockTest, OtherFlagsAndVersionsAreClear) {
  EXPECT_EQ(FlagOf(0, Superblock(3, 1)), SwmrFlag::kClear);
  EXPECT_EQ(FlagOf(0, Superblock(2, 4)), SwmrFlag::kClear);
}

TEST(SuperblockTest, DataIsNoSuperblock) {
  EXPECT_EQ(FlagOf(0, std::string(96, 'x')), SwmrFlag::kNotASuperblock);
  EXPECT_EQ(FlagOf(100, Superblock(3, 4)), SwmrFlag::kNotASuperblock);
  EXPECT_EQ(FlagOf(0, Superblock(3, 4).substr(0, 10)), SwmrFlag::kNotASuperblock);
}

}  // namespace
}  // namespace h5mirror::vfd
