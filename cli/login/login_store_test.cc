#include "cli/login/login_store.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "cli/login/issuer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using ::testing::ElementsAre;

class LoginStoreTest : public ::testing::Test {
 protected:
  LoginStoreTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "h5m-login-XXXXXX").string();
    home_ = mkdtemp(path.data());
    setenv("HOME", home_.c_str(), 1);
  }
  ~LoginStoreTest() override { std::filesystem::remove_all(home_); }

  static mode_t ModeOf(const std::filesystem::path& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  std::filesystem::path home_;
};

TEST_F(LoginStoreTest, NobodyElseReadsAToken) {
  const auto store = LoginStore::Open("Node7");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(store->WriteToken("secret").ok());
  ASSERT_TRUE(store->Save({}).ok());
  const std::filesystem::path tokens = home_ / ".config/h5mirror/tokens";
  EXPECT_EQ(store->token_path(), tokens / "node7%3A7447");
  EXPECT_EQ(ModeOf(tokens), 0700U);
  EXPECT_EQ(ModeOf(store->token_path()), 0600U);
  EXPECT_EQ(ModeOf(store->token_path().native() + ".login"), 0600U);
}

// Else it could put its own settings there, and an authority for the server's certificate.
TEST_F(LoginStoreTest, NobodyElseWritesBesideAToken) {
  const mode_t before = umask(0);
  const auto store = LoginStore::Open("node7");
  umask(before);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(ModeOf(home_ / ".config"), 0755U);
  EXPECT_EQ(ModeOf(home_ / ".config/h5mirror"), 0755U);
  EXPECT_EQ(ModeOf(home_ / ".config/h5mirror/tokens"), 0700U);
}

TEST_F(LoginStoreTest, RootLeavesAllToTheOwnerOfHome) {
  const uid_t owner = geteuid() == 0 ? 12345 : geteuid();
  ASSERT_EQ(chown(home_.c_str(), owner, static_cast<gid_t>(-1)), 0);
  auto store = LoginStore::Open("node7");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(store->Lock(absl::ZeroDuration()).ok());
  ASSERT_TRUE(store->WriteToken("secret").ok());
  ASSERT_TRUE(store->Save({}).ok());
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home_)) {
    struct stat info {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, owner) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 6U);  // .config, h5mirror, tokens, and in it the token, .login and .lock.
}

TEST_F(LoginStoreTest, ALoginIsReadAsItWasKept) {
  const auto store = LoginStore::Open("node7");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(absl::IsNotFound(store->Read().status()));
  KeptLogin login;
  login.settings.token_command = {"a", "b c"};
  login.settings.issuer = "https://sso";
  login.settings.takes_id_token = true;
  login.refresh_token = "r1";
  login.expires = absl::FromUnixSeconds(1'800'000'000);
  ASSERT_TRUE(store->Save(login).ok());
  const auto kept = store->Read();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(kept->settings.token_command, ElementsAre("a", "b c"));
  EXPECT_EQ(kept->settings.issuer, "https://sso");
  EXPECT_TRUE(kept->settings.takes_id_token);
  EXPECT_EQ(kept->refresh_token, "r1");
  EXPECT_EQ(kept->expires, login.expires);
  EXPECT_EQ(kept->obtained, absl::InfinitePast());
}

TEST_F(LoginStoreTest, AFileThatIsNoneOfOursIsRefused) {
  const auto store = LoginStore::Open("node7");
  ASSERT_TRUE(store.ok()) << store.status();
  for (const char* text : {"", "[]", "{\"token_command\": [1]}", "{"}) {
    std::ofstream(store->token_path().native() + ".login") << text;
    EXPECT_TRUE(absl::IsDataLoss(store->Read().status())) << text;
  }
  std::ofstream(store->token_path().native() + ".login") << "{\"issuer\": 3, \"expires\": \"x\"}";
  const auto kept = store->Read();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->settings.issuer, "");
}

TEST_F(LoginStoreTest, OneProcessAtATimeHoldsTheLock) {
  auto first = LoginStore::Open("node7");
  auto second = LoginStore::Open("node7");
  ASSERT_TRUE(first->Lock(absl::ZeroDuration()).ok());
  EXPECT_TRUE(absl::IsUnavailable(second->Lock(absl::Milliseconds(120))));
  first = absl::CancelledError();
  EXPECT_TRUE(second->Lock(absl::ZeroDuration()).ok());
}

TEST_F(LoginStoreTest, ALogoutLeavesNothing) {
  const auto store = LoginStore::Open("node7");
  ASSERT_TRUE(store->WriteToken("secret").ok());
  ASSERT_TRUE(store->Save({}).ok());
  EXPECT_EQ(store->Remove(), absl::StatusOr<bool>(true));
  EXPECT_FALSE(std::filesystem::exists(store->token_path()));
  EXPECT_EQ(store->Remove(), absl::StatusOr<bool>(false));
}

TEST_F(LoginStoreTest, TheExpiryOfATokenIsReadAndNotTrusted) {
  EXPECT_EQ(ExpiryOf("e30.eyJleHAiOjE4MDAwMDAwMDB9.x"), absl::FromUnixSeconds(1'800'000'000));
  for (const char* token : {"", "opaque", "a.b", "e30.e30.x", "e30.!!.x", "e30.W10.x"}) {
    EXPECT_EQ(ExpiryOf(token), std::nullopt) << token;
  }
}

}  // namespace
}  // namespace h5mirror::tools
