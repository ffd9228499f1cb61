#include "rpc/time_spec.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::HasSubstr;

// A Tuesday, 10:30 in the zone below.
const absl::Time kNow = absl::FromCivil(absl::CivilMinute(2026, 11, 3, 9, 30), absl::UTCTimeZone());

absl::TimeZone OneHourEast() { return absl::FixedTimeZone(3600); }
std::string Utc(std::string_view text) {
  const auto spec = ParseTimeSpec(text, OneHourEast(), kNow);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return "";
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

TEST(TimeSpecTest, ASpaceIsAsGoodAsAT) {
  EXPECT_EQ(Utc("2026-11-03 14:00:30"), "2026-11-03T13:00:30");
  EXPECT_EQ(Utc("2026-11-03 14:00Z"), "2026-11-03T14:00:00");
}

// Its first and last moments: FILE@DAY is the newest version of that day or before.
TEST(TimeSpecTest, ADayIsAllOfItsHours) {
  for (const auto& [text, day] : {std::pair("2026-11-03", 3),
                                  {"today", 3},
                                  {"yesterday", 2},
                                  {"Monday", 2},
                                  {"last sunday", 1},
                                  {"sun", 1}}) {
    const auto spec = ParseTimeSpec(text, OneHourEast(), kNow);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const absl::CivilDay civil(2026, 11, day);
    EXPECT_EQ(spec->begin, absl::FromCivil(civil, OneHourEast())) << text;
    EXPECT_EQ(spec->time, absl::FromCivil(civil + 1, OneHourEast()) - absl::Nanoseconds(1)) << text;
    EXPECT_EQ(spec->local_text, text);
  }
  EXPECT_EQ(MeaningOf(*ParseTimeSpec("yesterday", OneHourEast(), kNow)),
            "yesterday is 2026-11-01T23:00:00Z to 2026-11-02T23:00:00Z");
}

TEST(TimeSpecTest, TheWeekdayOfTodayIsThatOfLastWeek) {
  EXPECT_EQ(Utc("tuesday 10:00"), "2026-10-27T09:00:00");
  EXPECT_EQ(Utc("wed 10:00"), "2026-10-28T09:00:00");
}

TEST(TimeSpecTest, ATimeOfADayIsAMoment) {
  EXPECT_EQ(Utc("yesterday 14:00"), "2026-11-02T13:00:00");
  EXPECT_EQ(Utc("last-monday-9:05:30"), "2026-11-02T08:05:30");
  EXPECT_EQ(Utc("today_0:00"), "2026-11-02T23:00:00");
  const auto spec = ParseTimeSpec("yesterday 14:00", OneHourEast(), kNow);
  EXPECT_EQ(spec->begin, spec->time);
  EXPECT_EQ(MeaningOf(*spec), "yesterday 14:00 is 2026-11-02T13:00:00Z");
}

TEST(TimeSpecTest, TimesThatHavePassedAreTakenFromNow) {
  EXPECT_EQ(Utc("now"), "2026-11-03T09:30:00");
  EXPECT_EQ(Utc("2h ago"), "2026-11-03T07:30:00");
  EXPECT_EQ(Utc("2-Hours-ago"), "2026-11-03T07:30:00");
  EXPECT_EQ(Utc("1h30m ago"), "2026-11-03T08:00:00");
  EXPECT_EQ(Utc("1 hour 30 minutes ago"), "2026-11-03T08:00:00");
  EXPECT_EQ(Utc("45 sec ago"), "2026-11-03T09:29:15");
  EXPECT_EQ(Utc("3 days ago"), "2026-10-31T09:30:00");
  EXPECT_EQ(Utc("a week ago"), "2026-10-27T09:30:00");
  EXPECT_FALSE(ParseTimeSpec("2h ago", OneHourEast(), kNow)->local_text.empty());
}

TEST(TimeSpecTest, WhatIsNoTimeIsRefusedWithWhatWouldBeRight) {
  for (const char* text : {"",
                           "14:00",
                           "2026-1-3T14:00",
                           "2026-11-03T14",
                           "2026-11-03T14:00:0",
                           "2026-11-03T14:00:00.",
                           "2026-11-03T14:00 ",
                           "2026-11-03T14:00+01",
                           "2026-11-03T14:00CET",
                           "2026-11-03  14:00",
                           "ago",
                           "h ago",
                           "-2h ago",
                           "3 months ago",
                           "2-3 days ago",
                           "1 2h ago",
                           "2 a week ago",
                           "99999 weeks ago",
                           "2h",
                           "tomorrow",
                           "last",
                           "last today",
                           "monday 25:00",
                           "monday 14",
                           "yesterday 14:+5",
                           "yesterday 14:00 UTC",
                           "monday  14:00"}) {
    const auto spec = ParseTimeSpec(text, OneHourEast(), kNow);
    ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr("YYYY-MM-DDThh:mm")) << text;
  }
}

TEST(TimeSpecTest, DaysThatDoNotExistAreRefused) {
  for (const char* text :
       {"2026-02-29T14:00", "2026-13-01T14:00", "2026-11-03T25:00Z", "2026-02-29"}) {
    EXPECT_FALSE(ParseTimeSpec(text, OneHourEast()).ok()) << text;
  }
}

}  // namespace
}  // namespace h5mirror::rpc
