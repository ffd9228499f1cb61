// Removed files and tags of accounts, with a store on a disk in memory.
#include "server/quotas/space_counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "onion_store/testing/test_store.h"
#include "server/quotas/space_quotas.h"
#include "server/testing/hooked_store.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSource[] = "/etc/c.toml:3";

class SpaceCounterTest : public testing::Test {
 protected:
  SpaceCounterTest() : store_(store::OpenStore(env_, "/")) {}

  void Start(QuotaRule rule) {
    quotas_ = std::make_unique<SpaceQuotas>(std::vector<QuotaRule>{std::move(rule)}, *store_);
    quotas_->counter.Round();
  }
  // A version more of `bytes` bytes.
  void Write(const std::string& name, size_t bytes = 1000) {
    store::Writer writer(*store_->OpenOrCreateFile(name, 512), store::SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, std::string(bytes, static_cast<char>('a' + written_++ % 26))).ok());
    ASSERT_TRUE(writer.CutDurably(store::BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    if (quotas_ != nullptr) quotas_->counter.Changed(name);
  }
  store::RemovedFile Remove(const std::string& name) {
    auto removed = store_->Remove(name, {}, absl::Hours(1));
    EXPECT_TRUE(removed.ok()) << removed.status();
    if (!removed.ok()) return {};
    if (quotas_ != nullptr) quotas_->Removed(*removed);
    return *removed;
  }
  absl::Status Tag(const std::string& name, store::VersionNumber version, std::string_view tag,
                   store::TagMode mode = store::TagMode::kKeep) {
    auto file = *store_->OpenFile(name);
    return quotas_->Tag(*file, version, tag, mode).status();
  }
  uint64_t Tags(const std::string& name) { return quotas_->ledger.AccountOf(name)->sizes.tags; }
  // Names of the removed files, newest first.
  std::vector<std::string> Removed() {
    std::vector<std::string> names;
    const auto files = *store_->ListRemoved();
    for (const store::RemovedFile& file : files) names.push_back(file.name);
    return names;
  }

  FaultEnv env_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<SpaceQuotas> quotas_;
  int written_ = 0;
};

TEST_F(SpaceCounterTest, OfTooManyFilesTheOldestRemovedGo) {
  Start({"runs", 0, 0, 3, kSource});
  for (const char* name : {"runs/1", "runs/2", "runs/3", "else/1"}) {
    Write(name);
    Remove(name);
  }
  Write("runs/live");
  quotas_->counter.Round();
  EXPECT_THAT(Removed(), ElementsAre("else/1", "runs/3", "runs/2", "runs/1")) << "they are three";
  Write("runs/4");
  Remove("runs/4");
  quotas_->counter.Round();
  EXPECT_THAT(Removed(), ElementsAre("runs/4", "else/1", "runs/3", "runs/2"));
  EXPECT_TRUE(quotas_->ledger.AddFile("runs/5").ok()) << "no live file is refused for them";
}

TEST_F(SpaceCounterTest, OfTooManyBytesTheOldestRemovedGo) {
  QuotaRule rule{"runs", 0, 0, 0, kSource};
  rule.removed_bytes = 2 << 20;
  Start(std::move(rule));
  Write("runs/keep", 1000);
  for (int i = 0; i < 6; ++i) {
    Write(StrCat("runs/", i), 500'000);
    Remove(StrCat("runs/", i));
    quotas_->counter.Round();
  }
  const auto use = quotas_->ledger.AccountOf("runs/keep");
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->removed_bytes, 1'000'000u);
  EXPECT_LE(use->removed_bytes, uint64_t{2} << 20);
  const std::vector<std::string> left = Removed();
  ASSERT_EQ(left.size(), use->removed_files);
  EXPECT_LT(left.size(), 6u);
  EXPECT_EQ(left.front(), "runs/5") << "the newest stays";
  EXPECT_TRUE(store_->Undelete((*store_->ListRemoved())[0].id, "").ok());
}

// A cell of a cluster while it is given away, or while its server may not answer.
TEST_F(SpaceCounterTest, WhatIsAwayIsCountedLater) {
  HookedStore* const hooked = HookedStore::PutBefore(store_);
  Write("runs/1");
  const store::RemovedFile removed = (Write("runs/old"), Remove("runs/old"));
  hooked->BeAway(true);
  Start({"runs", 0, 0, 1, kSource});
  quotas_->counter.Round();
  EXPECT_FALSE(quotas_->ledger.is_counted());
  EXPECT_TRUE(quotas_->ledger.AddFile("runs/2").ok()) << "no limit holds yet";
  hooked->BeAway(false);
  quotas_->counter.Round();
  EXPECT_TRUE(quotas_->ledger.is_counted());
  EXPECT_FALSE(quotas_->ledger.AddFile("runs/3").ok());
  const uint64_t before = quotas_->ledger.HeadOf("runs/1");

  hooked->BeAway(true);
  Write("runs/1", 100'000);
  ASSERT_TRUE(hooked->inner().PurgeOneRemoved(removed.id).ok());
  quotas_->counter.RemovedExpired();
  quotas_->counter.Round();
  EXPECT_EQ(quotas_->ledger.HeadOf("runs/1"), before);
  EXPECT_THAT(quotas_->ledger.RemovedIds(), ElementsAre(removed.id));
  hooked->BeAway(false);
  quotas_->counter.Round();
  EXPECT_GT(quotas_->ledger.HeadOf("runs/1"), before) << "the change is not forgotten";
  EXPECT_THAT(quotas_->ledger.RemovedIds(), IsEmpty()) << "nor is the listing";
}

TEST_F(SpaceCounterTest, ARestartCountsWhatWasRemovedBefore) {
  for (const char* name : {"runs/1", "runs/2", "runs/3"}) {
    Write(name);
    Remove(name);
  }
  Write("runs/live");
  Start({"runs", 0, 0, 2, kSource});
  EXPECT_THAT(Removed(), ElementsAre("runs/3", "runs/2"));
  EXPECT_EQ(quotas_->ledger.AccountOf("runs/live")->removed_files, 2u);
}

TEST_F(SpaceCounterTest, AFileThatIsBroughtBackCountsOnce) {
  Start({"runs", 0, 0, 2, kSource});
  Write("runs/1");
  Write("runs/2");
  const store::RemovedFile removed = Remove("runs/1");
  quotas_->counter.Round();
  ASSERT_THAT(Removed(), ElementsAre("runs/1"));
  ASSERT_TRUE(quotas_->MayUndelete(removed, "runs/1").ok());
  ASSERT_TRUE(store_->Undelete(removed.id, "").ok());
  quotas_->Undeleted(removed, "runs/1");
  const auto use = quotas_->ledger.AccountOf("runs/1");
  EXPECT_EQ(use->files, 2u);
  EXPECT_EQ(use->removed_files, 0u);
  EXPECT_EQ(use->removed_bytes, 0u);
  Remove("runs/2");
  quotas_->counter.Round();
  EXPECT_THAT(Removed(), ElementsAre("runs/2")) << "nothing counts twice";
}

TEST_F(SpaceCounterTest, RemovedFilesWhoseTimeHasEndedCountNoMore) {
  Start({"runs", 0, 0, 9, kSource});
  Write("runs/live");
  Write("runs/1");
  const store::RemovedFile removed = Remove("runs/1");
  ASSERT_EQ(*store_->PurgeRemoved(removed.expires), 1);
  quotas_->counter.RemovedExpired();
  quotas_->counter.Round();
  EXPECT_EQ(quotas_->ledger.AccountOf("runs/live")->removed_files, 0u);
}

// A purge and an undelete of one file: one of them gets it whole.
TEST_F(SpaceCounterTest, APurgeAndAnUndeleteDoNotMeet) {
  for (int i = 0; i < 50; ++i) {
    Write("runs/1");
    const store::RemovedFile removed = Remove("runs/1");
    absl::Status purged, undeleted;
    std::thread purge([&] { purged = store_->PurgeOneRemoved(removed.id); });
    undeleted = store_->Undelete(removed.id, "").status();
    purge.join();
    ASSERT_NE(purged.ok(), undeleted.ok()) << purged << "; " << undeleted;
    ASSERT_TRUE(absl::IsNotFound(purged.ok() ? undeleted : purged));
    ASSERT_THAT(Removed(), IsEmpty());
    ASSERT_EQ(store_->OpenFile("runs/1").ok(), undeleted.ok());
  }
}

// A purge of a file whose removal is under way waits until all of it is there.
TEST_F(SpaceCounterTest, APurgeDoesNotMeetARemoval) {
  for (int i = 0; i < 30; ++i) {
    Write("runs/1");
    std::atomic<bool> done{false};
    std::thread purge([&] {
      while (!done) {
        const auto files = store_->ListRemoved();
        for (const auto& file : *files) store_->PurgeOneRemoved(file.id).IgnoreError();
      }
    });
    const auto removed = store_->Remove("runs/1", {}, absl::Hours(1));
    done = true;
    purge.join();
    ASSERT_TRUE(removed.ok()) << removed.status();
    ASSERT_TRUE(absl::IsNotFound(store_->OpenFile("runs/1").status()));
    store_->PurgeOneRemoved(removed->id).IgnoreError();
    ASSERT_THAT(Removed(), IsEmpty());
  }
}

TEST_F(SpaceCounterTest, ATagBeyondTheLimitIsRefused) {
  QuotaRule rule{"runs", 0, 0, 0, kSource, 2};
  Write("runs/a");
  Write("runs/a");
  Write("runs/b");
  Start(rule);
  ASSERT_TRUE(Tag("runs/a", 1, "first").ok());
  ASSERT_TRUE(Tag("runs/b", 1, "other").ok());
  const absl::Status refused = Tag("runs/a", 2, "second");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  for (const char* part : {"\"runs\" takes 2 of max_tags = 2", "c.toml:3", "untag"}) {
    EXPECT_THAT(ToStd(refused.message()), HasSubstr(part));
  }
  EXPECT_TRUE(Tag("runs/a", 2, "first", store::TagMode::kMove).ok()) << "it only moves";
  EXPECT_EQ(Tags("runs/a"), 2u);
  quotas_->counter.Round();
  EXPECT_EQ(Tags("runs/a"), 2u) << "as the store has them";
  auto file = *store_->OpenFile("runs/b");
  ASSERT_TRUE(quotas_->Untag(*file, "other").ok());
  EXPECT_TRUE(Tag("runs/a", 1, "again").ok()) << "at once";
  EXPECT_FALSE(Tag("runs/b", 1, "other").ok());
}

TEST_F(SpaceCounterTest, ATagThatIsNotMadeDoesNotCount) {
  Write("runs/a");
  Start({"runs", 0, 0, 0, kSource, 5});
  EXPECT_FALSE(Tag("runs/a", 9, "none").ok());
  EXPECT_FALSE(Tag("runs/a", 1, "no tag!").ok());
  EXPECT_EQ(Tags("runs/a"), 0u);
}

TEST_F(SpaceCounterTest, TagsComeAlongWithTheirFile) {
  for (const char* name : {"x/a", "runs/b"}) Write(name);
  auto file = *store_->OpenFile("x/a");
  ASSERT_TRUE(file->Tag(1, "one", store::TagMode::kKeep).ok());
  ASSERT_TRUE(file->Tag(1, "two", store::TagMode::kKeep).ok());
  Start({"runs", 0, 0, 0, kSource, 2});
  ASSERT_TRUE(Tag("runs/b", 1, "b").ok());
  const absl::Status moved = quotas_->MayMove("x/a", "runs/a");
  EXPECT_THAT(ToStd(moved.message()), HasSubstr("max_tags"));
  const store::RemovedFile removed = Remove("x/a");
  EXPECT_EQ(removed.tags, 2u);
  EXPECT_THAT(ToStd(quotas_->MayUndelete(removed, "runs/a").message()), HasSubstr("max_tags"));
  EXPECT_TRUE(quotas_->MayUndelete(removed, "x/a").ok());
}

}  // namespace
}  // namespace h5mirror::server
