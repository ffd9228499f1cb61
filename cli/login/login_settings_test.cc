#include "cli/login/login_settings.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoginSettingsTest : public ::testing::Test {
 protected:
  LoginSettingsTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "h5m-login-XXXXXX").string();
    directory_ = mkdtemp(path.data());
  }
  ~LoginSettingsTest() override { std::filesystem::remove_all(directory_); }

  absl::StatusOr<LoginSettings> Read(const std::string& toml) {
    std::ofstream(directory_ / "login.toml") << toml;
    return ReadLoginSettings({directory_ / "none", directory_});
  }

  std::filesystem::path directory_;
};

TEST_F(LoginSettingsTest, ACommandIsWordsAndNoShell) {
  EXPECT_THAT(*SplitCommand("oidc-token  lab"), ElementsAre("oidc-token", "lab"));
  EXPECT_THAT(*SplitCommand("a 'b c' \"d 'e\" f\"g h\"i ''"),
              ElementsAre("a", "b c", "d 'e", "fg hi", ""));
  EXPECT_THAT(*SplitCommand("a $HOME;b|c"), ElementsAre("a", "$HOME;b|c"));
  EXPECT_TRUE(absl::IsInvalidArgument(SplitCommand(" ").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SplitCommand("a 'b").status()));
}

TEST_F(LoginSettingsTest, TheFileNamesAnIssuerOrACommand) {
  const auto issuer = Read(
      "issuer = \"https://sso\"\nclient_id = \"h5\"\ntoken = \"id\"\nissuer_ca = \"ca.pem\"\n");
  ASSERT_TRUE(issuer.ok()) << issuer.status();
  EXPECT_EQ(issuer->issuer, "https://sso");
  EXPECT_EQ(issuer->client_id, "h5");
  EXPECT_EQ(issuer->issuer_ca, (directory_ / "ca.pem").native());
  EXPECT_TRUE(issuer->takes_id_token);
  EXPECT_THAT(Read("token_command = \"oidc-token lab\"")->token_command,
              ElementsAre("oidc-token", "lab"));
  EXPECT_THAT(Read("token_command = [\"a b\", \"c\"]")->token_command, ElementsAre("a b", "c"));
  EXPECT_THAT(Read("token_command = \"bin/token lab/x\"")->token_command,
              ElementsAre((directory_ / "bin/token").native(), "lab/x"));
  EXPECT_THAT(Read("token_command = \"/bin/token\"")->token_command, ElementsAre("/bin/token"));
}

TEST_F(LoginSettingsTest, WithoutAFileThereAreNone) {
  EXPECT_TRUE(ReadLoginSettings({directory_})->empty());
}

TEST_F(LoginSettingsTest, MistakesNameFileAndKey) {
  for (const auto& [toml, message] : std::vector<std::pair<std::string, std::string>>{
           {"isuer = \"x\"", "login.toml:1: unknown key `isuer`"},
           {"issuer = 3", "`issuer` must be a text"},
           {"token_command = []", "names no program"},
           {"token_command = [1]", "`token_command` must be"},
           {"issuer = \"x\"\nclient_id = \"y\"\ntoken = \"both\"", "login.toml:3: `token`"},
           {"issuer = \"https://x\"", "--client-id"},
           {"issuer = \"x\"\ntoken_command = \"y\"", "several sources of the token"},
           {"", "no source of the token"}}) {
    const absl::Status status = Read(toml).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << toml;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace h5mirror::tools
