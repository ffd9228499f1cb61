#include "tools/text.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/exit_code.h"
#include "tools/table.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TextTest, ClipCutsAtCodePoints) {
  EXPECT_EQ(Clip("abc", 3), "abc");
  EXPECT_EQ(Clip("abcd", 3), "ab~");
  EXPECT_EQ(Clip("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9~");
}

TEST(TextTest, TimesAreLocalForPeopleAndUtcForPrograms) {
  const absl::Time time = absl::FromUnixSeconds(1793720000) + absl::Milliseconds(250);
  const absl::TimeZone zone = absl::FixedTimeZone(3600);
  EXPECT_THAT(LocalTime(time, zone), HasSubstr("+01"));
  EXPECT_THAT(UtcTime(time), testing::MatchesRegex("20..-..-..T..:..:...250000000Z"));
  EXPECT_EQ(LocalTime(FromProto({}), zone), "-");
  EXPECT_EQ(UtcTime(FromProto({})), "");
  EXPECT_EQ(FromProto(ToProto(time)), time);
}

TEST(TableTest, APipeGetsPlainWholeColumns) {
  Table table(std::vector<Column>{{"SIZE", Align::kRight}, {"NAME", Align::kLeft}});
  table.AddRow({"5 B", "a"});
  table.AddRow({"10 KiB", std::string(200, 'x')});
  std::ostringstream out;
  table.Print(out, Sink::kPipe, 40);
  EXPECT_EQ(out.str(), "  SIZE  NAME\n   5 B  a\n10 KiB  " + std::string(200, 'x') + "\n");
}

TEST(TableTest, ATerminalGetsBoldTitlesAndLinesThatFit) {
  Table table(std::vector<Column>{{"NAME", Align::kLeft}, {"COMMENT", Align::kLeft}});
  table.AddRow({"a", std::string(200, 'x')});
  std::ostringstream out;
  table.Print(out, Sink::kTerminal, 40);
  EXPECT_THAT(out.str(), HasSubstr("\033[1mNAME"));
  EXPECT_THAT(out.str(), HasSubstr("x~\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr(std::string(41, 'x'))));
}

TEST(TableTest, TitlesArePrintedOnceOverManyPages) {
  Table table(std::vector<Column>{{"NAME", Align::kLeft}});
  std::ostringstream out;
  for (const char* name : {"a", "b"}) {
    table.AddRow({name});
    table.Print(out, Sink::kPipe, 80);
  }
  EXPECT_EQ(out.str(), "NAME\na\nb\n");
}

TEST(ExitCodeTest, CodesMeanOneThing) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), 6);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError("")), 8);
}

}  // namespace
}  // namespace h5mirror::tools
