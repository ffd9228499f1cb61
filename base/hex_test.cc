#include "base/hex.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

const Bytes16 kBytes = {0, 1, 2, 3, 0xfe, 0xff, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST(HexTest, RoundTripsInEitherCase) {
  EXPECT_EQ(HexOf(kBytes), "00010203feff060708090a0b0c0d0e0f");
  EXPECT_EQ(ParseHex16(HexOf(kBytes)).value(), kBytes);
  EXPECT_EQ(ParseHex16("00010203FEFF060708090A0B0C0D0E0F").value(), kBytes);
}

TEST(HexTest, RefusesWhatIsNo16BytesOfHex) {
  for (const char* text :
       {"", "00", "00010203feff060708090a0b0c0d0e0g", "00010203feff060708090a0b0c0d0e0f00"}) {
    const auto result = ParseHex16(text);
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << text;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("32 hex digits"));
  }
}

TEST(HexTest, ByteStringsHaveSixteenBytes) {
  EXPECT_EQ(FromByteString(ToByteString(kBytes)).value(), kBytes);
  EXPECT_TRUE(absl::IsInvalidArgument(FromByteString("short").status()));
}

}  // namespace
}  // namespace h5mirror
