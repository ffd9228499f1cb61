#include "h5diff/find_matches.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

TEST(AttributeWishTest, TheNameEndsAtTheFirstEqualsSign) {
  EXPECT_EQ(ParseAttributeWish("units")->value, std::nullopt);
  const auto wish = ParseAttributeWish("formula=a=b");
  ASSERT_TRUE(wish.ok());
  EXPECT_EQ(wish->name, "formula");
  EXPECT_EQ(wish->value, "a=b");
  EXPECT_EQ(ParseAttributeWish("empty=")->value, "");
}

TEST(AttributeWishTest, WhatNamesNoneIsRefused) {
  for (const char* text : {"", "=5"}) {
    const auto wish = ParseAttributeWish(text);
    EXPECT_EQ(wish.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(wish.status().message()), HasSubstr("names no attribute"));
  }
}

TEST(AttributeWishTest, NumbersAreTheSameHoweverTheyAreWritten) {
  EXPECT_TRUE(IsSameNumber("1", "1.0"));
  EXPECT_TRUE(IsSameNumber("1e3", "1000"));
  EXPECT_TRUE(IsSameNumber("18446744073709551615", "18446744073709551615"));
  EXPECT_FALSE(IsSameNumber("9007199254740993", "9007199254740992"));
  EXPECT_FALSE(IsSameNumber("K", "K")) << "no numbers";
  EXPECT_FALSE(IsSameNumber("1", "2"));
  EXPECT_FALSE(IsSameNumber("", "0"));
}

}  // namespace
}  // namespace h5mirror::tools
