#include "cli/restore/restore_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

TEST(RestoreJobTest, AJobComesThroughWithBytesOfAnyKind) {
  RestoreJob job;
  job.source = {"run.h5@3", "/run.h5", "@/tmp/x"};
  job.path = "/g/\xff\n;\"";
  job.attributes = {"a", "\xc3"};
  job.replaces = true;
  const auto decoded = DecodeJob(EncodeJob(job));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->path, job.path);
  EXPECT_EQ(decoded->attributes, job.attributes);
  EXPECT_EQ(decoded->source.config, "@/tmp/x");
  EXPECT_TRUE(decoded->replaces);
  EXPECT_EQ(EncodeJob(job).find('\n'), std::string::npos);
}

TEST(RestoreJobTest, AResultComesThrough) {
  RestoreResult result;
  result.kind = "group";
  result.objects = 7;
  result.lost = {{"/g/r", "/x", 2, "too_small", true}};
  result.old_kind = "dataset";
  result.old_objects = 3;
  result.old_bytes = 4096;
  result.split_count = 5;
  result.splits = {{"/g/data", "/det"}};
  result.scaled_count = 1;
  result.scaled = {"/g/data"};
  const auto decoded = DecodeResult(EncodeResult(result));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->objects, 7U);
  ASSERT_EQ(decoded->lost.size(), 1U);
  EXPECT_EQ(decoded->lost[0].leads_to, "/x");
  EXPECT_EQ(decoded->lost[0].why, "too_small");
  EXPECT_TRUE(decoded->lost[0].removed);
  EXPECT_EQ(decoded->old_kind, "dataset");
  EXPECT_EQ(decoded->old_objects, 3U);
  EXPECT_EQ(decoded->old_bytes, 4096U);
  EXPECT_EQ(decoded->split_count, 5U);
  ASSERT_EQ(decoded->splits.size(), 1U);
  EXPECT_EQ(decoded->splits[0].other, "/det");
  EXPECT_EQ(decoded->scaled_count, 1U);
  EXPECT_EQ(decoded->scaled, result.scaled);
}

TEST(RestoreJobTest, AnErrorComesThroughWithItsCode) {
  const auto decoded = DecodeResult(EncodeResult(absl::AlreadyExistsError("/g is there")));
  EXPECT_TRUE(absl::IsAlreadyExists(decoded.status()));
  EXPECT_EQ(decoded.status().message(), "/g is there");
}

TEST(RestoreJobTest, OtherTextIsRefused) {
  EXPECT_TRUE(absl::IsInternal(DecodeJob("6162").status()));
  EXPECT_TRUE(absl::IsInternal(DecodeResult("").status()));
}

}  // namespace
}  // namespace h5mirror::tools
