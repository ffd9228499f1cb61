#include "base/cli_words.h"

#include <gtest/gtest.h>

namespace h5mirror {
namespace {

using Words = std::vector<std::string>;

// `tool [--server S] [--json] log [-n N] [-r] FILE | exec [-q] [--root DIR] | token (add | list)`
class CliWordsTest : public testing::Test {
 protected:
  CliWordsTest() {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--server", text_, "");
    app_.add_flag("--json", flag_, "");
    log_ = app_.add_subcommand("log", "");
    log_->add_option("-n,--limit", number_, "");
    log_->add_flag("-r,--recursive", flag_, "");
    log_->add_option("FILE", text_, "")->required();
    CLI::App* exec = app_.add_subcommand("exec", "");
    exec->add_flag("-q,--quiet", flag_, "");
    exec->add_option("--libraries", list_, "");
    CLI::App* token = app_.add_subcommand("token", "");
    token->require_subcommand(1);
    token->add_subcommand("add", "");
    token->add_subcommand("list", "");
  }

  // The message about words that CLI11 refuses; empty: it accepts them.
  std::string Why(Words words) {
    const Words all = words;
    std::reverse(words.begin(), words.end());
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      return WhyNotParsed(app_, all, error);
    }
    return "";
  }

  CLI::App app_{"", "tool"};
  CLI::App* log_ = nullptr;
  std::string text_;
  int number_ = 0;
  bool flag_ = false;
  std::vector<std::string> list_;
};

TEST_F(CliWordsTest, AMistypedVerbIsNamedAndTheNearestOne) {
  EXPECT_EQ(Why({"lgo", "x.h5"}), "there is no verb 'lgo'; did you mean log?");
  EXPECT_EQ(Why({"--server", "log", "--json", "toke", "add"}),
            "there is no verb 'toke'; did you mean token?");
  EXPECT_EQ(Why({"token", "ad"}), "there is no verb 'ad'; did you mean add?");
  EXPECT_EQ(Why({"dance"}), "there is no verb 'dance'");
}

TEST_F(CliWordsTest, AMistypedFlagIsNamedAndTheNearestOne) {
  EXPECT_EQ(Why({"log", "--limt", "3", "x"}), "log has no flag --limt; did you mean --limit?");
  EXPECT_EQ(Why({"--servr=s", "log", "x"}), "tool has no flag --servr; did you mean --server?");
  EXPECT_EQ(Why({"log", "-rz", "x"}), "log has no flag -z");
  EXPECT_EQ(Why({"log", "--lib", "x"}), "log has no flag --lib");
  EXPECT_EQ(Why({"log", "x", "--what-else"}), "log has no flag --what-else");
}

TEST_F(CliWordsTest, AMissingVerbIsSaid) {
  EXPECT_EQ(Why({}), "tool wants a verb: one of log, exec, token");
  EXPECT_EQ(Why({"token"}), "token wants a verb: one of add, list");
}

TEST_F(CliWordsTest, WhereEachWordIsKnownTheErrorSpeaks) {
  EXPECT_EQ(Why({"log", "-n3", "-r", "--server", "s", "x"}), "");
  EXPECT_EQ(Why({"log"}), "log: FILE is missing; write tool log [OPTIONS] FILE");
  EXPECT_EQ(Why({"log", "x", "y"}), "log takes no further word 'y'; write tool log [OPTIONS] FILE");
  EXPECT_EQ(Why({"log", "x", "y", "z"}).substr(0, 30), "log takes no further word 'y';");
  EXPECT_EQ(Why({"log", "x", "-n"}), "--limit needs a value");
  EXPECT_NE(Why({"log", "-n", "many", "x"}).find("many"), std::string::npos);
}

TEST_F(CliWordsTest, FlagsAndTheirValuesAreSkipped) {
  const std::vector<const CLI::App*> apps = {&app_, log_, app_.get_subcommand("exec")};
  EXPECT_EQ(SkipFlags(apps, Words{"--server", "s", "-q", "-n3", "-rn", "4", "go", "-q"}, 0), 6u);
  EXPECT_EQ(SkipFlags(apps, Words{"--server=s", "--", "go"}, 0), 1u);
  EXPECT_EQ(SkipFlags(apps, Words{"--libraries", "a", "b", "--json", "go"}, 0), 4u);
  EXPECT_EQ(SkipFlags(apps, Words{"--what", "go"}, 0), 0u);
  EXPECT_EQ(SkipFlags(apps, Words{"--server"}, 0), 1u);
  EXPECT_EQ(SkipFlags(apps, Words{"-5"}, 0), 0u);
}

}  // namespace
}  // namespace h5mirror
