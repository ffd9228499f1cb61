#include "archive/s3_answers.h"

#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Error(std::string_view code, std::string_view message) {
  return StrCat("<?xml version=\"1.0\"?>\n<Error><Code>", code, "</Code><Message>", message,
                "</Message><Resource>/b</Resource></Error>");
}

TEST(S3AnswersTest, AListHasNamesSizesAndAPlaceToGoOn) {
  const auto page = ParseS3List(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>1/+=&amp;</NextContinuationToken>"
      "<Contents><Key>p/a</Key><Size>12</Size><Owner><ID>Key</ID></Owner></Contents>"
      "<Contents><Size>0</Size><Key>p/b</Key></Contents></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->objects,
              ElementsAre(store::ObjectInfo{"p/a", 12}, store::ObjectInfo{"p/b", 0}));
  EXPECT_EQ(page->next, "1/+=&");
}

TEST(S3AnswersTest, TheLastPartGoesNowhere) {
  const auto page =
      ParseS3List("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->objects, IsEmpty());
  EXPECT_EQ(page->next, "");
}

TEST(S3AnswersTest, OtherDocumentsAreNoLists) {
  for (const char* xml :
       {"", "x", "<a/>", "<ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><ListBucketResult><Name>&b;</Name></ListBucketResult>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a></"
        "a>"
        "</a></a></a></a></a></a></a></a>"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseS3List(xml).status())) << xml;
  }
}

TEST(S3AnswersTest, CodesOfTheServiceDecide) {
  const auto code_of = [](int http, std::string_view code) {
    return StatusOfAnswer(http, Error(code, "m"), "x").code();
  };
  EXPECT_EQ(code_of(404, "NoSuchKey"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code_of(404, "NoSuchBucket"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(412, "PreconditionFailed"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code_of(400, "XAmzContentSHA256Mismatch"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code_of(400, "ExpiredToken"), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code_of(403, "RequestTimeTooSkewed"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(416, "InvalidRange"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(507, "XMinioStorageFull"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of(400, "XMinioAdminBucketQuotaExceeded"), absl::StatusCode::kResourceExhausted);
}

TEST(S3AnswersTest, WithoutOneTheNumberOfHttpDoes) {
  const auto code_of = [](int http) { return StatusOfAnswer(http, "<html>", "x").code(); };
  for (int http : {500, 502, 503, 504, 408, 409, 429}) {
    EXPECT_EQ(code_of(http), absl::StatusCode::kUnavailable) << http;
  }
  EXPECT_EQ(code_of(404), absl::StatusCode::kNotFound);
  EXPECT_EQ(code_of(403), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code_of(400), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(301), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(501), absl::StatusCode::kUnimplemented);
}

TEST(S3AnswersTest, TheMessageNamesWhatAndIsSafeForATerminal) {
  const absl::Status status =
      StatusOfAnswer(503, Error("SlowDown", "wait &#10; a bit"), "s3://b: a");
  EXPECT_THAT(status.message(), HasSubstr("s3://b: a: answered with 503 SlowDown, \"wait"));
  EXPECT_EQ(ToStd(status.message()).find('\n'), std::string_view::npos);
  const absl::Status long_one = StatusOfAnswer(400, Error("X", std::string(9000, 'x')), "a");
  EXPECT_LT(long_one.message().size(), 300u);
}

}  // namespace
}  // namespace h5mirror::archive
