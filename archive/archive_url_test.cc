#include "archive/archive_url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::HasSubstr;

TEST(ArchiveUrlTest, APathIsADirectory) {
  EXPECT_EQ(ParseArchiveUrl("dir:/mnt/archive")->directory, "/mnt/archive");
}

TEST(ArchiveUrlTest, ABucketAloneIsEnough) {
  const auto url = ParseArchiveUrl("s3://my-bucket");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->directory, "");
  EXPECT_EQ(url->s3, (S3Settings{"my-bucket"}));
}

TEST(ArchiveUrlTest, EveryPartCounts) {
  const auto url = ParseArchiveUrl(
      "s3://b.c/lab/one/?endpoint=http://10.0.0.1:9000&region=eu-west-1&credentials=/etc/keys&"
      "ca=/etc/ca.pem");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->s3, (S3Settings{"b.c", "lab/one", "http://10.0.0.1:9000", "eu-west-1", "/etc/keys",
                                 "/etc/ca.pem"}));
}

TEST(ArchiveUrlTest, OtherTextsAreRefusedWithTheForm) {
  for (const char* text : {"",
                           "archive",
                           "/mnt/archive",
                           "dir:",
                           "dir:archive",
                           "s3:b",
                           "http://b/",
                           "s3://",
                           "s3://a",
                           "s3://B_C",
                           "s3://bucket/a//b",
                           "s3://bucket/../x",
                           "s3://bucket?",
                           "s3://bucket?x=y",
                           "s3://bucket?region=",
                           "s3://bucket?region=a&region=b",
                           "s3://bucket?region=a/b",
                           "s3://bucket?ca=keys",
                           "s3://bucket?endpoint=host",
                           "s3://bucket?endpoint=https://h/path",
                           "s3://bucket?endpoint=https://user:pw@h"}) {
    const absl::Status status = ParseArchiveUrl(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("s3://BUCKET/PREFIX")) << text;
  }
}

TEST(ArchiveUrlTest, ADirectoryThatIsNotThereIsNotFound) {
  const auto opened = OpenArchive(Env::Posix(), "dir:/nowhere/at/all");
  EXPECT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
}

}  // namespace
}  // namespace h5mirror::archive
