#include "cli/output/text.h"

#include <sstream>

#include "cli/output/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

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

TEST(TableTest, RowsThatArePrintedOneByOneStandInColumns) {
  Table table(std::vector<Column>{
      {"N", Align::kRight}, {"WHAT", Align::kLeft, Narrow::kClip, 8}, {"USER", Align::kLeft}});
  std::ostringstream out;
  table.AddRow({"2", "new", "ada"});
  table.Print(out, Sink::kPipe, 80);
  table.AddRow({"1", "changed", "bob"});
  table.Print(out, Sink::kPipe, 80);
  EXPECT_EQ(out.str(),
            "N  WHAT      USER\n"
            "2  new       ada\n"
            "1  changed   bob\n");
}

TEST(TableTest, OnATerminalTheFirstRowMakesRoomForTheNextOnes) {
  Table table(std::vector<Column>{{"WHAT", Align::kLeft, Narrow::kClip, 12},
                                  {"PROGRAM", Align::kLeft, Narrow::kLeaveOut}});
  std::ostringstream out;
  table.AddRow({"new", "python3"});
  table.Print(out, Sink::kTerminal, 20);
  table.AddRow({"attribute units", "python3"});
  table.Print(out, Sink::kTerminal, 20);
  EXPECT_EQ(out.str(), "\033[1mWHAT\033[0m\nnew\nattribute units\n");
}

Table NarrowTable() {
  return Table(std::vector<Column>{{"NAME", Align::kLeft},
                                   {"COMMENT", Align::kLeft, Narrow::kClip},
                                   {"SIZE", Align::kRight, Narrow::kLeaveOut},
                                   {"HOST", Align::kLeft, Narrow::kLeaveOut}});
}

std::string OnTerminal(Table& table, int width) {
  std::ostringstream out;
  table.Print(out, Sink::kTerminal, width);
  return out.str();
}

TEST(TableTest, ATerminalGetsBoldTitlesAndLinesThatFit) {
  Table table = NarrowTable();
  table.AddRow({"a", std::string(200, 'x'), "5 B", "node7"});
  EXPECT_EQ(OnTerminal(table, 40),
            "\033[1mNAME  COMMENT\033[0m\na     " + std::string(33, 'x') + "~\n");
}

TEST(TableTest, ATerminalThatIsWideEnoughGetsAllColumns) {
  Table table = NarrowTable();
  table.AddRow({"a", "text", "5 B", "node7"});
  EXPECT_EQ(OnTerminal(table, 28),
            "\033[1mNAME  COMMENT  SIZE  HOST\033[0m\na     text      5 B  node7\n");
}

TEST(TableTest, TheLastColumnsAreLeftOutFirstAndStayOut) {
  Table table = NarrowTable();
  table.AddRow({"a", "text", "5 B", "node7"});
  EXPECT_EQ(OnTerminal(table, 24), "\033[1mNAME  COMMENT  SIZE\033[0m\na     text      5 B\n");
  table.AddRow({"b", "more text", "6 B", "node7"});
  EXPECT_EQ(OnTerminal(table, 24), "b     more text   6 B\n");
}

TEST(TableTest, WhatMattersIsWrappedByTheTerminalAndNeverCut) {
  Table table(std::vector<Column>{{"SIZE", Align::kRight}, {"NAME", Align::kLeft}});
  table.AddRow({"5 B", std::string(200, 'x')});
  EXPECT_THAT(OnTerminal(table, 80), HasSubstr(std::string(200, 'x') + "\n"));
}

TEST(TableTest, InAPipeALongCellMovesItsOwnLineAlone) {
  Table table = NarrowTable();
  table.AddRow({"a", std::string(50, 'x'), "5 B", "node7"});
  table.AddRow({"b", "y", "5 B", "node7"});
  std::ostringstream out;
  table.Print(out, Sink::kPipe, 20);
  EXPECT_THAT(out.str(), HasSubstr("a     " + std::string(50, 'x') + "   5 B  node7\n"));
  EXPECT_THAT(out.str(), HasSubstr("b     y" + std::string(39, ' ') + "   5 B  node7\n"));
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

TEST(ShellWordTest, OddCharactersAreQuoted) {
  EXPECT_EQ(ShellWord("/d/run-7.h5"), "/d/run-7.h5");
  EXPECT_EQ(ShellWord("/d/my run.h5"), "'/d/my run.h5'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace h5mirror::tools
