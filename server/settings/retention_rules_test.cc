#include "server/settings/retention_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/strings.h"
#include "server/settings/config.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Config> Load(const std::string& text) {
  TestDirectory directory;
  const auto settings = ReadConfigFile(directory.Write("c.toml", StrCat("root = \"/d\"\n", text)));
  if (!settings.ok()) return settings.status();
  return MakeConfig(*settings);
}

std::string Refused(const std::string& text) { return std::string(Load(text).status().message()); }

TEST(RetentionRulesTest, ATableSaysWhatToKeepOfWhichFiles) {
  const auto config = Load(R"(prune_every = "12h"
min_free = "5%"
[[retention]]
files = ["runs/**", "*.tmp.h5"]
keep_last = 10
keep_daily = 7
keep_within = "30d"
keep_tags = ["published", "paper"]
history_max_bytes = "50GiB"
[[retention]]
files = "**"
keep_yearly = 3
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->prune_every, absl::Hours(12));
  EXPECT_EQ(config->min_free.BytesOf(1000), 50u);
  ASSERT_EQ(config->retention.size(), 2u);
  const RetentionRule& rule = config->retention[0];
  EXPECT_THAT(rule.files, ElementsAre("runs/**", "*.tmp.h5"));
  EXPECT_EQ(rule.policy.keep_last, 10);
  EXPECT_EQ(rule.policy.keep_daily, 7);
  EXPECT_EQ(rule.policy.keep_within, absl::Hours(30 * 24));
  EXPECT_THAT(rule.policy.keep_tags, ElementsAre("published", "paper"));
  EXPECT_EQ(rule.history_max_bytes, uint64_t{50} << 30);
  EXPECT_EQ(rule.Label(), "\"runs/**\", \"*.tmp.h5\" (c.toml:4)");
  const std::string shown = DescribeConfig(*config);
  for (const char* line : {"prune_every = 12 h\n", "min_free = 5%\n", "\n[[retention]]\n",
                           "files = [\"runs/**\", \"*.tmp.h5\"]\n", "keep_last = 10\n",
                           "keep_within = 30 d\n", "keep_tags = [\"published\", \"paper\"]\n",
                           "history_max_bytes = 50 GiB\n", "keep_yearly = 3\n"}) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
}

TEST(RetentionRulesTest, TheFirstThatMatchesCounts) {
  const auto config = Load(
      "[[retention]]\nfiles = \"runs/keep/**\"\nkeep_all = true\n"
      "[[retention]]\nfiles = \"runs/**\"\nkeep_last = 1\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(FindRule(config->retention, "runs/keep/a.h5")->keep_all);
  EXPECT_EQ(FindRule(config->retention, "runs/a.h5")->policy.keep_last, 1);
  EXPECT_EQ(FindRule(config->retention, "a.h5"), nullptr);
}

TEST(RetentionRulesTest, WhatIsWrongIsNamedWithFileAndLine) {
  const std::string table = "[[retention]]\nfiles = \"**\"\n";
  EXPECT_THAT(Refused(table), AllOf(HasSubstr("c.toml:2"), HasSubstr("what to keep")));
  EXPECT_THAT(Refused("[[retention]]\nkeep_last = 1\n"),
              AllOf(HasSubstr("c.toml:2"), HasSubstr("names no files")));
  EXPECT_THAT(Refused(table + "keep_lsat = 1\n"),
              AllOf(HasSubstr("c.toml:4"), HasSubstr("\"keep_lsat\""), HasSubstr("\"keep_last\"")));
  EXPECT_THAT(Refused(table + "keep_last = 1\nlease_ttl = \"3s\"\n"),
              AllOf(HasSubstr("c.toml:5"), HasSubstr("before the first [[retention]]")));
  EXPECT_THAT(Refused(table + "keep_last = 1\nkeep_all = true\n"), HasSubstr("nothing else"));
  EXPECT_THAT(Refused(table + "keep_last = 0\n"), AllOf(HasSubstr("c.toml:4"), HasSubstr("1..")));
  EXPECT_THAT(Refused(table + "keep_last = [\"1\", \"2\"]\n"), HasSubstr("one value"));
  EXPECT_THAT(Refused(table + "keep_within = \"tuesday\"\n"), HasSubstr("30d or 12h"));
  EXPECT_THAT(Refused(table + "keep_tags = [\"no tag\"]\n"), HasSubstr("c.toml:4"));
  EXPECT_THAT(Refused(table + "history_max_bytes = \"50GB\"\n"), HasSubstr("GiB"));
  EXPECT_THAT(Refused("[[retention]]\nfiles = \"/abs/**\"\nkeep_last = 1\n"),
              AllOf(HasSubstr("c.toml:3"), HasSubstr("relative to the root")));
  EXPECT_THAT(Refused("[retention]\nfiles = \"**\"\n"), HasSubstr("[[retention]]"));
  EXPECT_THAT(Refused("retention = [1]\n"), HasSubstr("[[retention]]"));
}

// Its tables are commented out with "# ", as they are no defaults.
TEST(RetentionRulesTest, TheTablesOfTheSampleLoad) {
  std::ifstream sample(H5M_SAMPLE_CONFIG);
  std::string text;
  bool tables = false;
  for (std::string line; std::getline(sample, line);) {
    tables = tables || line == "# [[retention]]";
    if (tables) text += line.substr(std::min<size_t>(line.size(), 2)) + "\n";
  }
  const auto config = Load(text);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->retention.size(), 2u);
  EXPECT_TRUE(config->retention[0].keep_all);
  EXPECT_EQ(config->retention[1].policy.keep_daily, 7);
}

TEST(RetentionRulesTest, MinFreeIsASizeOrAPart) {
  EXPECT_EQ(Load("min_free = \"20GiB\"\n")->min_free.BytesOf(1), uint64_t{20} << 30);
  EXPECT_FALSE(Load("min_free = \"0\"\n")->min_free.is_set());
  EXPECT_FALSE(Load("")->min_free.is_set()) << "nothing is dropped unasked";
  EXPECT_THAT(Refused("min_free = \"91%\"\n"), HasSubstr("must be a size, or in 0%..90%"));
  EXPECT_THAT(Refused("min_free = \"much\"\n"), HasSubstr("c.toml:2"));
  EXPECT_THAT(Refused("prune_every = \"1ms\"\n"), HasSubstr("1 s..366 d"));
  EXPECT_EQ(Load("prune_every = \"0\"\n")->prune_every, absl::ZeroDuration());
}

}  // namespace
}  // namespace h5mirror::server
