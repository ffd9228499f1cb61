#include "server/http/file_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(FileTargetTest, APathIsAName) {
  const auto target = ParseFileTarget("beam/run%207.h5");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->name, "beam/run 7.h5");
  EXPECT_FALSE(target->version.has_value());
}

TEST(FileTargetTest, WhatFollowsTheLastAtIsTheVersion) {
  EXPECT_EQ(ParseFileTarget("a.h5@12")->version->number, 12);
  EXPECT_EQ(ParseFileTarget("a.h5@tag:raw")->version->tag, "raw");
  EXPECT_EQ(ParseFileTarget("a.h5@latest-3")->version->back, 3);
  EXPECT_EQ(ParseFileTarget("a.h5@2026-11-03T14%3A00")->version->at->time,
            absl::FromCivil(absl::CivilSecond(2026, 11, 3, 14, 0, 0), absl::UTCTimeZone()));
}

TEST(FileTargetTest, AnEncodedAtBelongsToTheName) {
  const auto target = ParseFileTarget("anna%40site.h5@7");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->name, "anna@site.h5");
  EXPECT_EQ(target->version->number, 7);
  EXPECT_THAT(Message(ParseFileTarget("anna@site.h5").status()), HasSubstr("%40"));
}

TEST(FileTargetTest, NoPathLeavesTheRoot) {
  for (const char* path :
       {"", "/etc/passwd", "../a.h5", "a/../../b.h5", "a/%2e%2e/b.h5", "a//b.h5", "a%00.h5",
        "a%0a.h5", "%2Fetc/passwd", "a/./b.h5", "a.h5.h5m/index", "..%2f..%2fb.h5", "a%ff.h5"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseFileTarget(path).status())) << path;
  }
}

TEST(FileTargetTest, APercentWantsTwoDigits) {
  EXPECT_EQ(*DecodePercent("%41%7a"), "Az");
  EXPECT_EQ(*DecodePercent(""), "");
  for (const char* text : {"%", "a%4", "%4g", "%g4", "a%"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePercent(text).status())) << text;
  }
}

}  // namespace
}  // namespace h5mirror::server
