#include "archive/s3_store.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "archive/sha256.h"
#include "archive/testing/object_store_contract.h"
#include "base/strings.h"
#include "base/testing/http_answerer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class S3StoreTest : public testing::Test {
 protected:
  S3StoreTest() : keys_(testing::TempDir() + "/h5m-s3-store-keys") {
    WriteKeys("AKFIRST", "SECRETFIRST");
    S3Settings settings;
    settings.bucket = "bucket";
    settings.prefix = "lab";
    settings.endpoint = server_.url().substr(0, server_.url().rfind('/'));
    settings.credentials_file = keys_;
    RetryPolicy policy;
    policy.first_wait = absl::Milliseconds(1);
    auto opened = S3Store::Open(settings, policy);
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  ~S3StoreTest() override { remove(keys_.c_str()); }

  void WriteKeys(const std::string& access, const std::string& secret) {
    std::ofstream(keys_) << "[default]\naws_access_key_id=" << access
                         << "\naws_secret_access_key=" << secret << "\n";
    chmod(keys_.c_str(), 0600);
  }
  void AnswerError(int code, const std::string& name) {
    server_.Answer(code, "<Error><Code>" + name + "</Code><Message>m</Message></Error>");
  }
  // "HTTP/1.1 206 ..." with a body that is a part of an object of `total` bytes.
  void AnswerPart(const std::string& body, const std::string& range) {
    server_.Answer(StrCat("HTTP/1.1 206 Partial\r\nContent-Range: bytes ", range,
                          "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n\r\n",
                          body));
  }
  absl::StatusOr<std::string> Get(uint64_t offset, size_t size,
                                  absl::Duration timeout = kTestTimeout) {
    std::string out(size, '\0');
    const absl::Status got = store_->Get("files/a", offset, absl::MakeSpan(out), timeout);
    if (!got.ok()) return got;
    return out;
  }
  std::string Request(size_t number) { return server_.requests().at(number); }

  const std::string keys_;
  HttpAnswerer server_;
  std::unique_ptr<S3Store> store_;
};

TEST_F(S3StoreTest, AGetAsksForARangeAndIsSigned) {
  AnswerPart("cde", "2-4/9");
  EXPECT_EQ(Get(2, 3).value_or(""), "cde");
  const std::string request = Request(0);
  EXPECT_THAT(request, StartsWith("GET /bucket/lab/files/a HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nrange: bytes=2-4\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKFIRST/"));
  EXPECT_THAT(request, HasSubstr("/us-east-1/s3/aws4_request,SignedHeaders=host;range;"
                                 "x-amz-content-sha256;x-amz-date,Signature="));
  EXPECT_THAT(request, Not(HasSubstr("SECRET")));
}

TEST_F(S3StoreTest, AServiceThatIsBusyIsAskedAgain) {
  AnswerError(503, "SlowDown");
  AnswerError(500, "InternalError");
  AnswerPart("a", "0-0/1");
  EXPECT_EQ(Get(0, 1).value_or(""), "a");
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_F(S3StoreTest, OneThatStaysBusyIsUnavailableAndNamed) {
  for (int i = 0; i < 5; ++i) AnswerError(503, "SlowDown");
  const absl::Status status = Get(0, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("get files/a in s3://bucket/lab: answered with 503 SlowDown"));
  EXPECT_EQ(server_.requests().size(), 5u);
}

TEST_F(S3StoreTest, AnAnswerThatNeverComesMeetsTheDeadline) {
  server_.Answer("");
  const absl::Status status = Get(0, 1, absl::Milliseconds(300)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("files/a"));
}

TEST_F(S3StoreTest, AnObjectThatIsGoneIsNotFoundAtOnce) {
  AnswerError(404, "NoSuchKey");
  EXPECT_TRUE(absl::IsNotFound(Get(0, 1).status()));
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(S3StoreTest, AnObjectThatEndsBeforeIsDataLoss) {
  AnswerPart("ab", "0-1/2");
  EXPECT_TRUE(absl::IsDataLoss(Get(0, 3).status()));
  AnswerError(416, "InvalidRange");
  EXPECT_TRUE(absl::IsDataLoss(Get(7, 3).status()));
  server_.Answer(200, "ab");
  EXPECT_TRUE(absl::IsDataLoss(Get(0, 3).status()));
}

TEST_F(S3StoreTest, ATruncatedAnswerIsAskedForAgain) {
  AnswerPart("ab", "0-1/9");
  server_.Answer("HTTP/1.1 206 Partial\r\nContent-Length: 3\r\nConnection: close\r\n\r\nab");
  AnswerPart("abc", "0-2/9");
  EXPECT_EQ(Get(0, 3).value_or(""), "abc");
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_F(S3StoreTest, AServiceThatKnowsNoRangesSendsAllOfIt) {
  server_.Answer(200, "abcdef");
  EXPECT_EQ(Get(2, 3).value_or(""), "cde");
}

TEST_F(S3StoreTest, APutReplacesNothingAndSendsItsChecksum) {
  EXPECT_TRUE(PutText(*store_, "files/a", "hello").ok());
  const std::string request = Request(0);
  EXPECT_THAT(request, StartsWith("PUT /bucket/lab/files/a HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nif-none-match: *\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-amz-content-sha256: " + Sha256Hex("hello") + "\r\n"));
  EXPECT_THAT(request, EndsWith("\r\n\r\nhello"));
  AnswerError(412, "PreconditionFailed");
  EXPECT_TRUE(absl::IsAlreadyExists(PutText(*store_, "files/a", "hello")));
}

TEST_F(S3StoreTest, AServiceThatKnowsNoConditionsIsAskedFirst) {
  AnswerError(501, "NotImplemented");
  server_.Answer("HTTP/1.1 404 None\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  server_.Answer(200, "");
  EXPECT_TRUE(PutText(*store_, "files/a", "hello").ok());
  server_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::IsAlreadyExists(PutText(*store_, "files/a", "hello")));
  ASSERT_EQ(server_.requests().size(), 4u);
  EXPECT_THAT(Request(1), StartsWith("HEAD "));
  EXPECT_THAT(Request(2), StartsWith("PUT "));
  EXPECT_THAT(Request(2), Not(HasSubstr("if-none-match")));
  EXPECT_THAT(Request(3), StartsWith("HEAD "));
}

TEST_F(S3StoreTest, KeysThatWereReplacedAreReadAgain) {
  WriteKeys("AKSECOND", "SECRETSECOND");
  AnswerError(403, "InvalidAccessKeyId");
  AnswerPart("a", "0-0/1");
  EXPECT_EQ(Get(0, 1).value_or(""), "a");
  EXPECT_THAT(Request(1), HasSubstr("Credential=AKSECOND/"));
}

TEST_F(S3StoreTest, KeysThatAreRefusedAreInNoMessage) {
  AnswerError(403, "SignatureDoesNotMatch");
  const absl::Status status = Get(0, 1).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_EQ(server_.requests().size(), 1u);
  for (const char* secret : {"AKFIRST", "SECRETFIRST", "Signature=", "Authorization"}) {
    EXPECT_THAT(status.message(), Not(HasSubstr(secret)));
  }
}

TEST_F(S3StoreTest, ARefusalSaysWhereTheKeysAre) {
  for (const char* code : {"InvalidAccessKeyId", "AccessDenied"}) {
    AnswerError(403, code);
    EXPECT_THAT(std::string(Get(0, 1).status().message()), HasSubstr(keys_));
  }
}

TEST_F(S3StoreTest, ClocksThatDifferAreBothTold) {
  const std::string body = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
  const std::string date = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                            absl::Now() - absl::Hours(2), absl::UTCTimeZone());
  server_.Answer(StrCat("HTTP/1.1 403 No\r\nDate: ", date, "\r\nContent-Length: ", body.size(),
                        "\r\nConnection: close\r\n\r\n", body));
  const absl::Status skewed = Get(0, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(skewed)) << skewed;
  EXPECT_THAT(std::string(skewed.message()), HasSubstr("this machine's clock is "));
  EXPECT_THAT(std::string(skewed.message()), HasSubstr("ahead of that of the service"));
  EXPECT_EQ(server_.requests().size(), 1u);
}

// As in the answer to a HEAD, which has no body.
TEST_F(S3StoreTest, ClocksThatDifferAreToldWithoutABody) {
  for (const auto& [apart, is_told] :
       {std::pair(absl::Hours(2), true), {absl::Minutes(2), false}}) {
    const std::string date =
        absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now() + apart, absl::UTCTimeZone());
    server_.Answer(StrCat("HTTP/1.1 403 No\r\nDate: ", date,
                          "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    const std::string told(Get(0, 1).status().message());
    EXPECT_EQ(told.find("behind that of the service") != told.npos, is_told) << told;
  }
}

TEST_F(S3StoreTest, AListLosesThePrefix) {
  server_.Answer(200,
                 "<ListBucketResult><IsTruncated>true</IsTruncated>"
                 "<NextContinuationToken>t/1</NextContinuationToken><Contents><Key>lab/files/a"
                 "</Key><Size>5</Size></Contents></ListBucketResult>");
  server_.Answer(200, "<ListBucketResult></ListBucketResult>");
  const auto page = store_->List("files/", "", 7, kTestTimeout);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->objects, ElementsAre(store::ObjectInfo{"files/a", 5}));
  EXPECT_TRUE(store_->List("files/", page->next, 7, kTestTimeout)->objects.empty());
  EXPECT_THAT(Request(0),
              StartsWith("GET /bucket?list-type=2&max-keys=7&prefix=lab%2Ffiles%2F HTTP/1.1\r\n"));
  EXPECT_THAT(Request(1), StartsWith("GET /bucket?continuation-token=t%2F1&list-type=2&"));
}

TEST_F(S3StoreTest, AnswersThatAreNoListsAreSaid) {
  server_.Answer(200, "<html>");
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->List("a", "", 7, kTestTimeout).status()));
}

TEST_F(S3StoreTest, WhatIsGoneCountsAsDeleted) {
  server_.Answer("HTTP/1.1 204 Gone\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(store_->Delete("files/a", kTestTimeout).ok());
  AnswerError(404, "NoSuchKey");
  EXPECT_TRUE(store_->Delete("files/a", kTestTimeout).ok());
  AnswerError(403, "AccessDenied");
  EXPECT_TRUE(absl::IsPermissionDenied(store_->Delete("files/a", kTestTimeout)));
}

}  // namespace
}  // namespace h5mirror::archive
