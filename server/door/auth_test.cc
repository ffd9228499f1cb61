#include "server/door/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(AuthTest, WithoutTokensEverybodyMayDoEverything) {
  const auto principal = Authenticator().Authenticate(std::nullopt);
  ASSERT_TRUE(principal.ok());
  EXPECT_EQ(principal->name, "");
  EXPECT_TRUE(CheckRight(*principal, Right::kAdmin).ok());
}

class TokensTest : public ::testing::Test {
 protected:
  TestDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "tokens";
};

TEST_F(TokensTest, TokenGivesItsNameAndRights) {
  const auto token = AddToken(path_, "node7", *Rights::Parse("read,write"));
  ASSERT_TRUE(token.ok()) << token.status();
  const auto authenticator = Authenticator::Load(path_);
  ASSERT_TRUE(authenticator.ok()) << authenticator.status();
  const auto principal = (*authenticator)->Authenticate("Bearer " + *token);
  ASSERT_TRUE(principal.ok());
  EXPECT_EQ(principal->name, "node7");
  EXPECT_TRUE(CheckRight(*principal, Right::kWrite).ok());
  const absl::Status denied = CheckRight(*principal, Right::kAdmin);
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_THAT(Message(denied), HasSubstr("node7"));
}

TEST_F(TokensTest, MissingMalformedAndUnknownTokensAreRefused) {
  ASSERT_TRUE(AddToken(path_, "a", Rights::All()).ok());
  const auto authenticator = *Authenticator::Load(path_);
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Authenticate(std::nullopt).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Authenticate("Basic x").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Authenticate("Bearer ").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->Authenticate("Bearer h5m_x").status()));
}

TEST_F(TokensTest, FileHoldsDigestsOnlyAndIsPrivate) {
  const auto token = AddToken(path_, "a", Rights::All());
  ASSERT_TRUE(token.ok());
  std::ifstream stream(path_);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_EQ(text.find(token->substr(4)), std::string::npos);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(TokensTest, ReloadTakesNewTokensAndForgetsRemovedOnes) {
  const auto first = *AddToken(path_, "a", Rights::All());
  const auto authenticator = *Authenticator::Load(path_);
  const auto second = *AddToken(path_, "b", Rights::All());
  ASSERT_TRUE(RemoveToken(path_, "a").ok());
  ASSERT_TRUE(authenticator->Reload().ok());
  EXPECT_FALSE(authenticator->Authenticate("Bearer " + first).ok());
  EXPECT_TRUE(authenticator->Authenticate("Bearer " + second).ok());
}

TEST_F(TokensTest, FailedReloadKeepsTheTokens) {
  const auto token = *AddToken(path_, "a", Rights::All());
  const auto authenticator = *Authenticator::Load(path_);
  directory_.Write("tokens", "nonsense\n");
  EXPECT_THAT(Message(authenticator->Reload()), HasSubstr("tokens:1"));
  EXPECT_TRUE(authenticator->Authenticate("Bearer " + token).ok());
}

TEST_F(TokensTest, NameIsGivenOnceAndRemovedOnce) {
  ASSERT_TRUE(AddToken(path_, "a", Rights::All()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(AddToken(path_, "a", Rights::All()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AddToken(path_, "a b", Rights::All()).status()));
  EXPECT_TRUE(RemoveToken(path_, "a").ok());
  EXPECT_TRUE(absl::IsNotFound(RemoveToken(path_, "a")));
}

TEST_F(TokensTest, FileThatOthersCanWriteIsRefused) {
  ASSERT_TRUE(AddToken(path_, "a", Rights::All()).ok());
  ASSERT_EQ(chmod(path_.c_str(), 0620), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Authenticator::Load(path_).status()));
}

TEST(RightsTest, ListIsParsedAndPrinted) {
  EXPECT_EQ(Rights::Parse("admin,read")->ToString(), "read,admin");
  EXPECT_THAT(Message(Rights::Parse("root").status()), HasSubstr("read, write, admin"));
  EXPECT_FALSE(Rights::Parse("").ok());
}

}  // namespace
}  // namespace h5mirror::server
