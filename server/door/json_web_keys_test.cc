#include "server/door/json_web_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "server/testing/json_web_issuer.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class JsonWebKeysTest : public ::testing::Test {
 protected:
  // Why the one key does not count.
  static std::string WhyNot(const json& key) {
    const auto set = ParseJsonWebKeys(json{{"keys", {key}}}.dump(), "keys.json");
    EXPECT_TRUE(set.ok()) << set.status();
    EXPECT_TRUE(set->keys.empty());
    return set->left_out.empty() ? "" : set->left_out.front();
  }
  std::filesystem::path Put(const std::vector<const SigningKey*>& keys) {
    directory_.Write("new.json", KeySetOf(keys));
    std::filesystem::rename(directory_.path() / "new.json", path_);
    return path_;
  }

  TestDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "keys.json";
  const SigningKey& rsa_ = SharedRsaKey();  // Under ASan a new one takes seconds.
  const SigningKey p256_{"e", "P-256"};
  const SigningKey p384_{"f", "P-384"};
};

TEST_F(JsonWebKeysTest, KeysFitTheAlgorithmsOfTheirKindAlone) {
  const auto set = ParseJsonWebKeys(KeySetOf({&rsa_, &p256_, &p384_}), "keys.json");
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->keys.size(), 3U);
  std::vector<std::string> fits(3);
  for (const char* algorithm : {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
                                "ES384", "ES512", "HS256", "none", "", "RS", "RS1", "rs256"}) {
    for (size_t i = 0; i < 3; ++i) {
      if (set->keys[i].Fits(algorithm)) fits[i] += StrCat(algorithm, " ");
    }
  }
  EXPECT_THAT(fits, ElementsAre("RS256 RS384 RS512 PS256 PS384 PS512 ", "ES256 ", "ES384 "));
}

TEST_F(JsonWebKeysTest, AKeyWithAnAlgorithmFitsThatAlone) {
  json key = rsa_.Public();
  key["alg"] = "PS256";
  const auto set = ParseJsonWebKeys(json{{"keys", {key}}}.dump(), "keys.json");
  ASSERT_TRUE(set.ok() && set->keys.size() == 1);
  EXPECT_TRUE(set->keys[0].Fits("PS256"));
  EXPECT_FALSE(set->keys[0].Fits("RS256"));
}

TEST_F(JsonWebKeysTest, OtherKeysAreLeftOutWithAReason) {
  EXPECT_THAT(WhyNot(SigningKey("s", "RSA", 1024).Public()), HasSubstr("has 1024"));
  EXPECT_THAT(WhyNot(SigningKey("s", "P-521").Public()), HasSubstr("neither P-256 nor P-384"));
  EXPECT_THAT(WhyNot({{"kty", "oct"}, {"k", "AAAA"}}), HasSubstr("secret key"));
  EXPECT_THAT(WhyNot({{"kty", "OKP"}, {"crv", "Ed25519"}}), HasSubstr("neither RSA nor EC"));
  EXPECT_THAT(WhyNot(json(3)), HasSubstr("no object"));
  json key = rsa_.Public();
  key["use"] = "enc";
  EXPECT_THAT(WhyNot(key), HasSubstr("not for signatures"));
  key = rsa_.Public();
  key["key_ops"] = {"encrypt"};
  EXPECT_THAT(WhyNot(key), HasSubstr("not for signatures"));
  key = rsa_.Public();
  key["d"] = "AQAB";
  EXPECT_THAT(WhyNot(key), HasSubstr("secret key"));
  key = rsa_.Public();
  key["alg"] = "HS256";
  EXPECT_THAT(WhyNot(key), HasSubstr("\"alg\""));
  key = rsa_.Public();
  key["e"] = "Ag";
  EXPECT_THAT(WhyNot(key), HasSubstr("no exponent"));
  key = rsa_.Public();
  key["n"] = "a b";
  EXPECT_THAT(WhyNot(key), HasSubstr("\"n\" is no base64url"));
  key = p256_.Public();
  key["x"] = p384_.Public()["x"];
  EXPECT_THAT(WhyNot(key), HasSubstr("\"x\" has not 32 bytes"));
  key = p256_.Public();
  key["x"] = SigningKey("o", "P-256").Public()["x"];
  EXPECT_THAT(WhyNot(key), HasSubstr("no point of its curve"));
}

TEST_F(JsonWebKeysTest, WhatIsNoSetIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"keys\": {}}", "{\"keys\": []", "\x80",
                           "{\"keys\": [], \"keys\": []}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseJsonWebKeys(text, "keys.json").status())) << text;
  }
  json many = json::array();
  for (int i = 0; i < 257; ++i) many.push_back(p256_.Public());
  const auto status = ParseJsonWebKeys(json{{"keys", many}}.dump(), "keys.json").status();
  EXPECT_THAT(Message(status), HasSubstr("more than 256"));
}

TEST_F(JsonWebKeysTest, TheSameKeyHasTheSameThumbprintWhateverItIsCalled) {
  json padded = rsa_.Public();
  padded["n"] = Base64Url(std::string(1, '\0') + *DecodeBase64Url(padded["n"].get<std::string>()));
  padded["kid"] = "another";
  const auto set = ParseJsonWebKeys(json{{"keys", {rsa_.Public(), padded}}}.dump(), "keys.json");
  ASSERT_TRUE(set.ok() && set->keys.size() == 2);
  EXPECT_EQ(set->keys[0].thumbprint, set->keys[1].thumbprint);
}

TEST_F(JsonWebKeysTest, AFileThatOthersMayWriteIsRefused) {
  Put({&rsa_});
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const absl::Status status = JsonWebKeys::Load(path_).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("chmod go-w"));
  }
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_TRUE(JsonWebKeys::Load(path_).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(JsonWebKeys::Load(directory_.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(JsonWebKeys::Load(directory_.path() / "none").status()));
}

TEST_F(JsonWebKeysTest, AStartWantsAKeyThatCounts) {
  Put({});
  EXPECT_THAT(Message(JsonWebKeys::Load(path_).status()),
              HasSubstr("holds no key of a kind that signs tokens"));
}

TEST_F(JsonWebKeysTest, AChangedFileIsReadAgainAndABrokenOneChangesNothing) {
  const auto keys = JsonWebKeys::Load(Put({&rsa_}));
  ASSERT_TRUE(keys.ok()) << keys.status();
  const Sha256Digest rsa = (*keys)->keys()->front().thumbprint;
  EXPECT_EQ((*keys)->ReloadIfChanged(), absl::StatusOr<bool>(false));
  directory_.Write("keys.json", "{\"keys\": [");
  EXPECT_TRUE(absl::IsInvalidArgument((*keys)->ReloadIfChanged().status()));
  EXPECT_EQ((*keys)->ReloadIfChanged(), absl::StatusOr<bool>(false));
  EXPECT_TRUE((*keys)->Has(rsa));
  Put({&p256_});
  EXPECT_EQ((*keys)->ReloadIfChanged(), absl::StatusOr<bool>(true));
  EXPECT_FALSE((*keys)->Has(rsa));
  EXPECT_EQ((*keys)->Reload(), absl::StatusOr<bool>(false));
  Put({});
  EXPECT_EQ((*keys)->Reload(), absl::StatusOr<bool>(true));
  EXPECT_TRUE((*keys)->keys()->empty());
}

}  // namespace
}  // namespace h5mirror::server
