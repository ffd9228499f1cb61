#include "tools/version_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

TEST(VersionSpecTest, NumbersAndLatestAreTaken) {
  EXPECT_EQ(*ParseVersionSpec("12"), (VersionSpec{.number = 12}));
  EXPECT_EQ(*ParseVersionSpec("latest"), (VersionSpec{}));
  EXPECT_EQ(*ParseVersionSpec("latest-3"), (VersionSpec{.back = 3}));
}

TEST(VersionSpecTest, WhatIsNoVersionIsRefusedWithWhatWouldBeRight) {
  for (const char* text : {"", "0", "-1", "+1", " 1", "1 ", "latest-", "latest--1", "Latest",
                           "latest+1", "99999999999999999999"}) {
    const auto spec = ParseVersionSpec(text);
    ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(spec.status().message(), HasSubstr("a number from 1, latest, or latest-K"));
  }
}

TEST(VersionSpecTest, TheLastAtSignSplits) {
  const auto wanted = ParseFileAtVersion("a@b/run.h5@latest-2");
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->file, "a@b/run.h5");
  EXPECT_EQ(wanted->version.back, 2);
}

TEST(VersionSpecTest, AFileWithoutVersionIsRefused) {
  for (const char* text : {"run.h5", "@3", "", "a@b/run.h5"}) {
    EXPECT_EQ(ParseFileAtVersion(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace h5mirror::tools
