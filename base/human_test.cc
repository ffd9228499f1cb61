#include "base/human.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

TEST(HumanTest, BytesHaveOneDecimalAtMost) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(64 << 10), "64 KiB");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(HumanBytes(3ull << 29), "1.5 GiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16 EiB");
}

TEST(HumanTest, TimesAreUtc) {
  EXPECT_EQ(HumanTime(absl::FromUnixSeconds(1793714400)), "2026-11-03 14:00:00 UTC");
  EXPECT_EQ(HumanTime(absl::InfinitePast()), "never");
}

TEST(HumanTest, DurationsHaveTwoParts) {
  EXPECT_EQ(HumanDuration(absl::Milliseconds(250)), "250 ms");
  EXPECT_EQ(HumanDuration(absl::Milliseconds(4250)), "4.2 s");
  EXPECT_EQ(HumanDuration(absl::Milliseconds(59990)), "59.9 s");
  EXPECT_EQ(HumanDuration(absl::Seconds(125)), "2 min 5 s");
  EXPECT_EQ(HumanDuration(absl::Minutes(192)), "3 h 12 min");
  EXPECT_EQ(HumanDuration(absl::Hours(102)), "4 d 6 h");
  EXPECT_EQ(HumanDuration(-absl::Seconds(3)), "-3 s");
  EXPECT_EQ(HumanDuration(absl::InfiniteDuration()), "forever");
}

TEST(HumanTest, LongDurationsHaveDaysAndWeeks) {
  EXPECT_EQ(ParseLongDuration("30d").value(), absl::Hours(30 * 24));
  EXPECT_EQ(ParseLongDuration("2w").value(), absl::Hours(14 * 24));
  EXPECT_EQ(ParseLongDuration("1w2d12h30m").value(), absl::Hours(9 * 24 + 12) + absl::Minutes(30));
  EXPECT_EQ(ParseLongDuration(" 12h ").value(), absl::Hours(12));
  EXPECT_EQ(ParseLongDuration("0").value(), absl::ZeroDuration());
  EXPECT_EQ(ParseLongDuration("0d").value(), absl::ZeroDuration());
  for (const char* bad :
       {"", "d", "30", "-1d", "1.5d", "2d1w", "1d d", "tuesday", "inf", "99999999999d", "1d-1h"}) {
    const auto parsed = ParseLongDuration(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << bad;
    EXPECT_THAT(parsed.status().message(), HasSubstr("30d or 12h")) << bad;
  }
}

TEST(HumanTest, SizesAreParsedWithTheirUnits) {
  EXPECT_EQ(ParseBytes("65536").value(), 65536u);
  EXPECT_EQ(ParseBytes("512K").value(), 512u << 10);
  EXPECT_EQ(ParseBytes(" 64MiB ").value(), 64u << 20);
  EXPECT_EQ(ParseBytes("1 GiB").value(), 1u << 30);
  EXPECT_EQ(ParseBytes("15B").value(), 15u);
}

TEST(HumanTest, RefusedSizesAreQuotedWithTheReason) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "begin with a number"},           {"-1", "begin with a number"},
      {"64KB", "'KB' is no unit"},           {"1.5GiB", "no unit"},
      {"99999999999999999999", "too large"}, {"16777216TiB", "2^64"}};
  for (const auto& [text, why] : kCases) {
    const auto result = ParseBytes(text);
    ASSERT_TRUE(absl::IsInvalidArgument(result.status())) << text;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(why));
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(HumanTest, DurationsAreParsedAndNegativeOnesRefused) {
  EXPECT_EQ(ParseDuration("10s").value(), absl::Seconds(10));
  EXPECT_EQ(ParseDuration("500ms").value(), absl::Milliseconds(500));
  EXPECT_EQ(ParseDuration("2m").value(), absl::Minutes(2));
  EXPECT_EQ(ParseDuration("0").value(), absl::ZeroDuration());
  for (const char* text : {"", "10", "-1s", "inf", "2 weeks"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseDuration(text).status())) << text;
  }
}

}  // namespace
}  // namespace h5mirror
