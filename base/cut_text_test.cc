#include "base/cut_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

TEST(CutTextTest, SmallNumbersAreWholeAndLargeOnesShort) {
  EXPECT_EQ(CutText(0), "0");
  EXPECT_EQ(CutText(13), "13");
  EXPECT_EQ(CutText(999999999), "999999999");
  EXPECT_EQ(CutText(1000000000), "..000000");
  EXPECT_EQ(CutText(1795511182385517), "..385517");
  EXPECT_EQ(CutText(1795511182000042), "..000042");
}

TEST(CutTextTest, WhatIsWrittenIsReadBack) {
  const int64_t newest = 1795511182385517;
  for (const int64_t cut : {int64_t{0}, int64_t{999999999}, newest, newest - 1, newest - 385517,
                            newest - 385518, newest - 999999}) {
    EXPECT_EQ(ParseCut(CutText(cut), newest).value_or(-1), cut);
  }
  EXPECT_EQ(ParseCut("1795511182385517", newest).value_or(-1), newest);
  EXPECT_EQ(ParseCut("1795511182385999", newest).value_or(-1), 1795511182385999)
      << "one that is to come";
}

TEST(CutTextTest, WhatIsNoCutIsRefused) {
  for (const char* text :
       {"", "-1", "..", "..12345", "..1234567", "..-12345", "x", "12x", "99999999999999999999"}) {
    const auto parsed = ParseCut(text, 1795511182385517);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
  }
  EXPECT_THAT(ParseCut("..000012", 7).status().message(), testing::HasSubstr("its newest is 7"));
}

}  // namespace
}  // namespace h5mirror
