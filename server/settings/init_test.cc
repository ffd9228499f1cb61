#include "server/settings/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "server/door/auth.h"
#include "server/settings/certificates.h"
#include "server/settings/secret_file.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class InitTest : public ::testing::Test {
 protected:
  InitOptions Options() {
    InitOptions options;
    options.directory = directory_.path() / "secrets";
    options.hosts = {"node7.example", "192.0.2.7"};
    return options;
  }
  std::string Text(const char* name) { return *ReadSmallFile(Options().directory / name); }

  TestDirectory directory_;
};

TEST_F(InitTest, SecretsArePrivateAndTheTokenWorks) {
  const auto advice = InitDirectory(Options());
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_THAT(*advice, HasSubstr("node7.example"));
  for (const char* name : {"ca.key", "server.key", "tokens", "token"}) {
    struct stat info {};
    ASSERT_EQ(stat((Options().directory / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
  const auto authenticator = Authenticator::Load(Options().directory / "tokens");
  ASSERT_TRUE(authenticator.ok());
  std::string token = Text("token");
  token.pop_back();  // The newline.
  const auto principal = (*authenticator)->Authenticate("Bearer " + token);
  ASSERT_TRUE(principal.ok());
  EXPECT_EQ(principal->name, "admin");
}

TEST_F(InitTest, TheOperatorsUmaskDoesNotCount) {
  InitOptions nested = Options();
  nested.directory = directory_.path() / "site/of/node7/";
  const mode_t before = umask(0077);
  const auto advice = InitDirectory(Options());
  const auto of_nested = InitDirectory(nested);
  umask(before);
  ASSERT_TRUE(advice.ok()) << advice.status();
  ASSERT_TRUE(of_nested.ok()) << of_nested.status();
  const auto mode_of = [](const std::filesystem::path& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  };
  for (const char* made : {"secrets", "site", "site/of", "site/of/node7"}) {
    EXPECT_EQ(mode_of(directory_.path() / made), 0755u) << made;
  }
  for (const char* name : {"ca.pem", "server.pem", "h5mirrord.toml"}) {
    EXPECT_EQ(mode_of(Options().directory / name), 0644u) << name;
  }
}

TEST_F(InitTest, KeyBelongsToTheCertificate) {
  ASSERT_TRUE(InitDirectory(Options()).ok());
  EXPECT_TRUE(CheckPair({Text("server.key"), Text("server.pem")}).ok());
  EXPECT_FALSE(CheckPair({Text("ca.key"), Text("server.pem")}).ok());
  EXPECT_FALSE(CheckPair({"nonsense", "nonsense"}).ok());
}

TEST_F(InitTest, NothingIsOverwritten) {
  ASSERT_TRUE(InitDirectory(Options()).ok());
  const std::string before = Text("server.key");
  InitOptions options = Options();
  options.hosts.clear();
  const auto again = InitDirectory(options);
  EXPECT_TRUE(absl::IsAlreadyExists(again.status()));
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("token add"));
  EXPECT_EQ(Text("server.key"), before);
}

TEST_F(InitTest, ANewHostGetsACertificateOfTheSameAuthorityAndAllElseStays) {
  ASSERT_TRUE(InitDirectory(Options()).ok());
  const std::string key = Text("server.key"), certificate = Text("server.pem");
  const std::string authority = Text("ca.pem"), token = Text("token"), tokens = Text("tokens");
  InitOptions options = Options();
  options.hosts = {"node8.example"};
  const auto again = InitDirectory(options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(*HostsOf(Text("server.pem")),
              IsSupersetOf({"node7.example", "192.0.2.7", "node8.example"}));
  EXPECT_TRUE(CheckPair({Text("server.key"), Text("server.pem")}).ok());
  EXPECT_EQ(Text("ca.pem") + Text("token") + Text("tokens"), authority + token + tokens);
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Options().directory)) {
    const std::string text = *ReadSmallFile(entry.path());
    kept += text == key || text == certificate ? 1 : 0;
    if (entry.path().filename().string().find("key") == std::string::npos) continue;
    struct stat info {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
  }
  EXPECT_EQ(kept, 2);
  EXPECT_THAT(*again, HasSubstr("server.key.until-"));
}

TEST_F(InitTest, ANewCertificateTakesTheAuthoritysKey) {
  ASSERT_TRUE(InitDirectory(Options()).ok());
  std::filesystem::remove(Options().directory / "ca.key");
  const std::string before = Text("server.pem");
  EXPECT_THAT(std::string(InitDirectory(Options()).status().message()),
              HasSubstr("ca.key is not there"));
  EXPECT_EQ(Text("server.pem"), before);
}

TEST_F(InitTest, OperatorsConfigurationStays) {
  std::filesystem::create_directory(Options().directory);
  directory_.Write("secrets/h5mirrord.toml", "root = \"/mine\"\n");
  const auto advice = InitDirectory(Options());
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_THAT(*advice, HasSubstr("left alone"));
  EXPECT_EQ(Text("h5mirrord.toml"), "root = \"/mine\"\n");
}

TEST_F(InitTest, HostThatIsNoHostIsNamed) {
  InitOptions options = Options();
  options.hosts = {"DNS:evil,IP:1"};
  EXPECT_THAT(std::string(InitDirectory(options).status().message()), HasSubstr("DNS:evil"));
}

}  // namespace
}  // namespace h5mirror::server
