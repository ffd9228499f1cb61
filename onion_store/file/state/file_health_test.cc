#include "onion_store/file/state/file_health.h"

#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

TEST(FileHealthTest, TheFirstFailureIsWhatItDiedOf) {
  FileHealth health;
  EXPECT_TRUE(health.dead().ok());
  EXPECT_TRUE(health.Die("x.h5", absl::DataLossError("sync of pages-1")));
  EXPECT_FALSE(health.Die("x.h5", absl::InternalError("later")));
  EXPECT_TRUE(absl::IsUnavailable(health.dead()));
  EXPECT_THAT(health.dead().ToString(), HasSubstr("x.h5: the store of this file failed"));
  EXPECT_THAT(health.dead().ToString(), HasSubstr("sync of pages-1"));
}

TEST(FileHealthTest, AFullDiskIsSaidToBeOne) {
  FileHealth health;
  EXPECT_TRUE(health.Die("x.h5", absl::ResourceExhaustedError("full")));
  EXPECT_TRUE(absl::IsResourceExhausted(health.dead()));
}

TEST(FileHealthTest, WhoLeavesADeadFileLearnsWhatItDiedOf) {
  FileHealth left, failed;
  left.Leave(absl::AbortedError("renamed"));
  EXPECT_EQ(left.dead(), absl::AbortedError("renamed"));
  failed.Die("x.h5", absl::InternalError("disk"));
  failed.Leave(absl::AbortedError("renamed"));
  EXPECT_TRUE(absl::IsUnavailable(failed.dead()));
}

TEST(FileHealthTest, WhatIsPutOffWaitsUntilItsTimeAndKillsNothing) {
  FileHealth health;
  EXPECT_EQ(health.durable_from(), absl::InfinitePast());
  health.PutOff(absl::ResourceExhaustedError("full"), absl::FromUnixSeconds(10));
  EXPECT_TRUE(health.dead().ok());
  EXPECT_EQ(health.durable_from(), absl::FromUnixSeconds(10));
  EXPECT_TRUE(absl::IsResourceExhausted(health.durable_error()));
  health.TryNow();
  EXPECT_EQ(health.durable_from(), absl::InfinitePast());
  EXPECT_TRUE(health.durable_error().ok());
}

TEST(FileHealthTest, AnApplyThatGoesOnFailingIsToldOfOnce) {
  FileHealth health;
  EXPECT_FALSE(health.NoteApplied(absl::OkStatus()));
  EXPECT_TRUE(health.NoteApplied(absl::ResourceExhaustedError("full")));
  EXPECT_FALSE(health.NoteApplied(absl::ResourceExhaustedError("full")));
  EXPECT_TRUE(health.NoteApplied(absl::ResourceExhaustedError("locked"))) << "another reason";
  EXPECT_FALSE(health.NoteApplied(absl::OkStatus()));
  EXPECT_TRUE(health.apply_error().ok());
  EXPECT_TRUE(health.NoteApplied(absl::ResourceExhaustedError("full"))) << "it worked in between";
  EXPECT_TRUE(health.dead().ok()) << "the file lives on";
}

}  // namespace
}  // namespace h5mirror::store
