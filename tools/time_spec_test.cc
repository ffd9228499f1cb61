#include "tools/time_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

absl::TimeZone OneHourEast() { return absl::FixedTimeZone(3600); }
std::string Utc(std::string_view text) {
  const auto spec = ParseTimeSpec(text, OneHourEast());
  EXPECT_TRUE(spec.ok()) << spec.status();
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*S", spec->time, absl::UTCTimeZone());
}

TEST(TimeSpecTest, WithoutAZoneItIsLocalAndSaysSo) {
  EXPECT_EQ(Utc("2026-11-03T14:00"), "2026-11-03T13:00:00");
  EXPECT_EQ(ParseTimeSpec("2026-11-03T14:00:30", OneHourEast())->local_text, "2026-11-03T14:00:30");
}

TEST(TimeSpecTest, AZoneThatIsNamedIsTaken) {
  EXPECT_EQ(Utc("2026-11-03T14:00Z"), "2026-11-03T14:00:00");
  EXPECT_EQ(Utc("2026-11-03T14:00:05+02:00"), "2026-11-03T12:00:05");
  EXPECT_EQ(Utc("2026-11-03T14:00:05.25-00:30"), "2026-11-03T14:30:05.25");
  EXPECT_EQ(ParseTimeSpec("2026-11-03T14:00Z", OneHourEast())->local_text, "");
}

TEST(TimeSpecTest, WhatJsonPrintsIsTaken) {
  EXPECT_EQ(Utc("2026-11-03T14:00:05.123456789Z"), "2026-11-03T14:00:05.123456789");
}

TEST(TimeSpecTest, WhatIsNoTimeIsRefusedWithWhatWouldBeRight) {
  for (const char* text : {"", "2026-11-03", "14:00", "2026-11-03 14:00", "2026-1-3T14:00",
                           "2026-11-03T14", "2026-11-03T14:00:0", "2026-11-03T14:00:00.",
                           "2026-11-03T14:00 ", "2026-11-03T14:00+01", "2026-11-03T14:00CET"}) {
    const auto spec = ParseTimeSpec(text, OneHourEast());
    ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr("YYYY-MM-DDThh:mm"));
  }
}

TEST(TimeSpecTest, DaysThatDoNotExistAreRefused) {
  for (const char* text : {"2026-02-29T14:00", "2026-13-01T14:00", "2026-11-03T25:00Z"}) {
    EXPECT_FALSE(ParseTimeSpec(text, OneHourEast()).ok()) << text;
  }
}

}  // namespace
}  // namespace h5mirror::tools
