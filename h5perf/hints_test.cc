#include "h5perf/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::pperf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::StatusOr<Hints> Parse(std::string_view text) { return ParseHints(text, 8, 8); }

TEST(HintsTest, BlanksAroundKeysAndValuesDoNotCount) {
  EXPECT_THAT(*Parse(" a = 1 ;\tb=x y; ;c=;"),
              ElementsAre(Pair("a", "1"), Pair("b", "x y"), Pair("c", "")));
  EXPECT_THAT(*Parse(""), IsEmpty());
  EXPECT_THAT(*Parse(";;"), IsEmpty());
}

TEST(HintsTest, TheLastOfAKeyCounts) {
  EXPECT_THAT(*Parse("a=1;b=2;a=3"), ElementsAre(Pair("b", "2"), Pair("a", "3")));
}

TEST(HintsTest, WhatIsNoHintIsQuoted) {
  EXPECT_THAT(Parse("a=1;b").status().message(), HasSubstr("'b'"));
  EXPECT_THAT(Parse("=1").status().message(), HasSubstr("'=1'"));
  EXPECT_THAT(Parse("a=123456789").status().message(), HasSubstr("values of 8 bytes"));
  EXPECT_THAT(Parse("abcdefghi=1").status().message(), HasSubstr("keys of 8"));
}

}  // namespace
}  // namespace h5mirror::pperf
