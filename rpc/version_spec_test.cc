#include "rpc/version_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/version_request.h"

namespace h5mirror::rpc {
namespace {

using testing::HasSubstr;

const absl::TimeZone kZone = absl::FixedTimeZone(3600);

TEST(VersionSpecTest, NumbersAndLatestAreTaken) {
  EXPECT_EQ(ParseVersionSpec("12", kZone)->number, 12);
  EXPECT_EQ(*ParseVersionSpec("latest", kZone), VersionSpec());
  EXPECT_EQ(ParseVersionSpec("latest-3", kZone)->back, 3);
}

TEST(VersionSpecTest, TagsAndTimesAreTaken) {
  EXPECT_EQ(ParseVersionSpec("tag:published", kZone)->tag, "published");
  EXPECT_EQ(ParseVersionSpec("tag:latest-3", kZone)->tag, "latest-3");
  const auto at = ParseVersionSpec("2026-11-03T14:00", kZone);
  EXPECT_EQ(at->at->time, absl::FromCivil(absl::CivilHour(2026, 11, 3, 13), absl::UTCTimeZone()));
  EXPECT_EQ(ParseVersionSpec("yesterday", kZone)->at->local_text, "yesterday");
  EXPECT_EQ(ParseVersionSpec("2h-ago", kZone)->at->local_text, "2h-ago");
}

TEST(VersionSpecTest, WhatIsNoVersionIsRefusedWithWhatWouldBeRight) {
  for (const char* text : {"", "0", "-1", "+1", " 1", "1 ", "latest-", "latest--1", "Latest",
                           "latest+1", "tag:", "tag", "published", "99999999999999999999"}) {
    const auto spec = ParseVersionSpec(text, kZone);
    ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(spec.status().message(), HasSubstr("a number from 1, latest, latest-K, tag:NAME"));
  }
  EXPECT_THAT(ParseVersionSpec("2026-02-30", kZone).status().message(), HasSubstr("no such day"));
  EXPECT_THAT(ParseVersionSpec("3 months ago", kZone).status().message(), HasSubstr("a time is"));
}

}  // namespace
}  // namespace h5mirror::rpc
