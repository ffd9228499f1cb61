// Words at their edges: what ends them, what they name, and what is said of those that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "h5edit/options.h"
#include "h5edit/script_testing.h"

namespace h5mirror::edit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::OneOf;
using testing::WrongIn;

TEST(WordsTest, ACommentDoesNotBeginInAWord) {
  EXPECT_THAT(WrongIn("DELETE /a#1;\n;"), HasSubstr("1:10: a '#' in the middle of a word"));
  EXPECT_THAT(WrongIn("MODIFY /a {1#2\n};"), HasSubstr("1:13: a '#' in the middle of a word"));
  EXPECT_THAT(WrongIn("DELETE /a#'b';"), HasSubstr("1:10: a '#' in the middle of a word"));
  EXPECT_EQ(OneOf("DELETE /a ;# 1").target.attribute, "a");
  EXPECT_EQ(OneOf("MODIFY /a {1}#2\n;").values.values.size(), 1u);
  EXPECT_EQ(OneOf("DELETE /'a#1';").target.attribute, "a#1");
}

TEST(WordsTest, AQuotedComponentIsOneOfItsPath) {
  EXPECT_EQ(OneOf("LIST /g'b c';").target.object, "/g/b c");
  EXPECT_EQ(OneOf("LIST /g/'b c';").target.object, "/g/b c");
  EXPECT_EQ(OneOf("DELETE g/h'b c' x;").target.object, "/g/h/b c");
  EXPECT_EQ(OneOf("LINK SOFT ../g'b c' /x;").link_value, "../g/b c");
  EXPECT_EQ(OneOf("MODIFY /a {/g'b c'};").values.values[0].text, "/g/b c");
  EXPECT_EQ(OneOf("MODIFY /a {DATASET /g'b c'};").values.values[0].text, "/g/b c");
  EXPECT_EQ(OneOf("CREATE /a {/g't 1' {1}};").definition.type.name, "/g/t 1");
}

TEST(WordsTest, LinksLeadSomewhere) {
  EXPECT_THAT(WrongIn("LINK SOFT '' /x;"), HasSubstr("1:11: the path that the link leads to is"));
  EXPECT_THAT(WrongIn("LINK EXTERNAL '' /a /x;"), HasSubstr("1:15: the name of the file that"));
  EXPECT_THAT(WrongIn("LINK EXTERNAL b.h5 '' /x;"), HasSubstr("1:20: the path that the link"));
  EXPECT_THAT(WrongIn("LINK SOFT 'a\\0b' /x;"), HasSubstr("1:11: a NUL byte in a name"));
  EXPECT_THAT(WrongIn("LINK EXTERNAL 'b\\0' /a /x;"), HasSubstr("1:15: a NUL byte in a name"));
}

TEST(WordsTest, OnlyWhatCouldBeANameIsToldToBeQuoted) {
  const std::string hint = "as a name it is written in quotes";
  EXPECT_THAT(WrongIn("RENAME /a 12;"), HasSubstr(hint));
  EXPECT_THAT(WrongIn("CREATE /a {H5T_COMPOUND {H5T_STD_I8LE DATA;} {{1}}};"), HasSubstr(hint));
  EXPECT_THAT(WrongIn("MODIFY /a {1 2};"), Not(HasSubstr(hint)));
  EXPECT_THAT(WrongIn("CREATE /a {H5T_STD_I8LE SIMPLE {1}};"), Not(HasSubstr(hint)));
  EXPECT_THAT(WrongIn("CREATE /a {H5T_STRING {STRSIZE 5.0} {''}};"), Not(HasSubstr(hint)));
}

TEST(WordsTest, AMessageIsOneLineOfWholeCharacters) {
  const Source source("s", "'a\nb\x1b[31m';");
  std::vector<Statement> statements;
  Problem problem;
  ASSERT_FALSE(Parse(source, testing::NoFile, &statements, &problem));
  EXPECT_THAT(source.Explain(problem), HasSubstr("found the string 'a\\x0ab\\x1b[31m'\n  'a\n"));
  // Cut off after 40 bytes, of which the last is the first half of a character.
  EXPECT_THAT(WrongIn(std::string(39, 'a') + "\xC3\xA9\xC3\xA9;"),
              HasSubstr("found " + std::string(39, 'a') + "..."));
}

TEST(WordsTest, DatasetsAreAsLargeAsTheFileTakesThem) {
  const char* const kLayout = " LAYOUT CHUNKED (1000, 1000)};";
  EXPECT_EQ(WrongIn(std::string("CREATE DATASET /d {(2000000, 2000000)") + kLayout), "parsed");
  EXPECT_THAT(WrongIn(std::string("CREATE DATASET /d {(4294967296, 4294967296)") + kLayout),
              HasSubstr("1:20: too many elements"));
}

std::string Options(const std::vector<std::string>& words, Task* task) {
  edit::Options options;
  std::string wrong = ParseOptions(words, &options);
  *task = options.task;
  return wrong;
}

TEST(WordsTest, HelpIsGivenWhateverIsWrongWithOtherOptions) {
  using Words = std::vector<std::string>;
  Task task = Task::kEdit;
  for (const Words& words : {Words{"-c", "DELETE /a;", "--help", "f.h5"},
                             {"--atomic", "bad", "-h"},
                             {"--bogus", "-h"},
                             {"-c", "x", "-c", "y", "-h"},
                             {"-c", "--help"}}) {
    EXPECT_EQ(Options(words, &task), "");
    EXPECT_EQ(task, Task::kHelp);
  }
  EXPECT_THAT(Options({"-c", "DELETE /a;", "f.h5", "--help"}, &task), HasSubstr("one data file"));
}

TEST(WordsTest, ADryRunRecoversNothing) {
  Task task = Task::kEdit;
  EXPECT_THAT(Options({"--recover", "--dryrun", "f.h5"}, &task),
              HasSubstr("--recover --check only looks"));
  EXPECT_EQ(Options({"--recover", "--check", "f.h5"}, &task), "");
}

TEST(WordsTest, AGroupWithoutItsSemicolonLacksThat) {
  EXPECT_EQ(WrongIn("CREATE GROUP /g"), "1:16: expected ';', found the end of the script");
  EXPECT_THAT(WrongIn("CREATE GROUP /g DELETE /a;"), HasSubstr("1:17: expected ';', found"));
  EXPECT_EQ(OneOf("CREATE GROUP /g/a {{1}};").verb, Verb::kCreateAttribute);
}

}  // namespace
}  // namespace h5mirror::edit
