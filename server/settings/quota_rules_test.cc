#include "server/settings/quota_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/settings/config.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<Config> Load(const std::string& text) {
  TestDirectory directory;
  const auto settings = ReadConfigFile(directory.Write("c.toml", StrCat("root = \"/d\"\n", text)));
  if (!settings.ok()) return settings.status();
  return MakeConfig(*settings);
}

std::string Refused(const std::string& keys) {
  return std::string(Load(StrCat("[[quota]]\n", keys)).status().message());
}

TEST(QuotaRulesTest, ATableLimitsADirectory) {
  const auto config = Load(R"([[quota]]
directory = "home/${user}"
head_bytes = "50GiB"
history_bytes = "100GiB"
max_files = 1000
max_tags = 50
archived_bytes = "2TiB"
[[quota]]
directory = ""
max_files = 2
)");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->quotas.size(), 2u);
  const QuotaRule& rule = config->quotas[0];
  EXPECT_EQ(rule.directory, "home/${user}");
  EXPECT_EQ(rule.head_bytes, uint64_t{50} << 30);
  EXPECT_EQ(rule.history_bytes, uint64_t{100} << 30);
  EXPECT_EQ(rule.max_files, 1000u);
  EXPECT_EQ(rule.max_tags, 50u);
  EXPECT_EQ(rule.archived_bytes, uint64_t{2} << 40);
  EXPECT_EQ(rule.Label(), "[[quota]] (c.toml:2)");
  EXPECT_EQ(config->quotas[1].directory, "");
  const std::string shown = DescribeConfig(*config);
  for (const char* line :
       {"\n[[quota]]\ndirectory = \"home/${user}\"\n", "head_bytes = \"50 GiB\"\n",
        "history_bytes = \"100 GiB\"\n", "max_files = 1000\n", "max_tags = 50\n",
        "archived_bytes = \"2 TiB\"\n"}) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
}

TEST(QuotaRulesTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(Refused("directory = \"runs\""), HasSubstr("c.toml:2: [[quota]]: it limits nothing"));
  EXPECT_THAT(Refused("max_files = 3"), HasSubstr("it names no directory"));
  EXPECT_THAT(Refused("directory = \"runs/**\"\nmax_files = 3"),
              HasSubstr("c.toml:3: directory = \"runs/**\": a directory, not a pattern"));
  EXPECT_THAT(Refused("directory = \"u-${user}\"\nmax_files = 3"),
              HasSubstr("${user} stands alone"));
  EXPECT_THAT(Refused("directory = \"../x\"\nmax_files = 3"), HasSubstr("c.toml:3: directory"));
  EXPECT_THAT(Refused("directory = \"runs\"\nmax_files = 0"), HasSubstr("c.toml:4: max_files"));
  EXPECT_THAT(Refused("directory = \"runs\"\nmax_tags = 0"), HasSubstr("c.toml:4: max_tags"));
  EXPECT_THAT(Refused("directory = \"runs\"\nhead_bytes = \"5\""), HasSubstr("1MiB or more"));
  EXPECT_THAT(Refused("directory = \"runs\"\nhead_byte = \"5GiB\""),
              HasSubstr("did you mean \"head_bytes\"?"));
  EXPECT_THAT(Refused("directory = [\"a\", \"b\"]\nmax_files = 3"), HasSubstr("has one value"));
}

// The server of a cell knows nothing of the other cells' files.
TEST(QuotaRulesTest, AnAccountLiesWithinACell) {
  const auto check = [](const std::string& directory, const std::vector<std::string>& cells) {
    return CheckWithinCells(std::vector<QuotaRule>{{.directory = directory, .source = "c.toml:7"}},
                            cells);
  };
  EXPECT_TRUE(check("", {""}).ok());
  EXPECT_TRUE(check("lab/anna", {"lab"}).ok()) << "a part of a cell";
  EXPECT_TRUE(check("lab", {"lab", "home"}).ok()) << "a cell";
  EXPECT_TRUE(check("lab", {"lab/x", "home"}).ok()) << "all of its files are in one cell";
  EXPECT_TRUE(check("home/${user}", {"home"}).ok());
  EXPECT_TRUE(check("home/${user}", {"home/anna", "home/bob/x"}).ok()) << "one cell for each";
  const absl::Status all = check("", {"x", "y"});
  EXPECT_TRUE(absl::IsInvalidArgument(all));
  EXPECT_THAT(std::string(all.message()),
              AllOf(HasSubstr("c.toml:7"), HasSubstr("\"x\" and \"y\""), HasSubstr("of its own")));
  EXPECT_TRUE(absl::IsInvalidArgument(check("lab", {"lab/x", "lab/y"})));
  EXPECT_THAT(std::string(check("home/${user}", {"home/anna/x", "home/anna/y"}).message()),
              HasSubstr("\"home/anna\" has the cells"));
}

TEST(QuotaRulesTest, ATableBehindOneThatTakesAllItsFilesIsNamed) {
  const auto at = [](const char* directory, const char* source) {
    return QuotaRule{directory, 0, 0, 1, source};
  };
  EXPECT_THAT(FindUnreachable({at("home/big", "c:1"), at("home/${user}", "c:2")}), IsEmpty());
  EXPECT_THAT(
      FindUnreachable({at("home/${user}", "c:1"), at("home/big", "c:2")}),
      ElementsAre(HasSubstr("c:2: no file counts to this [[quota]] table: the one at c:1")));
  EXPECT_EQ(FindUnreachable({at("", "c:1"), at("a", "c:2"), at("b", "c:3")}).size(), 2u);
}

}  // namespace
}  // namespace h5mirror::server
