#include "ceph/sync_need.h"

#include "gtest/gtest.h"

namespace h5mirror::ceph {
namespace {

// Syncs as EnvFile::Sync() does; whether the MDS was asked.
bool Sync(SyncNeed& need, uint64_t size_bytes, bool has_synced = true) {
  const SyncNeed::Sync sync = need.BeginSync(/*wants_times=*/false);
  if (sync.is_whole) need.EndWhole(sync, has_synced, size_bytes);
  return sync.is_whole;
}

TEST(SyncNeedTest, NothingIsKnownOfAFileThatWasJustOpened) {
  SyncNeed need;
  EXPECT_TRUE(Sync(need, 100));
  EXPECT_FALSE(Sync(need, 100));
}

TEST(SyncNeedTest, AFileThatIsWrittenOverNeedsItsDataAlone) {
  SyncNeed need;
  Sync(need, 100);
  need.NoteWrite(100);
  EXPECT_FALSE(Sync(need, 100));
  need.NoteWrite(101);
  EXPECT_TRUE(Sync(need, 101));
  need.NoteWrite(101);
  EXPECT_FALSE(Sync(need, 101));
}

TEST(SyncNeedTest, WhatWasCutOffGrowsAgain) {
  SyncNeed need;
  Sync(need, 100);
  need.NoteTruncate(0);
  EXPECT_TRUE(Sync(need, 0));
  need.NoteWrite(50);
  EXPECT_TRUE(Sync(need, 50));
  need.NoteTruncate(60);
  EXPECT_TRUE(Sync(need, 60));
}

TEST(SyncNeedTest, AttributesAndTimesNeedTheMds) {
  SyncNeed need;
  Sync(need, 100);
  need.NoteChange();
  EXPECT_TRUE(Sync(need, 100));
  EXPECT_TRUE(need.BeginSync(/*wants_times=*/true).is_whole);
}

TEST(SyncNeedTest, ASyncBesideAWholeOneIsNotDoneBeforeIt) {
  SyncNeed need;
  const SyncNeed::Sync first = need.BeginSync(false);
  const SyncNeed::Sync second = need.BeginSync(false);
  EXPECT_TRUE(first.is_whole && second.is_whole);
  need.EndWhole(second, true, 100);
  EXPECT_TRUE(need.BeginSync(false).is_whole) << "the first one still goes on";
}

TEST(SyncNeedTest, AWholeSyncDoesNotCoverWhatCameAfterItsBegin) {
  SyncNeed need;
  const SyncNeed::Sync sync = need.BeginSync(false);
  need.NoteTruncate(10);
  need.EndWhole(sync, true, 100);
  EXPECT_TRUE(Sync(need, 10));
  need.NoteWrite(50);
  EXPECT_TRUE(Sync(need, 50));
}

TEST(SyncNeedTest, AWholeSyncThatEndsLateDoesNotKnowTheSizeAfterATruncate) {
  SyncNeed need;
  Sync(need, 100);
  const SyncNeed::Sync early = need.BeginSync(/*wants_times=*/true);
  need.NoteTruncate(50);
  const SyncNeed::Sync late = need.BeginSync(false);
  need.EndWhole(late, true, 50);
  need.EndWhole(early, true, 100);
  need.NoteWrite(80);
  EXPECT_TRUE(Sync(need, 80)) << "the MDS knows of 50";
}

TEST(SyncNeedTest, AFailedSyncHasCoveredNothing) {
  SyncNeed need;
  EXPECT_TRUE(Sync(need, 100, /*has_synced=*/false));
  EXPECT_TRUE(Sync(need, 100));
}

TEST(SyncNeedsTest, AllWhoHaveAFileOpenShareOneUntilTheLastHasClosedIt) {
  SyncNeeds needs;
  auto one = needs.Of(7);
  Sync(*one, 100);
  EXPECT_EQ(needs.Of(7), one);
  EXPECT_NE(needs.Of(8), one);
  one.reset();
  for (uint64_t inode = 100; inode < 1000; ++inode) needs.Of(inode);
  EXPECT_TRUE(Sync(*needs.Of(7), 100)) << "it is forgotten";
}

}  // namespace
}  // namespace h5mirror::ceph
