#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace h5mirror {
namespace {

TEST(GlobTest, AStarStaysInItsDirectory) {
  EXPECT_TRUE(GlobMatches("runs/*.h5", "runs/a.h5"));
  EXPECT_TRUE(GlobMatches("runs/*.h5", "runs/.h5"));
  EXPECT_FALSE(GlobMatches("runs/*.h5", "runs/2026/a.h5"));
  EXPECT_FALSE(GlobMatches("runs/*.h5", "old/runs/a.h5"));
  EXPECT_FALSE(GlobMatches("*.h5", "runs/a.h5"));
  EXPECT_TRUE(GlobMatches("*/*.h5", "runs/a.h5"));
  EXPECT_TRUE(GlobMatches("a*b*c", "axxbyybzc"));
  EXPECT_FALSE(GlobMatches("a*b*c", "axxbyybz"));
}

TEST(GlobTest, TwoStarsGoThroughDirectories) {
  for (const char* name : {"runs/a.h5", "runs/2026/a.h5", "runs/2026/11/a.h5"}) {
    EXPECT_TRUE(GlobMatches("runs/**", name)) << name;
    EXPECT_TRUE(GlobMatches("**", name)) << name;
    EXPECT_TRUE(GlobMatches("**/*.h5", name)) << name;
    EXPECT_TRUE(GlobMatches("runs/**/a.h5", name)) << name;
    EXPECT_TRUE(GlobMatches("**/a.h5", name)) << name;
    EXPECT_FALSE(GlobMatches("**/b.h5", name)) << name;
  }
  EXPECT_TRUE(GlobMatches("**/a.h5", "a.h5"));
  EXPECT_FALSE(GlobMatches("**/a.h5", "xa.h5")) << "a directory is taken whole";
  EXPECT_FALSE(GlobMatches("runs/**", "runs"));
  EXPECT_FALSE(GlobMatches("runs/**", "runs2/a.h5"));
  EXPECT_TRUE(GlobMatches("**/raw/*.h5", "a/raw/b/raw/c.h5"));
  EXPECT_TRUE(GlobMatches("a**z", "a/b/z"));
}

TEST(GlobTest, OneCharacterAndClasses) {
  EXPECT_TRUE(GlobMatches("run?.h5", "run7.h5"));
  EXPECT_TRUE(GlobMatches("run?.h5", "run\xc3\xa4.h5")) << "one character of two bytes";
  EXPECT_FALSE(GlobMatches("run?x", "run/x"));
  EXPECT_TRUE(GlobMatches("run[0-35].h5", "run5.h5"));
  EXPECT_TRUE(GlobMatches("run[0-35].h5", "run2.h5"));
  EXPECT_FALSE(GlobMatches("run[0-35].h5", "run4.h5"));
  EXPECT_TRUE(GlobMatches("run[!0-3].h5", "run4.h5"));
  EXPECT_FALSE(GlobMatches("run[!0-3]x", "run/x"));
  EXPECT_TRUE(GlobMatches("[]]", "]"));
  EXPECT_TRUE(GlobMatches("\\*\\[", "*["));
  EXPECT_FALSE(GlobMatches("\\*", "x"));
}

TEST(GlobTest, ManyStarsTakeNoTime) {
  std::string glob;
  for (int i = 0; i < 100; ++i) glob += "*a";
  EXPECT_FALSE(GlobMatches(glob + "b", std::string(4000, 'a')));
  EXPECT_FALSE(GlobMatches("**/" + glob + "b", std::string(4000, 'a')));
}

TEST(GlobTest, WhatIsNoPatternIsSaidToBeNone) {
  for (const char* good : {"**", "runs/**", "a[b]c", "a\\[", "*.h5"}) {
    EXPECT_TRUE(CheckGlob(good).ok()) << good;
  }
  for (const char* bad : {"", "/runs/**", "runs/", "a[b", "a[]", "a\\"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckGlob(bad))) << bad;
  }
}

}  // namespace
}  // namespace h5mirror
