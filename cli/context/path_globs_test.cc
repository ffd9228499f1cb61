#include "cli/context/path_globs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

PathGlobs Globs(const std::vector<std::string>& patterns) {
  auto globs = PathGlobs::Parse(patterns);
  EXPECT_TRUE(globs.ok()) << globs.status();
  return globs.ok() ? *std::move(globs) : PathGlobs();
}

TEST(PathGlobsTest, APatternCoversWhatLiesBelow) {
  const PathGlobs globs = Globs({"/scratch", "/run*/raw", "**/tmp"});
  for (const char* path :
       {"/scratch", "/scratch/a/b", "/run1/raw", "/run1/raw/x", "/tmp", "/a/tmp", "/a/tmp/b"}) {
    EXPECT_TRUE(globs.Covers(path)) << path;
  }
  for (const char* path : {"/", "/scratchy", "/run1", "/run1/rawer", "/a/run1/raw", "/tmpa"}) {
    EXPECT_FALSE(globs.Covers(path)) << path;
  }
}

TEST(PathGlobsTest, AMatchIsOfThePathItself) {
  const PathGlobs globs = Globs({"/scratch", "/g/**"});
  EXPECT_TRUE(globs.Matches("/scratch"));
  EXPECT_FALSE(globs.Matches("/scratch/a"));
  EXPECT_TRUE(globs.Matches("/g/a/b"));
  EXPECT_FALSE(globs.Matches("/g"));
  EXPECT_FALSE(Globs({"**"}).Matches("/")) << "the root is always there";
}

TEST(PathGlobsTest, NoneCoverNothing) {
  EXPECT_TRUE(Globs({}).empty());
  EXPECT_FALSE(Globs({}).Covers("/a"));
}

TEST(PathGlobsTest, WhatIsNoPatternIsNamed) {
  for (const char* wrong : {"", "scratch", "/", "/g/", "//g", "/[a", "*/x"}) {
    const auto globs = PathGlobs::Parse({wrong});
    EXPECT_EQ(globs.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(globs.status().message()), HasSubstr("is no pattern of paths"));
  }
}

}  // namespace
}  // namespace h5mirror::tools
