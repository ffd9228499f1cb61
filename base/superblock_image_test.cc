#include "base/superblock_image.h"

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Written by HDF5 1.14.4: one file of 2072 bytes while an SWMR writer had it open, and after its
// close.
const std::string kOpen = FromHex(
    "894844460d0a1a0a030808050000000000000000ffffffffffffffff180800000000000030000000000000005fa62c"
    "fa");
const std::string kClosed = FromHex(
    "894844460d0a1a0a030808000000000000000000ffffffffffffffff1808000000000000300000000000000009bc6c"
    "fd");

TEST(SuperblockImageTest, AWritersFlagsAreClearedAsItsCloseDoes) {
  ASSERT_EQ(kOpen.size(), kSuperblockImageBytes);
  EXPECT_EQ(ClosedSuperblock(kOpen + "more", 0, 2072), kClosed);
}

TEST(SuperblockImageTest, AnSwmrWritersEndOfFileIsTheSize) {
  const auto image = ClosedSuperblock(kOpen, 0, 0x123456);
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->substr(28, 4), std::string("\x56\x34\x12\x00", 4));
  EXPECT_NE(image->substr(44), kClosed.substr(44));
}

TEST(SuperblockImageTest, AnSwmrWriterIsKnownByItsEndWhereItSetsNoFlags) {
  std::string grown = kClosed;
  grown[28] = 0x17;
  EXPECT_EQ(ClosedSuperblock(grown, 0, 2072), kClosed);
  grown[8] = 2;
  EXPECT_EQ(ClosedSuperblock(grown, 0, 2072), std::nullopt) << "SWMR needs version 3";
}

TEST(SuperblockImageTest, AnotherWritersEndOfFileStays) {
  std::string open = kOpen;
  open[11] = 1;
  EXPECT_EQ(ClosedSuperblock(open, 0, 2072), kClosed);
}

TEST(SuperblockImageTest, WhatIsClosedOrHasNoFlagsIsLeftAlone) {
  EXPECT_EQ(ClosedSuperblock(kClosed, 0, 2072), std::nullopt);
  std::string earliest = kOpen;
  earliest[8] = 0;
  EXPECT_EQ(ClosedSuperblock(earliest, 0, 2072), std::nullopt);
  EXPECT_EQ(ClosedSuperblock(kOpen.substr(0, 47), 0, 2072), std::nullopt);
  EXPECT_EQ(ClosedSuperblock("", 0, 2072), std::nullopt);
  std::string strange = kOpen;
  strange[9] = '\xff';
  EXPECT_EQ(ClosedSuperblock(strange, 0, 2072), std::nullopt);
}

TEST(SuperblockImageTest, AnSwmrWriterHasBothFlagsAsHdf5SetsThem) {
  std::string closed = kClosed;
  EXPECT_EQ(SwmrFlagIn(closed), HasSwmrFlag::kNo);
  EXPECT_EQ(SwmrSuperblock(closed), kOpen);
  closed[11] = 4;
  EXPECT_EQ(SwmrFlagIn(closed), HasSwmrFlag::kYes);
  EXPECT_EQ(SwmrSuperblock(closed + "more"), kOpen);
}

TEST(SuperblockImageTest, AnyWriterOfVersion3HasAFlag) {
  std::string bytes = kClosed;
  EXPECT_EQ(WriterFlagIn(bytes), HasWriterFlag::kNo);
  for (const char flags : {1, 4, 5}) {
    bytes[11] = flags;
    EXPECT_EQ(WriterFlagIn(bytes), HasWriterFlag::kYes);
  }
  bytes[8] = 2;
  EXPECT_EQ(WriterFlagIn(bytes), HasWriterFlag::kNo);
}

TEST(SuperblockImageTest, SuperblocksThatDifferInFlagsAreTheSameWithoutThem) {
  EXPECT_EQ(WithoutWriterFlags(kOpen + "more"), WithoutWriterFlags(kClosed + "more"));
  EXPECT_NE(WithoutWriterFlags(kOpen + "more"), WithoutWriterFlags(kClosed + "less"));
  std::string grown = kClosed;
  grown[28] = 0x19;
  EXPECT_NE(WithoutWriterFlags(grown), WithoutWriterFlags(kClosed));
  // Version 0 has its flags elsewhere, and no checksum.
  std::string old = kClosed, marked = kClosed;
  old[8] = marked[8] = 0;
  marked[20] = 1;
  EXPECT_EQ(WithoutWriterFlags(marked), WithoutWriterFlags(old));
  marked[24] = 1;
  EXPECT_NE(WithoutWriterFlags(marked), WithoutWriterFlags(old));
}

TEST(SuperblockImageTest, WhatIsNoSuperblockHasNoFlags) {
  EXPECT_EQ(WithoutWriterFlags(""), std::nullopt);
  EXPECT_EQ(WithoutWriterFlags(kOpen.substr(1)), std::nullopt);
  EXPECT_EQ(WithoutWriterFlags(kOpen.substr(0, 47)), std::nullopt);
  std::string old = kClosed.substr(0, 23);
  old[8] = 0;
  EXPECT_EQ(WithoutWriterFlags(old), std::nullopt);
}

TEST(SuperblockImageTest, WhatHasThemOrCannotHaveThemIsNotMarked) {
  EXPECT_EQ(SwmrSuperblock(kOpen), std::nullopt);
  std::string second = kClosed;
  second[8] = 2;
  EXPECT_EQ(SwmrSuperblock(second), std::nullopt) << "SWMR needs version 3";
  EXPECT_EQ(SwmrSuperblock(kClosed.substr(0, 47)), std::nullopt);
  EXPECT_EQ(SwmrFlagIn(kOpen.substr(0, 47)), HasSwmrFlag::kNo);
}

}  // namespace
}  // namespace h5mirror
