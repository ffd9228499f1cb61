#include "server/door/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "base/strings.h"
#include "rpc/elsewhere.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(AuthTest, WithoutTokensEverybodyMayDoEverything) {
  const auto principal = Authenticator().Authenticate(std::nullopt);
  ASSERT_TRUE(principal.ok());
  EXPECT_EQ(principal->name, "");
  EXPECT_TRUE(CheckRight(*principal, Right::kOperate).ok());
}

class TokensTest : public ::testing::Test {
 protected:
  static std::string Line(const std::string& name, const std::string& rights,
                          const std::string& token) {
    const Sha256Digest digest = Sha256(token);
    return StrCat(name, " ", rights, " ",
                  absl::BytesToHexString(absl::string_view(
                      reinterpret_cast<const char*>(digest.data()), digest.size())));
  }

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
  const absl::Status denied = CheckRight(*principal, Right::kDelete);
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

TEST_F(TokensTest, LimitsAreKeptAndCount) {
  TokenLimits limits;
  ASSERT_TRUE(limits.Set("files", "runs/**,cal.h5").ok());
  ASSERT_TRUE(limits.Set("from", "192.0.2.0/24").ok());
  ASSERT_TRUE(limits.Set("expires", "2999-01-02T03:04:05Z").ok());
  const std::string token = *AddToken(path_, "a", *Rights::Parse("read,write"), limits);
  const auto entries = ReadTokenFile(path_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->front().limits.ToString(),
            " files=runs/**,cal.h5 expires=2999-01-02T03:04:05Z from=192.0.2.0/24");
  const auto authenticator = *Authenticator::Load(path_);
  EXPECT_EQ(authenticator->NextExpiry(), limits.expires);
  const std::string header = "Bearer " + token;
  const auto principal = authenticator->Authenticate(header, {.grpc_peer = "ipv4:192.0.2.7:99"});
  ASSERT_TRUE(principal.ok()) << principal.status();
  EXPECT_EQ(authenticator->RightsTo(*principal, "runs/a/b").ToString(), "read,write");
  EXPECT_EQ(authenticator->RightsTo(*principal, "other").ToString(), "none");
  EXPECT_TRUE(absl::IsNotFound(authenticator->Check(*principal, {Right::kRead, "other"})));
  EXPECT_TRUE(
      absl::IsPermissionDenied(authenticator->Check(*principal, {Right::kDelete, "cal.h5"})));
  for (const char* peer : {"ipv4:192.0.3.7:99", "unix:", ""}) {
    const absl::Status refused = authenticator->Authenticate(header, {.grpc_peer = peer}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("is not for calls from"));
  }
  // Narrowed while the caller is here.
  directory_.Write("tokens", Line("a", "read", token) + " from=192.0.2.8\n");
  ASSERT_TRUE(authenticator->Reload().ok());
  EXPECT_TRUE(absl::IsUnauthenticated(authenticator->StillMay(*principal, {})));
  directory_.Write("tokens", Line("a", "read", token) + " files=cal.h5\n");
  ASSERT_TRUE(authenticator->Reload().ok());
  EXPECT_TRUE(authenticator->StillMay(*principal, OneFile(Right::kRead, "cal.h5")).ok());
  EXPECT_TRUE(
      absl::IsNotFound(authenticator->StillMay(*principal, OneFile(Right::kRead, "runs/a"))));
  EXPECT_TRUE(absl::IsPermissionDenied(
      authenticator->StillMay(*principal, OneFile(Right::kWrite, "cal.h5"))));
}

TEST_F(TokensTest, ATokenForSomeFilesIsNotForTheServerAsAWhole) {
  TokenLimits limits;
  ASSERT_TRUE(limits.Set("files", "runs/**").ok());
  const auto token = AddToken(path_, "a", Rights::All(), limits);
  ASSERT_TRUE(token.ok()) << token.status();
  const auto authenticator = *Authenticator::Load(path_);
  const auto principal = authenticator->Authenticate("Bearer " + *token);
  ASSERT_TRUE(principal.ok()) << principal.status();
  EXPECT_TRUE(absl::IsPermissionDenied(authenticator->CheckAllFiles(*principal, Right::kOperate)));
  EXPECT_TRUE(authenticator->MayBelow(*principal, "runs"));
  EXPECT_FALSE(authenticator->MayBelow(*principal, "x"));
}

TEST_F(TokensTest, AnExpiredTokenIsTold) {
  TokenLimits limits;
  ASSERT_TRUE(limits.Set("expires", "2020-01-02T03:04:05Z").ok());
  const std::string token = *AddToken(path_, "a", Rights::All(), limits);
  const auto authenticator = *Authenticator::Load(path_);
  EXPECT_EQ(authenticator->NextExpiry(), absl::InfiniteFuture());
  const absl::Status refused = authenticator->Authenticate("Bearer " + token).status();
  EXPECT_TRUE(absl::IsUnauthenticated(refused));
  EXPECT_THAT(Message(refused), HasSubstr("has expired, at 2020-01-02T03:04:05"));
}

TEST_F(TokensTest, BadLimitsAreQuoted) {
  for (const char* text :
       {"files=", "files=/a", "files=a,,b", "expires=soon", "from=lab7", "rights=all", "x"}) {
    directory_.Write("tokens", Line("a", "read", "t") + " " + text + "\n");
    const absl::Status status = ReadTokenFile(path_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr("tokens:1")) << text;
  }
}

TEST_F(TokensTest, RotationGivesANewTokenForTheSame) {
  TokenLimits limits;
  ASSERT_TRUE(limits.Set("files", "a").ok());
  const std::string old = *AddToken(path_, "a", *Rights::Parse("read"), limits);
  const std::string token = *RotateToken(path_, "a");
  const auto authenticator = *Authenticator::Load(path_);
  EXPECT_FALSE(authenticator->Authenticate("Bearer " + old).ok());
  const auto principal = authenticator->Authenticate("Bearer " + token);
  ASSERT_TRUE(principal.ok()) << principal.status();
  EXPECT_EQ(principal->rights.ToString(), "read");
  EXPECT_THAT(principal->token->limits.files, ::testing::ElementsAre("a"));
  EXPECT_TRUE(absl::IsNotFound(RotateToken(path_, "b").status()));
}

class RulesTest : public ::testing::Test {
 protected:
  static AccessRule Rule(std::vector<std::string> files, std::vector<std::string> users,
                         std::string_view allow) {
    AccessRule rule;
    rule.files = std::move(files);
    rule.users = std::move(users);
    if (!allow.empty()) rule.allow = *Rights::Parse(allow);
    return rule;
  }
  // The user of this process, on a Unix socket.
  Principal Me() {
    while (!authenticator_.users().Peek(getuid()).has_value()) {
      authenticator_.users().Find(getuid()).status().IgnoreError();
      absl::SleepFor(absl::Milliseconds(1));
    }
    const auto me = authenticator_.Authenticate(std::nullopt, {.uid = getuid()});
    EXPECT_TRUE(me.ok()) << me.status();
    return me.ok() ? *me : Principal();
  }

  Authenticator authenticator_;
};

TEST_F(RulesTest, WithoutTablesAUserHasNoNameAndAllRights) {
  const auto anybody = authenticator_.Authenticate(std::nullopt, {.uid = getuid()});
  ASSERT_TRUE(anybody.ok());
  EXPECT_EQ(anybody->name, "");
  EXPECT_EQ(authenticator_.RightsTo(*anybody, "a"), Rights::All());
}

TEST_F(RulesTest, TheFirstTableDecides) {
  authenticator_.SetRules(
      {Rule({"open/**"}, {}, "read"), Rule({"**"}, {"unix:nobody-else"}, "admin")});
  const Principal me = Me();
  EXPECT_EQ(me.issuer, Principal::Issuer::kUnix);
  EXPECT_NE(me.name, "");
  EXPECT_EQ(authenticator_.RightsTo(me, "open/a").ToString(), "read");
  EXPECT_TRUE(absl::IsPermissionDenied(authenticator_.Check(me, {Right::kWrite, "open/a"})));
  EXPECT_TRUE(absl::IsNotFound(authenticator_.Check(me, {Right::kWrite, "a"})));
  // A caller of the network, without tokens: nobody by name.
  const auto nobody = authenticator_.Authenticate(std::nullopt, {.grpc_peer = "ipv4:127.0.0.1:9"});
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ(authenticator_.RightsTo(*nobody, "open/a").ToString(), "read");
  EXPECT_TRUE(absl::IsNotFound(authenticator_.Check(*nobody, {Right::kRead, "a"})));
}

// A user of a Unix socket has all rights, and tables narrow them.
TEST_F(RulesTest, TheServerAsAWholeTakesATableForAllFiles) {
  const auto may = [this](const Principal& caller, Right right) {
    return authenticator_.CheckAllFiles(caller, right);
  };
  const auto anybody = authenticator_.Authenticate(std::nullopt, {.uid = getuid()});
  ASSERT_TRUE(anybody.ok());
  EXPECT_TRUE(may(*anybody, Right::kOperate).ok()) << "without a table";
  authenticator_.SetRules({Rule({"home/${user}/**"}, {}, "read,write,delete,operate")});
  const Principal me = Me();
  EXPECT_TRUE(authenticator_.Check(me, {Right::kOperate, ""}).ok());
  const absl::Status refused = may(me, Right::kOperate);
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("to all files"));
  authenticator_.SetRules({Rule({"**"}, {"unix:nobody-else"}, "admin"), Rule({"**"}, {}, "read")});
  EXPECT_TRUE(absl::IsPermissionDenied(may(me, Right::kOperate)));
  EXPECT_TRUE(may(me, Right::kRead).ok());
  AccessRule own = Rule({"**"}, {}, "admin");
  own.owners = {"${user}"};
  authenticator_.SetRules({own, Rule({"x/**"}, {}, ""), Rule({"y", "**"}, {me.name}, "operate")});
  EXPECT_TRUE(may(me, Right::kOperate).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(may(me, Right::kDelete)));
}

TEST_F(RulesTest, ACallerMayHaveRightsBelowADirectory) {
  authenticator_.SetRules({Rule({"x/runs/**", "z/*.h5"}, {}, "read"), Rule({"y/**"}, {}, ""),
                           Rule({"home/${user}/**"}, {}, "write"),
                           Rule({"w/**"}, {"unix:nobody-else"}, "read")});
  const Principal me = Me();
  for (const char* const seen : {"", "x", "x/runs", "x/runs/d", "z", "home"}) {
    EXPECT_TRUE(authenticator_.MayBelow(me, seen)) << seen;
  }
  EXPECT_TRUE(authenticator_.MayBelow(me, "home/" + me.name));
  for (const char* const hidden : {"y", "w", "x/other", "z/d", "v", "home/nobody-else"}) {
    EXPECT_FALSE(authenticator_.MayBelow(me, hidden)) << hidden;
  }
}

TEST_F(RulesTest, ReloadedTablesCountForCallersThatAreHere) {
  authenticator_.SetRules({Rule({"**"}, {}, "read,write")});
  const Principal me = Me();
  const Needs needs{{Right::kRead, "a"}, {Right::kWrite, "b"}};
  EXPECT_TRUE(authenticator_.StillMay(me, needs).ok());
  authenticator_.SetRules({Rule({"b"}, {me.name}, "read"), Rule({"**"}, {}, "read,write")});
  EXPECT_TRUE(absl::IsPermissionDenied(authenticator_.StillMay(me, needs)));
  authenticator_.SetRules({Rule({"b"}, {"unix:" + me.name}, ""), Rule({"**"}, {}, "read,write")});
  EXPECT_TRUE(absl::IsNotFound(authenticator_.StillMay(me, needs)));
  EXPECT_TRUE(authenticator_.StillMay(me, OneFile(Right::kWrite, "a")).ok());
}

TEST_F(RulesTest, AFileIsItsOwnersAndANewOneItsCallers) {
  AccessRule own = Rule({"**"}, {}, "read,write,restore");
  own.owners = {"${user}"};
  authenticator_.SetRules({own, Rule({"**"}, {}, "read")});
  const Principal me = Me();
  EXPECT_TRUE(authenticator_.asks_owners());
  EXPECT_TRUE(absl::IsUnavailable(authenticator_.Check(me, {Right::kRead, "a"})))
      << "nobody knows the owner";
  EXPECT_TRUE(authenticator_.RightsTo(me, "a").empty());
  absl::StatusOr<store::FileOwner> owner = store::FileOwner();
  authenticator_.SetOwners([&owner](std::string_view) { return owner; });
  EXPECT_EQ(authenticator_.RightsTo(me, "a").ToString(), "write") << "it is not there yet";
  EXPECT_TRUE(absl::IsNotFound(authenticator_.Check(me, {Right::kRead, "a"})));
  EXPECT_TRUE(absl::IsPermissionDenied(authenticator_.Check(me, {Right::kDelete, "a"})));
  owner = store::FileOwner{true, "unix:somebody-else"};
  EXPECT_EQ(authenticator_.RightsTo(me, "a").ToString(), "read");
  EXPECT_TRUE(absl::IsPermissionDenied(authenticator_.StillMay(me, {{Right::kWrite, "a"}})));
  owner->owner = OwnerName(me);
  EXPECT_TRUE(authenticator_.StillMay(me, {{Right::kWrite, "a"}}).ok());
  const store::FileOwner removed{true, "unix:somebody-else"};
  EXPECT_EQ(authenticator_.RightsTo(me, "a", &removed).ToString(), "read")
      << "of a removed file that had the name";
  owner->owner = "";
  EXPECT_EQ(authenticator_.RightsTo(me, "a").ToString(), "read") << "it has none";
  owner = absl::InternalError("a/secret/path");
  const absl::Status unknown = authenticator_.Check(me, {Right::kRead, "a"});
  EXPECT_TRUE(absl::IsUnavailable(unknown));
  EXPECT_THAT(Message(unknown), ::testing::Not(HasSubstr("secret")));
  const auto nobody = authenticator_.Authenticate(std::nullopt, {.grpc_peer = "ipv4:127.0.0.1:9"});
  owner = store::FileOwner();
  EXPECT_EQ(authenticator_.RightsTo(*nobody, "a").ToString(), "read") << "without a name";
}

TEST_F(RulesTest, AnOwnerThatCannotBeLookedUpHidesNoRightThatIsMissing) {
  AccessRule own = Rule({"a"}, {}, "read");
  own.owners = {"${user}"};
  authenticator_.SetRules({own, Rule({"b"}, {}, "read")});
  authenticator_.SetOwners([](std::string_view) { return absl::InternalError("the disk"); });
  const Principal me = Me();
  EXPECT_TRUE(
      absl::IsUnavailable(authenticator_.StillMay(me, {{Right::kRead, "a"}, {Right::kRead, "b"}})));
  EXPECT_TRUE(absl::IsPermissionDenied(
      authenticator_.StillMay(me, {{Right::kRead, "a"}, {Right::kWrite, "b"}})));
}

TEST_F(RulesTest, InAClusterTheServerThatHasTheFileKnowsItsOwner) {
  AccessRule own = Rule({"**"}, {}, "read");
  own.owners = {"${user}"};
  authenticator_.SetRules({own});
  authenticator_.SetOwners([](std::string_view) -> absl::StatusOr<store::FileOwner> {
    return rpc::ElsewhereError({"node-b:7447", "bl7", 3});
  });
  const auto elsewhere = rpc::ElsewhereOf(authenticator_.Check(Me(), {Right::kRead, "bl7/a"}));
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_EQ(elsewhere->address, "node-b:7447");
}

TEST_F(RulesTest, ACallerLearnsThatNobodyServesTheFileJustNow) {
  AccessRule own = Rule({"**"}, {}, "read");
  own.owners = {"${user}"};
  authenticator_.SetRules({own});
  authenticator_.SetOwners([](std::string_view) -> absl::StatusOr<store::FileOwner> {
    return rpc::NobodyServesError("bl7/a: it is being taken over");
  });
  EXPECT_TRUE(rpc::IsNobodyServes(authenticator_.Check(Me(), {Right::kRead, "bl7/a"})));
}

TEST(RightsTest, ListIsParsedAndPrinted) {
  EXPECT_EQ(Rights::Parse("admin,read")->ToString(), "read,restore,delete,operate");
  EXPECT_EQ(Rights::Parse("delete,write")->ToString(), "write,delete");
  EXPECT_THAT(Message(Rights::Parse("root").status()), HasSubstr("read, write, restore"));
  EXPECT_FALSE(Rights::Parse("").ok());
}

}  // namespace
}  // namespace h5mirror::server
