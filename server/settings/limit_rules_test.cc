#include "server/settings/limit_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/settings/config.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LimitRulesTest : public ::testing::Test {
 protected:
  absl::StatusOr<Config> Parse(const std::string& text) {
    directory_.Write("h5mirrord.toml", "root = \"/data\"\n" + text);
    const auto settings = ReadConfigFile(directory_.path() / "h5mirrord.toml");
    if (!settings.ok()) return settings.status();
    return MakeConfig(*settings);
  }
  std::string Error(const std::string& text) { return std::string(Parse(text).status().message()); }

  TestDirectory directory_;
};

TEST_F(LimitRulesTest, TablesAreReadInTheirOrder) {
  const auto config = Parse(R"(
[[limits]]
users = ["anna", "token:robot"]
groups = "bl7"
sessions = 64
bandwidth = "50MiB"
[[limits]]
sessions = 0
streams = 8
calls = 100
)");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::vector<LimitRule>& rules = config->limits;
  ASSERT_EQ(rules.size(), 2);
  EXPECT_THAT(rules[0].users, ElementsAre("anna", "token:robot"));
  EXPECT_THAT(rules[0].groups, ElementsAre("bl7"));
  EXPECT_EQ(rules[0].sessions, 64);
  EXPECT_EQ(rules[0].streams, std::nullopt);
  EXPECT_EQ(rules[0].bandwidth, 50 << 20);
  EXPECT_THAT(rules[0].source, HasSubstr("h5mirrord.toml:3"));
  EXPECT_TRUE(rules[1].callers().is_for_all());
  EXPECT_EQ(rules[1].sessions, 0);
  EXPECT_EQ(rules[1].calls, 100);
}

TEST_F(LimitRulesTest, DescriptionsAreTables) {
  const std::string text =
      "[[limits]]\nusers = [\"anna\"]\nsessions = 2\nstreams = 3\ncalls = 4\n"
      "bandwidth = \"1 MiB\"\n";
  const auto config = Parse(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Describe(config->limits[0]), text);
  EXPECT_THAT(DescribeConfig(*config), HasSubstr(text));
}

TEST_F(LimitRulesTest, WrongValuesAreNamed) {
  EXPECT_THAT(Error("[[limits]]\ncalls = 0\n"), HasSubstr("h5mirrord.toml:3: calls = \"0\""));
  EXPECT_THAT(Error("[[limits]]\nbandwidth = \"1KiB\"\n"), HasSubstr("64 KiB"));
  EXPECT_THAT(Error("[[limits]]\nsession = 1\n"), HasSubstr("did you mean \"sessions\"?"));
  EXPECT_THAT(Error("[[limits]]\nsessions = [\"1\", \"2\"]\n"), HasSubstr("has one value"));
  EXPECT_THAT(Error("[[limits]]\nusers = []\n"), HasSubstr("names none"));
  EXPECT_THAT(Error("[limits]\nsessions = 1\n"), HasSubstr("two brackets"));
}

TEST_F(LimitRulesTest, TablesThatNeverDecideAreFound) {
  const auto config = Parse(
      "[[limits]]\nusers = \"anna\"\ncalls = 1\n[[limits]]\nusers = [\"bob\", \"anna\"]\n"
      "calls = 2\n[[limits]]\nsessions = 3\n[[limits]]\ngroups = \"bl7\"\nsessions = 9\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto found = FindUnreachable(config->limits);
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], HasSubstr("h5mirrord.toml:10: this [[limits]] table never decides"));
  EXPECT_THAT(found[0], HasSubstr("h5mirrord.toml:8"));
}

}  // namespace
}  // namespace h5mirror::server
