// The worked examples of AWS: "Signature Calculations for the Authorization Header", 2013-05-24.
#include "archive/s3_signature.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const S3Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                             ""};

S3Request ExampleRequest() {
  S3Request request;
  request.host = "examplebucket.s3.amazonaws.com";
  request.body_sha256 = kEmptySha256;
  return request;
}

std::string AuthorizationOf(const S3Request& request) {
  const absl::Time then = absl::FromCivil(absl::CivilSecond(2013, 5, 24), absl::UTCTimeZone());
  return SignedHeaders(request, kExample, "us-east-1", then)[0];
}

TEST(S3SignatureTest, GetOfARange) {
  S3Request request = ExampleRequest();
  request.path = "/test.txt";
  request.headers["range"] = "bytes=0-9";
  EXPECT_EQ(AuthorizationOf(request),
            "Authorization: AWS4-HMAC-SHA256 "
            "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(S3SignatureTest, Put) {
  S3Request request = ExampleRequest();
  request.method = "PUT";
  request.path = "/test$file.text";
  request.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  request.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  request.body_sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
  EXPECT_EQ(TargetOf(request), "/test%24file.text");
  EXPECT_THAT(AuthorizationOf(request),
              EndsWith("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(S3SignatureTest, ParameterWithoutAValue) {
  S3Request request = ExampleRequest();
  request.query["lifecycle"] = "";
  EXPECT_THAT(AuthorizationOf(request),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(S3SignatureTest, ParametersAreSorted) {
  S3Request request = ExampleRequest();
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(TargetOf(request), "/?max-keys=2&prefix=J");
  EXPECT_THAT(AuthorizationOf(request),
              EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(S3SignatureTest, PathsKeepTheirSlashesAndQueriesDoNot) {
  S3Request request = ExampleRequest();
  request.path = "/b/a b/c";
  request.query["prefix"] = "a/b+";
  EXPECT_EQ(TargetOf(request), "/b/a%20b/c?prefix=a%2Fb%2B");
}

TEST(S3SignatureTest, ASessionTokenIsSignedAndTheSecretIsNowhere) {
  S3Credentials credentials = kExample;
  credentials.session_token = "token";
  const auto headers = SignedHeaders(ExampleRequest(), credentials, "us-east-1", absl::UnixEpoch());
  EXPECT_THAT(headers[0], HasSubstr(";x-amz-date;x-amz-security-token,"));
  EXPECT_THAT(headers, Contains("x-amz-security-token: token"));
  EXPECT_THAT(headers, Not(Contains(HasSubstr("wJalrXUtnFEMI"))));
}

}  // namespace
}  // namespace h5mirror::archive
