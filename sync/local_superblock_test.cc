#include "sync/local_superblock.h"

#include <stdio.h>
#include <unistd.h>

#include <string>

#include "cli/process/io.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kSize = 4096;

// A superblock of `version` with 8-byte addresses that ends the file at `end_of_file`.
std::string Superblock(char version, uint64_t end_of_file, char flags = 0) {
  std::string bytes(96, '\0');
  bytes.replace(0, 8, std::string("\x89HDF\r\n\x1a\n", 8));
  bytes[8] = version;
  bytes[version < 2 ? 13 : 9] = 8;
  if (version >= 2) bytes[11] = flags;
  const size_t offset = version == 0 ? 40 : version == 1 ? 44 : 28;
  for (size_t i = 0; i < 8; ++i) bytes[offset + i] = static_cast<char>(end_of_file >> (8 * i));
  return bytes;
}

Hdf5State Look(const std::string& head, uint64_t at = 0) {
  FILE* file = tmpfile();
  EXPECT_TRUE(PwriteAll(fileno(file), at, head, "t").ok());
  EXPECT_EQ(ftruncate(fileno(file), kSize), 0);
  const Hdf5State state = LookAtHdf5(fileno(file), kSize);
  fclose(file);
  return state;
}

TEST(SuperblockTest, EndOfFileIsFoundInAllVersions) {
  for (char version : {0, 1, 2, 3}) {
    const auto parsed = ParseSuperblock(Superblock(version, 0x123456));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->end_of_file, 0x123456u) << int{version};
  }
}

TEST(SuperblockTest, AClosedFileIsClosedAlsoBehindAUserBlock) {
  EXPECT_EQ(Look(Superblock(0, kSize)), Hdf5State::kClosed);
  EXPECT_EQ(Look(Superblock(3, kSize), 1024), Hdf5State::kClosed);
}

TEST(SuperblockTest, AWritersFlagAndAMissingEndAreSeen) {
  EXPECT_EQ(Look(Superblock(3, kSize, 0x01)), Hdf5State::kOpen);
  EXPECT_EQ(Look(Superblock(3, kSize, 0x05)), Hdf5State::kOpen);
  EXPECT_EQ(Look(Superblock(0, kSize + 1)), Hdf5State::kCutShort);
}

TEST(SuperblockTest, WhatHasNoSignatureIsNotHdf5) {
  EXPECT_EQ(Look("GIF89a"), Hdf5State::kNotHdf5);
  EXPECT_EQ(Look(Superblock(0, kSize), 700), Hdf5State::kNotHdf5);
}

}  // namespace
}  // namespace h5mirror::tools
