#include "base/cli_help.h"

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace h5mirror {
namespace {

TEST(CliHelpTest, LinesOfAParagraphAreFilledAndIndentedLinesStay) {
  EXPECT_EQ(Fill("one two\nthree four five\n\nsix\n  seven  eight\n", 14),
            "one two three\nfour five\n\nsix\n  seven  eight\n");
  EXPECT_EQ(Fill("one two three", 8), "one two\nthree");
  EXPECT_EQ(Fill("  one two three", 10), "  one two\n      three");
  EXPECT_EQ(Fill("a longer-than-all word", 6), "a\nlonger-than-all\nword");
}

TEST(CliHelpTest, NoLineOfTheHelpIsWiderThan80Columns) {
  CLI::App app(std::string(30, 'a') + " " + std::string(60, 'b') + "\n" + std::string(20, 'c'),
               "tool");
  UseNarrowHelp(app);
  CLI::App* verb = app.add_subcommand("verb", "a description that goes on " + std::string(50, 'd'));
  std::string text;
  for (const char* name : {"--one", "--an-option-with-a-name-longer-than-the-column"}) {
    verb->add_option(name, text,
                     "words and more words that need more than one line beside the name of "
                     "the option, and even a third one if there are enough of them");
  }
  for (const CLI::App* each : {&app, verb}) {
    for (const absl::string_view line : absl::StrSplit(each->help(), '\n')) {
      EXPECT_LE(line.size(), kHelpColumns) << line;
    }
  }
  EXPECT_NE(verb->help().find("  --one TEXT              words and more"), std::string::npos)
      << verb->help();
}

}  // namespace
}  // namespace h5mirror
