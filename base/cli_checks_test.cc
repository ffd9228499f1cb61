#include "base/cli_checks.h"

#include <gtest/gtest.h>

namespace h5mirror {
namespace {

// The message of `check` about `text`; empty: the check accepts it.
std::string Said(const CLI::Validator& check, std::string text) { return check(text); }

TEST(CliChecksTest, AWholeNumberOutOfRangeIsQuotedWithTheRange) {
  EXPECT_EQ(Said(WholeNumber(1), "1"), "");
  EXPECT_EQ(Said(WholeNumber(1), "0"), "'0' is no whole number of 1 or more");
  EXPECT_EQ(Said(WholeNumber(1), "1.5"), "'1.5' is no whole number of 1 or more");
  EXPECT_EQ(Said(WholeNumber(1), "99999999999999999999"),
            "'99999999999999999999' is no whole number of 1 or more");
  EXPECT_EQ(Said(WholeNumber(1, 64), "65"), "'65' is no whole number from 1 to 64");
}

TEST(CliChecksTest, ANumberIsFiniteAndInItsRange) {
  EXPECT_EQ(Said(AnyNumber(0.1, 3600), "2.5"), "");
  EXPECT_EQ(Said(AnyNumber(0.1, 3600), "0"), "'0' is no number from 0.1 to 3600");
  EXPECT_EQ(Said(AnyNumber(0.1, 3600), "nan"), "'nan' is no number from 0.1 to 3600");
  EXPECT_EQ(Said(AnyNumber(0.1, 3600), ""), "'' is no number from 0.1 to 3600");
}

TEST(CliChecksTest, ADurationIsQuotedWithItsFormOrRange) {
  const CLI::Validator tick = DurationFrom(absl::Milliseconds(10), absl::Hours(24));
  EXPECT_EQ(Said(tick, "1s"), "");
  EXPECT_EQ(Said(tick, "1x"),
            "'1x' is not a duration; write a number and ms, s, m or h, e.g. 500ms or 10s");
  EXPECT_EQ(Said(tick, "1ms"), "'1ms' is no duration from 10ms to 24h");
}

TEST(CliChecksTest, AnUnknownWordIsQuotedWithThoseThatAreKnown) {
  enum class Side { kLocal = 3, kRemote = 7 };
  const CLI::Validator side =
      OneOfEnum(std::map<std::string, Side>{{"local", Side::kLocal}, {"remote", Side::kRemote}});
  std::string text = "remote";
  EXPECT_EQ(side(text), "");
  EXPECT_EQ(text, "7");
  EXPECT_EQ(Said(side, "7"), "'7' is not one of local, remote");
  EXPECT_EQ(Said(side, "lcal"), "'lcal' is not one of local, remote; did you mean local?");
  EXPECT_EQ(Said(side, "both\n"), "'both\\n' is not one of local, remote");
}

}  // namespace
}  // namespace h5mirror
