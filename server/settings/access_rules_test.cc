#include "server/settings/access_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/settings/config.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AccessRulesTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<AccessRule>> Parse(const std::string& text) {
    directory_.Write("h5mirrord.toml", "root = \"/data\"\n" + text);
    const auto settings = ReadConfigFile(directory_.path() / "h5mirrord.toml");
    if (!settings.ok()) return settings.status();
    const auto config = MakeConfig(*settings);
    if (!config.ok()) return config.status();
    return config->access;
  }
  std::string Error(const std::string& text) { return std::string(Parse(text).status().message()); }

  TestDirectory directory_;
};

TEST_F(AccessRulesTest, TablesAreReadInTheirOrder) {
  const auto rules = Parse(R"(
[[access]]
files = "home/${user}/**"
allow = ["read", "write"]
[[access]]
files = ["beamline/**", "cal.h5"]
users = ["anna", "token:robot"]
groups = "bl7"
allow = "admin"
[[access]]
files = "**"
allow = []
)");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 3);
  EXPECT_TRUE((*rules)[0].is_for_all());
  EXPECT_EQ((*rules)[0].allow.ToString(), "read,write");
  EXPECT_THAT((*rules)[1].files, ElementsAre("beamline/**", "cal.h5"));
  EXPECT_THAT((*rules)[1].users, ElementsAre("anna", "token:robot"));
  EXPECT_THAT((*rules)[1].groups, ElementsAre("bl7"));
  EXPECT_EQ((*rules)[1].allow.ToString(), "restore,delete,operate");
  EXPECT_THAT((*rules)[1].source, HasSubstr("h5mirrord.toml:6"));
  EXPECT_TRUE((*rules)[2].allow.empty());
}

TEST_F(AccessRulesTest, DescriptionsAreTables) {
  const std::string text =
      "[[access]]\nfiles = [\"a/**\"]\nusers = [\"anna\"]\ngroups = [\"g\", \"h\"]\n"
      "allow = [\"read\"]\n[[access]]\nfiles = [\"**\"]\nallow = []\n";
  const auto rules = Parse(text);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(Describe((*rules)[0]) + Describe((*rules)[1]), text);
}

TEST_F(AccessRulesTest, OwnersAreCallersOrTheCaller) {
  const std::string text =
      "[[access]]\nfiles = [\"a/**\"]\nowner = [\"${user}\", \"token:robot\"]\n"
      "allow = [\"read\"]\n";
  const auto rules = Parse(text);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_THAT((*rules)[0].owners, ElementsAre("${user}", "token:robot"));
  EXPECT_EQ(Describe((*rules)[0]), text);
  const auto error = [&](const std::string& owner) {
    return Error("[[access]]\nfiles = \"**\"\nallow = []\nowner = " + owner + "\n");
  };
  EXPECT_THAT(error("[]"), HasSubstr("names none"));
  EXPECT_THAT(error("\"munge:anna\""), HasSubstr("unix:anna"));
  EXPECT_THAT(error("\"x${user}\""), HasSubstr("toml:5: owner = \"x${user}\": ${user}, the"));
  EXPECT_THAT(error("\"${owner}\""), HasSubstr("stands alone"));
  EXPECT_TRUE(CheckKindOfOwner("cert:anna").ok());
  EXPECT_TRUE(CheckKindOfOwner("").ok());
  EXPECT_FALSE(CheckKindOfOwner("anna").ok());
  EXPECT_FALSE(CheckKindOfOwner("munge:anna").ok());
}

TEST_F(AccessRulesTest, ErrorsNameLineKeyAndValue) {
  EXPECT_THAT(Error("[[access]]\nallow = [\"read\"]\n"),
              HasSubstr("toml:2: [[access]]: it names no"));
  EXPECT_THAT(Error("[[access]]\nfiles = \"**\"\n"), HasSubstr("it does not say what it allows"));
  EXPECT_THAT(Error("[[access]]\nfiles = \"**\"\nallow = \"reed\"\n"),
              HasSubstr("toml:4: allow = \"reed\": right \"reed\""));
  EXPECT_THAT(Error("[[access]]\nfiles = \"/a\"\nallow = []\n"), HasSubstr("toml:3: files"));
  EXPECT_THAT(Error("[[access]]\nfiles = \"${group}/**\"\nallow = []\n"),
              HasSubstr("${user}, the caller's name, is all"));
  EXPECT_THAT(Error("[[access]]\nfiles = \"**\"\nuser = \"a\"\nallow = []\n"),
              HasSubstr("unknown key \"user\" in [[access]]; did you mean \"users\"?"));
  EXPECT_THAT(Error("[access]\nfiles = \"**\"\n"), HasSubstr("two brackets, [[access]]"));
}

// Else a list that somebody empties would open the files to everybody.
TEST_F(AccessRulesTest, EmptyListOfUsersIsRefused) {
  for (const char* key : {"users", "groups"}) {
    EXPECT_THAT(
        Error(std::string("[[access]]\nfiles = \"**\"\n") + key + " = []\nallow = \"read\"\n"),
        HasSubstr("names none"));
  }
}

TEST_F(AccessRulesTest, UnreachableTablesAreFound) {
  const auto found = [&](const std::string& first, const std::string& second) {
    const auto rules =
        Parse("[[access]]\nallow = []\n" + first + "[[access]]\nallow = []\n" + second);
    EXPECT_TRUE(rules.ok()) << rules.status();
    return FindUnreachable(*rules);
  };
  EXPECT_THAT(found("files = \"**\"\n", "files = \"a/**\"\nusers = \"anna\"\n"),
              ElementsAre(HasSubstr("toml:5: this [[access]] table never decides: the one at")));
  EXPECT_THAT(found("files = \"a/**\"\n", "files = [\"a/b/*.h5\", \"a/**\"]\n"),
              ::testing::SizeIs(1));
  EXPECT_THAT(found("files = \"a/**\"\nusers = \"anna\"\n", "files = \"a/**\"\n"), IsEmpty());
  EXPECT_THAT(found("files = \"a/**\"\n", "files = [\"a/*\", \"b\"]\n"), IsEmpty());
  const std::string mine = "files = \"a/**\"\nowner = \"${user}\"\n";
  EXPECT_THAT(found(mine, "files = \"a/**\"\n"), IsEmpty()) << "files of others are left";
  EXPECT_THAT(found("files = \"a/**\"\n", mine), ::testing::SizeIs(1));
  EXPECT_THAT(found(mine, mine), ::testing::SizeIs(1));
  EXPECT_THAT(found(mine, "files = \"a/**\"\nowner = \"anna\"\n"), IsEmpty());
  EXPECT_THAT(found("files = \"a*/**\"\n", "files = \"a*/b\"\n"), IsEmpty());
  EXPECT_THAT(found("files = \"**\"\nusers = [\"a\", \"b\"]\n", "files = \"x\"\nusers = \"b\"\n"),
              ::testing::SizeIs(1));
}

}  // namespace
}  // namespace h5mirror::server
