#include "archive/s3_credentials.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(S3CredentialsTest, TheDefaultSectionCounts) {
  const auto parsed = ParseS3Credentials(
      "# keys\n[other]\naws_access_key_id = no\n[default]\n aws_access_key_id=AK \n"
      "aws_secret_access_key = s/e+c=\nregion = x\n\naws_session_token = t\n[last]\nwhatever\n",
      "keys");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, (S3Credentials{"AK", "s/e+c=", "t"}));
}

TEST(S3CredentialsTest, WhatIsMissingOrWrongIsNamedWithoutItsText) {
  EXPECT_THAT(ParseS3Credentials("", "keys").status().message(),
              HasSubstr("keys: [default] has no aws_access_key_id"));
  EXPECT_THAT(ParseS3Credentials("[default]\naws_access_key_id=a\n", "keys").status().message(),
              HasSubstr("has no aws_secret_access_key"));
  for (const char* line : {"s3cret", "aws_secret_access_key = s3cret x", "k = s3cret\x01"}) {
    const auto wrong = ParseS3Credentials(std::string("[default]\n") + line + "\n", "keys");
    EXPECT_TRUE(absl::IsInvalidArgument(wrong.status())) << line;
    EXPECT_THAT(wrong.status().message(), HasSubstr("keys:2: want KEY = VALUE"));
    EXPECT_THAT(wrong.status().message(), Not(HasSubstr("s3cret")));
  }
}

class CredentialsFile : public testing::Test {
 protected:
  CredentialsFile() : name_(testing::TempDir() + "/h5m-s3-credentials") {
    std::ofstream(name_) << "[default]\naws_access_key_id=a\naws_secret_access_key=b\n";
  }
  ~CredentialsFile() override { remove(name_.c_str()); }
  const std::string name_;
};

TEST_F(CredentialsFile, OfItsUserAloneIsRead) {
  ASSERT_EQ(chmod(name_.c_str(), 0600), 0);
  const auto loaded = LoadS3Credentials(name_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->secret_key, "b");
}

TEST_F(CredentialsFile, ThatOthersMayReadIsRefused) {
  ASSERT_EQ(chmod(name_.c_str(), 0640), 0);
  const auto loaded = LoadS3Credentials(name_);
  EXPECT_TRUE(absl::IsPermissionDenied(loaded.status())) << loaded.status();
  EXPECT_THAT(loaded.status().message(), HasSubstr("chmod 600"));
}

TEST(S3CredentialsTest, WithoutAFileTheEnvironmentCounts) {
  unsetenv("AWS_SESSION_TOKEN");
  unsetenv("AWS_ACCESS_KEY_ID");
  EXPECT_THAT(LoadS3Credentials("").status().message(), HasSubstr("AWS_ACCESS_KEY_ID"));
  setenv("AWS_ACCESS_KEY_ID", "a", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "b\n", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(LoadS3Credentials("").status()));
  setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
  const auto loaded = LoadS3Credentials("");
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(*loaded, (S3Credentials{"a", "b", ""}));
}

}  // namespace
}  // namespace h5mirror::archive
