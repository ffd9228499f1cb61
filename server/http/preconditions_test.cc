#include "server/http/preconditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kTime = absl::FromUnixSeconds(1'793'714'400) + absl::Milliseconds(700);

EntityTag Version(int64_t number) { return {EntityTag::Kind::kVersion, number, {1, 2, 3}, 0}; }

TEST(EntityTagTest, AVersionHasNoStartOfTheServer) {
  EXPECT_EQ(Format(Version(12)), "\"v12-01020300000000000000000000000000\"");
  EXPECT_EQ(ParseEntityTag(Format(Version(12))), Version(12));
}

TEST(EntityTagTest, ACutHasOne) {
  const EntityTag cut{EntityTag::Kind::kCut, 7, {9}, 0xab};
  EXPECT_EQ(Format(cut), "\"c7-09000000000000000000000000000000-00000000000000ab\"");
  EXPECT_EQ(ParseEntityTag(Format(cut)), cut);
}

TEST(EntityTagTest, OthersAreNoneOfOurs) {
  for (const char* text :
       {"", "\"", "\"\"", "\"v\"", "\"v0-01020300000000000000000000000000\"",
        "v1-01020300000000000000000000000000", "W/\"v1-01020300000000000000000000000000\"",
        "\"v+1-01020300000000000000000000000000\"", "\"v1-0102\"",
        "\"v01-01020300000000000000000000000000\"", "\"x1-01020300000000000000000000000000\"",
        "\"c1-01020300000000000000000000000000\"",
        "\"v99999999999999999999-01020300000000000000000000000000\"",
        "\"c1-01020300000000000000000000000000-xyz\""}) {
    EXPECT_EQ(ParseEntityTag(text), std::nullopt) << text;
  }
}

TEST(EntityTagTest, AListIsSplitAtItsCommas) {
  EXPECT_THAT(SplitEntityTags("\"a\", W/\"b,c\" ,,*"), ElementsAre("\"a\"", "W/\"b,c\"", "*"));
  EXPECT_THAT(SplitEntityTags(" , "), IsEmpty());
  EXPECT_THAT(SplitEntityTags("\"open"), IsEmpty());
  EXPECT_THAT(SplitEntityTags("\"a\", junk, \"b\""), ElementsAre("\"a\""));
}

TEST(HttpTimeTest, IsOfWholeSecondsInGreenwich) {
  const std::string text = FormatHttpTime(kTime);
  EXPECT_EQ(text, "Tue, 03 Nov 2026 14:00:00 GMT");
  EXPECT_EQ(ParseHttpTime(text), kTime - absl::Milliseconds(700));
  EXPECT_EQ(ParseHttpTime("Tue Nov  3 14:00:00 2026"), kTime - absl::Milliseconds(700));
  EXPECT_EQ(ParseHttpTime("2026-11-03T14:00:00Z"), std::nullopt);
  EXPECT_EQ(ParseHttpTime(""), std::nullopt);
  EXPECT_EQ(ParseHttpTime("infinite-future"), std::nullopt);
}

TEST(DecideTest, IfMatchWantsTheVeryTag) {
  EXPECT_EQ(Decide({.if_match = Format(Version(1))}, Version(1), kTime), Verdict::kProceed);
  EXPECT_EQ(Decide({.if_match = "*"}, Version(1), kTime), Verdict::kProceed);
  EXPECT_EQ(Decide({.if_match = Format(Version(2))}, Version(1), kTime), Verdict::kFailed);
  EXPECT_EQ(Decide({.if_match = "W/" + Format(Version(1))}, Version(1), kTime), Verdict::kFailed);
  EXPECT_EQ(Decide({.if_match = ""}, Version(1), kTime), Verdict::kFailed);
}

TEST(DecideTest, IfNoneMatchTakesAWeakTagToo) {
  EXPECT_EQ(Decide({.if_none_match = "\"x\", W/" + Format(Version(1))}, Version(1), kTime),
            Verdict::kNotModified);
  EXPECT_EQ(Decide({.if_none_match = Format(Version(2))}, Version(1), kTime), Verdict::kProceed);
}

TEST(DecideTest, ATagCountsMoreThanATime) {
  const std::string then = FormatHttpTime(kTime);
  const std::string before = FormatHttpTime(kTime - absl::Hours(1));
  EXPECT_EQ(Decide({.if_modified_since = then}, Version(1), kTime), Verdict::kNotModified);
  EXPECT_EQ(Decide({.if_modified_since = before}, Version(1), kTime), Verdict::kProceed);
  EXPECT_EQ(Decide({.if_none_match = "\"x\"", .if_modified_since = then}, Version(1), kTime),
            Verdict::kProceed);
  EXPECT_EQ(Decide({.if_unmodified_since = before}, Version(1), kTime), Verdict::kFailed);
  EXPECT_EQ(Decide({.if_match = "*", .if_unmodified_since = before}, Version(1), kTime),
            Verdict::kProceed);
  EXPECT_EQ(Decide({.if_modified_since = "yesterday"}, Version(1), kTime), Verdict::kProceed);
}

TEST(CountsRangeTest, OnlyWithTheVeryTag) {
  EXPECT_TRUE(CountsRange({}, Version(1)));
  EXPECT_TRUE(CountsRange({.if_range = Format(Version(1))}, Version(1)));
  EXPECT_FALSE(CountsRange({.if_range = Format(Version(2))}, Version(1)));
  EXPECT_FALSE(CountsRange({.if_range = "W/" + Format(Version(1))}, Version(1)));
  EXPECT_FALSE(CountsRange({.if_range = FormatHttpTime(kTime)}, Version(1)));
}

}  // namespace
}  // namespace h5mirror::server
