#include "cli/context/file_at_version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

const absl::TimeZone kZone = absl::FixedTimeZone(3600);

TEST(VersionSpecTest, TheLastAtSignSplits) {
  const auto wanted = ParseFileAtVersion("a@b/run.h5@latest-2", kZone);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->file, "a@b/run.h5");
  EXPECT_EQ(wanted->version.back, 2);
}

TEST(VersionSpecTest, AFileWithoutVersionIsRefused) {
  for (const char* text : {"run.h5", "@3", "", "a@b/run.h5"}) {
    EXPECT_EQ(ParseFileAtVersion(text, kZone).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace h5mirror::tools
