#include "server/door/json_web_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "absl/time/clock.h"
#include "base/strings.h"
#include "server/settings/access_rules.h"
#include "server/testing/json_web_issuer.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kIssuer[] = "https://sso.example";

int64_t SecondsFromNow(int64_t seconds) { return absl::ToUnixSeconds(absl::Now()) + seconds; }

json Claims(const json& more = json::object()) {
  json claims = {{"iss", kIssuer},
                 {"aud", "h5mirror"},
                 {"sub", "anna"},
                 {"exp", SecondsFromNow(600)},
                 {"iat", SecondsFromNow(0)}};
  if (!more.is_null()) claims.update(more);  // {} is null.
  return claims;
}

class JsonWebTokensTest : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.keys = directory_.path() / "keys.json";
    settings_.issuer = kIssuer;
    settings_.audience = "h5mirror";
    Put({&rsa_, &p256_, &p384_});
    Load();
  }
  void Put(const std::vector<const SigningKey*>& keys) {
    directory_.Write("new.json", KeySetOf(keys));
    std::filesystem::rename(directory_.path() / "new.json", settings_.keys);
  }
  void Load() {
    auto tokens = JsonWebTokens::Load(settings_);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    tokens_ = *std::move(tokens);
  }
  std::string WhyNot(const std::string& token) {
    const absl::Status status = tokens_->Find(token).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_EQ(status.message().find(token), absl::string_view::npos);
    return std::string(status.message());
  }
  std::string WhyNotClaims(const json& more) { return WhyNot(p256_.Sign(Claims(more), "ES256")); }

  TestDirectory directory_;
  JsonWebTokenSettings settings_;
  const SigningKey& rsa_ = SharedRsaKey();  // Under ASan a new one takes seconds.
  const SigningKey p256_{"e", "P-256"};
  const SigningKey p384_{"f", "P-384"};
  std::unique_ptr<JsonWebTokens> tokens_;
};

TEST_F(JsonWebTokensTest, EachAlgorithmNamesTheUserAndItsGroups) {
  const json claims = Claims({{"groups", {"bl7", "staff"}}});
  for (const char* algorithm : {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}) {
    const auto identity = tokens_->Find(rsa_.Sign(claims, algorithm));
    ASSERT_TRUE(identity.ok()) << algorithm << identity.status();
    EXPECT_EQ((*identity)->name, "anna");
    EXPECT_THAT((*identity)->groups, ElementsAre("bl7", "staff"));
  }
  EXPECT_TRUE(tokens_->Find(p256_.Sign(claims, "ES256")).ok());
  EXPECT_TRUE(tokens_->Find(p384_.Sign(claims, "ES384")).ok());
}

TEST_F(JsonWebTokensTest, ForgedTokensAreRefused) {
  const std::string good = rsa_.Sign(Claims(), "RS256");
  const std::string body = good.substr(0, good.rfind('.') + 1);
  EXPECT_THAT(WhyNot(body + Base64Url(std::string(256, 'x'))), HasSubstr("signature is wrong"));
  EXPECT_THAT(WhyNot(SignByHs256(Claims(), rsa_.PublicPem(), "r")), HasSubstr("no key with"));
  EXPECT_THAT(WhyNot(SignByHs256(Claims(), rsa_.Public()["n"].get<std::string>(), "r")),
              HasSubstr("no key with"));
  EXPECT_THAT(WhyNot(Unsigned({{"alg", "none"}}, Claims()) + ".AAAA"), HasSubstr("no key with"));
  EXPECT_THAT(WhyNot(Unsigned({{"alg", "none"}}, Claims()) + "."), HasSubstr("no JWT"));
  // Another's key under our key's id, and our key under another's.
  EXPECT_THAT(WhyNot(SigningKey("r", "RSA").Sign(Claims(), "RS256")), HasSubstr("is wrong"));
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"kid", "e"}})), HasSubstr("no key with"));
  // A signature by one hash, said to be by another.
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"alg", "RS512"}})), HasSubstr("is wrong"));
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"alg", "PS256"}})), HasSubstr("is wrong"));
  EXPECT_THAT(WhyNot(p256_.Sign(Claims(), "ES256", {{"alg", "ES384"}})), HasSubstr("no key with"));
  EXPECT_TRUE(tokens_->Find(good).ok());
}

TEST_F(JsonWebTokensTest, OtherClaimsUnderAGoodSignatureAreRefused) {
  const std::string good = p256_.Sign(Claims(), "ES256");
  const std::string other = p256_.Sign(Claims({{"sub", "root"}}), "ES256");
  const std::string mixed = other.substr(0, other.rfind('.')) + good.substr(good.rfind('.'));
  EXPECT_THAT(WhyNot(mixed), HasSubstr("signature is wrong"));
}

TEST_F(JsonWebTokensTest, HeadersThatCannotBeTrustedAreRefused) {
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"crit", {"b64"}}, {"b64", false}})),
              HasSubstr("\"crit\""));
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"alg", 256}})), HasSubstr("no \"alg\""));
  EXPECT_THAT(WhyNot(rsa_.Sign(Claims(), "RS256", {{"kid", json::array()}})), HasSubstr("\"kid\""));
  const std::string rest = "." + Base64Url(Claims().dump()) + ".AAAA";
  EXPECT_THAT(WhyNot(Base64Url(R"({"alg":"none","alg":"RS256"})") + rest), HasSubstr("no JSON"));
  EXPECT_THAT(WhyNot(Base64Url("[1]") + rest), HasSubstr("no JSON"));
}

TEST_F(JsonWebTokensTest, WithoutAKeyIdTheKeysThatFitAreTried) {
  EXPECT_TRUE(tokens_->Find(rsa_.Sign(Claims(), "RS256", {{"kid", "r"}})).ok());
  const SigningKey nameless("", "P-256");
  std::deque<SigningKey> others;
  for (int i = 0; i < 7; ++i) others.emplace_back(StrCat("k", i), "P-256");
  std::vector<const SigningKey*> all;
  for (const SigningKey& key : others) all.push_back(&key);
  all.push_back(&nameless);
  Put(all);
  Load();
  EXPECT_TRUE(tokens_->Find(nameless.Sign(Claims(), "ES256")).ok());
  all.insert(all.begin(), &p256_);  // Now it is the ninth.
  Put(all);
  Load();
  EXPECT_THAT(WhyNot(nameless.Sign(Claims(), "ES256")), HasSubstr("signature is wrong"));
}

TEST_F(JsonWebTokensTest, TimesCount) {
  EXPECT_THAT(WhyNotClaims({{"exp", SecondsFromNow(-1)}}), HasSubstr("run `h5mirror login`"));
  EXPECT_THAT(WhyNotClaims({{"nbf", SecondsFromNow(90)}}), HasSubstr("nbf"));
  EXPECT_THAT(WhyNotClaims({{"iat", SecondsFromNow(90)}}), HasSubstr("in the future"));
  for (const json& bad : {json("tomorrow"), json(-1), json(1e300), json(nullptr), json(true)}) {
    EXPECT_THAT(WhyNotClaims({{"exp", bad}}), HasSubstr("no time")) << bad;
  }
  json without = Claims();
  without.erase("exp");
  EXPECT_THAT(WhyNot(p256_.Sign(without, "ES256")), HasSubstr("no \"exp\""));
  const json near = Claims({{"nbf", SecondsFromNow(30)}, {"iat", SecondsFromNow(30)}});
  EXPECT_TRUE(tokens_->Find(p256_.Sign(near, "ES256")).ok());
  EXPECT_TRUE(tokens_->Find(p256_.Sign(Claims({{"exp", SecondsFromNow(9) + 0.5}}), "ES256")).ok());
}

TEST_F(JsonWebTokensTest, IssuerAndAudienceCount) {
  EXPECT_THAT(WhyNotClaims({{"iss", "https://sso.example/"}}), HasSubstr("jwt_issuer"));
  EXPECT_THAT(WhyNotClaims({{"iss", json::array({kIssuer})}}), HasSubstr("jwt_issuer"));
  EXPECT_THAT(WhyNotClaims({{"aud", "other"}}), HasSubstr("jwt_audience"));
  EXPECT_THAT(WhyNotClaims({{"aud", {"other", 7}}}), HasSubstr("jwt_audience"));
  EXPECT_TRUE(tokens_->Find(p256_.Sign(Claims({{"aud", {"a", "h5mirror"}}}), "ES256")).ok());
  json without = Claims();
  without.erase("aud");
  EXPECT_THAT(WhyNot(p256_.Sign(without, "ES256")), HasSubstr("jwt_audience"));
}

TEST_F(JsonWebTokensTest, NamesAndGroupsAreBounded) {
  for (const json& bad : {json(""), json("a/b"), json("a b"), json("a\nb"), json("unix:anna"),
                          json("."), json("\u00e4nna"), json(7), json(std::string(129, 'a'))}) {
    EXPECT_THAT(WhyNotClaims({{"sub", bad}}), HasSubstr("\"sub\"")) << bad;
  }
  EXPECT_TRUE(tokens_->Find(p256_.Sign(Claims({{"sub", std::string(128, 'a')}}), "ES256")).ok());
  EXPECT_THAT(WhyNotClaims({{"groups", {std::string(257, 'g')}}}), HasSubstr("\"groups\""));
  EXPECT_THAT(WhyNotClaims({{"groups", {1}}}), HasSubstr("\"groups\""));
  EXPECT_THAT(WhyNotClaims({{"groups", json(std::vector<std::string>(1025, "g"))}}),
              HasSubstr("more than 1024"));
  const auto one = tokens_->Find(p256_.Sign(Claims({{"groups", "bl7"}}), "ES256"));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT((*one)->groups, ElementsAre("bl7"));
}

TEST_F(JsonWebTokensTest, GroupsCountUnderAGoodSignatureOnly) {
  const json claims = Claims({{"groups", json::array({json::array({1})})}});
  const std::string bad = p256_.Sign(claims, "ES256");
  EXPECT_THAT(WhyNot(bad), HasSubstr("\"groups\""));
  EXPECT_THAT(WhyNot(bad.substr(0, bad.rfind('.') + 1) + Base64Url(std::string(64, 'x'))),
              HasSubstr("signature is wrong"));
}

TEST_F(JsonWebTokensTest, DeepClaimsAreRefused) {
  const auto nested = [](int depth) {  // Beside the object of the claims.
    json value = "g";
    for (int i = 0; i < depth; ++i) value = i % 2 == 0 ? json::array({value}) : json{{"x", value}};
    return Claims({{"more", value}});
  };
  EXPECT_TRUE(tokens_->Find(p256_.Sign(nested(15), "ES256")).ok());
  EXPECT_THAT(WhyNot(p256_.Sign(nested(16), "ES256")), HasSubstr("no JSON"));
  const std::string arrays = StrCat("{\"groups\":", std::string(9000, '['), "}");
  EXPECT_THAT(WhyNot(Base64Url(R"({"alg":"ES256"})") + "." + Base64Url(arrays) + ".AAAA"),
              HasSubstr("no JSON"));
  const std::string closed =
      StrCat("{\"groups\":", std::string(5000, '['), std::string(5000, ']'), "}");
  EXPECT_THAT(WhyNot(Base64Url(R"({"alg":"ES256"})") + "." + Base64Url(closed) + ".AAAA"),
              HasSubstr("no JSON"));
}

TEST_F(JsonWebTokensTest, OtherClaimsMayNameUserAndGroups) {
  settings_.user_claim = "preferred_username";
  settings_.groups_claim = "roles";
  Load();
  const auto found =
      tokens_->Find(p256_.Sign(Claims({{"preferred_username", "bob"}, {"roles", {"r"}}}), "ES256"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->name, "bob");
  EXPECT_THAT((*found)->groups, ElementsAre("r"));
  EXPECT_THAT(WhyNotClaims({}), HasSubstr("preferred_username"));
}

TEST_F(JsonWebTokensTest, TruncatedAndHugeOnesAreRefused) {
  const std::string good = p256_.Sign(Claims(), "ES256");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(tokens_->Find(good.substr(0, size)).ok()) << size;
  }
  EXPECT_THAT(WhyNot(p256_.Sign(Claims({{"x", std::string(16 << 10, 'x')}}), "ES256")),
              HasSubstr("at most 16384"));
  EXPECT_FALSE(tokens_->Find(good + "=").ok());
  EXPECT_FALSE(tokens_->Find(good + ".AAAA").ok());
  EXPECT_FALSE(tokens_->Find(good.substr(0, 9) + "\n" + good.substr(9)).ok());
}

TEST_F(JsonWebTokensTest, FormTellsJwtsFromOtherTokens) {
  EXPECT_TRUE(IsJsonWebToken(p256_.Sign(Claims(), "ES256")));
  EXPECT_TRUE(IsJsonWebToken("a.b.c"));
  for (const char* other : {"", "h5m_0123", "a.b", "a..c", ".b.c", "a.b.c.d", "a.b.c=", "a.b. c"}) {
    EXPECT_FALSE(IsJsonWebToken(other)) << other;
  }
}

TEST_F(JsonWebTokensTest, AKeyThatIsTakenOutTakesItsTokensWithIt) {
  const std::string token = p256_.Sign(Claims(), "ES256");
  const auto identity = *tokens_->Find(token);
  EXPECT_TRUE(tokens_->StillValid(*identity).ok());
  Put({&rsa_});
  EXPECT_EQ(tokens_->ReloadIfChanged(), absl::StatusOr<bool>(true));
  EXPECT_THAT(std::string(tokens_->StillValid(*identity).message()), HasSubstr("taken out"));
  EXPECT_THAT(WhyNot(token), HasSubstr("no key with"));
  Put({&p256_});
  EXPECT_EQ(tokens_->Reload(), absl::StatusOr<bool>(true));
  EXPECT_TRUE(tokens_->Find(token).ok());
}

TEST_F(JsonWebTokensTest, WhatRunsEndsAfterTheGrace) {
  settings_.grace = absl::Minutes(5);
  Load();
  const auto identity = *tokens_->Find(p256_.Sign(Claims({{"exp", SecondsFromNow(100)}}), "ES256"));
  EXPECT_EQ(identity->ends, identity->expires + absl::Minutes(5));
  EXPECT_EQ(tokens_->NextExpiry(), identity->ends);
  TokenIdentity late = *identity;
  late.expires = absl::Now() - absl::Minutes(2);
  late.ends = late.expires + absl::Minutes(5);
  EXPECT_TRUE(tokens_->StillValid(late).ok());
  late.ends = absl::Now();
  EXPECT_TRUE(absl::IsUnauthenticated(tokens_->StillValid(late)));
}

// The whole server.
class LoginsTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.jwt_keys = directory_.path() / "keys.json";
    config_.jwt_issuer = kIssuer;
    config_.jwt_audience = "h5mirror";
    Put({&key_});
  }
  void Put(const std::vector<const SigningKey*>& keys) {
    directory_.Write("new.json", KeySetOf(keys));
    std::filesystem::rename(directory_.path() / "new.json", config_.jwt_keys);
  }
  static AccessRule Rule(const std::string& files) {
    AccessRule rule;
    rule.files = {files};
    rule.allow = Rights::All();
    return rule;
  }
  void Show(const json& claims) {
    options_.token = key_.Sign(Claims(claims), "ES256");
    if (server_ != nullptr) Connect();
  }
  absl::Status Look(const std::string& name) {
    v1::GetFileRequest request;
    request.set_name(name);
    return client_->GetFile(request, absl::Seconds(20)).status();
  }

  const SigningKey key_{"e", "P-256"};
};

TEST_F(LoginsTest, TablesTakeUsersAndGroupsOfTokens) {
  AccessRule own = Rule("home/${user}/**"), group = Rule("bl7/**"), anna = Rule("anna/**");
  group.groups = {"bl7"};
  anna.users = {"jwt:anna"};
  config_.access = {own, group, anna};
  Show({{"groups", {"bl7"}}});
  Start();
  MirrorWhole("home/anna/x.h5", "hello");
  MirrorWhole("bl7/x.h5", "hello");
  MirrorWhole("anna/x.h5", "hello");
  Show({{"sub", "bob"}});
  EXPECT_TRUE(absl::IsNotFound(Look("home/anna/x.h5")));
  EXPECT_TRUE(absl::IsNotFound(Look("bl7/x.h5")));
  EXPECT_TRUE(absl::IsNotFound(Look("anna/x.h5")));
}

TEST_F(LoginsTest, WithoutATokenACallIsRefusedAndTokensOfTheFileCountBesides) {
  config_.tokens_file = directory_.path() / "tokens";
  const std::string robot = *AddToken(config_.tokens_file, "robot", Rights::All());
  Show({});
  Start();
  MirrorWhole("x.h5", "hello");
  options_.token = robot;
  Connect();
  EXPECT_TRUE(Look("x.h5").ok());
  options_.token = "";
  Connect();
  const absl::Status without = Look("x.h5");
  EXPECT_TRUE(absl::IsUnauthenticated(without)) << without;
  EXPECT_THAT(std::string(without.message()), HasSubstr("run `h5mirror login`"));
}

TEST_F(LoginsTest, WithoutATokensFileOtherTokensAreNone) {
  Show({});
  Start();
  MirrorWhole("x.h5", "hello");
  options_.token = "h5m_0123";
  Connect();
  EXPECT_TRUE(absl::IsUnauthenticated(Look("x.h5")));
}

TEST_F(LoginsTest, ASessionEndsAtExpiryAndGrace) {
  config_.jwt_grace = absl::Seconds(1);
  Start();
  const int64_t expires = SecondsFromNow(2);
  Show({{"exp", expires}});
  auto session = Open("x.h5", v1::INTENT_CREATE);
  while (session->Receive().ok()) {
  }
  EXPECT_GE(absl::Now(), absl::FromUnixSeconds(expires + 1));
  const absl::Status end = session->Finish();
  EXPECT_TRUE(absl::IsUnauthenticated(end)) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("run `h5mirror login`"));
}

TEST_F(LoginsTest, AKeyThatIsTakenOutEndsWhatRuns) {
  Show({});
  Start();
  auto session = Open("x.h5", v1::INTENT_CREATE);
  const SigningKey next("n", "P-256");
  Put({&next});
  while (session->Receive().ok()) {  // The server looks by itself.
  }
  const absl::Status end = session->Finish();
  EXPECT_TRUE(absl::IsUnauthenticated(end)) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("taken out"));
  options_.token = next.Sign(Claims(), "ES256");
  Connect();
  EXPECT_TRUE(absl::IsNotFound(Look("none.h5")));
}

}  // namespace
}  // namespace h5mirror::server
