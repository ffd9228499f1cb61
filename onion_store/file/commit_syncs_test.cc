// How often a commit waits for the disk before it is acked. Each sync is milliseconds on a real
// one.
#include <filesystem>

#include "base/testing/fault_env.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class SyncsTest : public testing::Test {
 protected:
  SyncsTest(Env& disk, const std::filesystem::path& root)
      : env_(disk), store_(OpenStore(env_, root)) {}

  // Syncs from the cut to its ack.
  int SyncsOf(Writer& writer) {
    auto done = std::make_shared<absl::Notification>();
    auto syncs = std::make_shared<std::atomic<int>>(0);
    env_.counts().Clear();
    auto cut = writer.Cut(BarrierKind::kCommit, [this, done, syncs](auto result) {
      EXPECT_TRUE(result.ok()) << result.status();
      *syncs = env_.counts().syncs.load();
      done->Notify();
    });
    EXPECT_TRUE(cut.ok()) << cut.status();
    done->WaitForNotification();
    EXPECT_TRUE(writer.file().WaitApplied(absl::Seconds(20)).ok());  // Its syncs are its own.
    return *syncs;
  }

  CountingEnv env_;
  std::unique_ptr<Store> store_;
};

struct LocalDirectory {
  LocalDirectory() {
    std::string pattern = testing::TempDir() + "/commit_syncs_test.XXXXXX";
    root = mkdtemp(pattern.data());
  }
  ~LocalDirectory() { std::filesystem::remove_all(root); }
  std::filesystem::path root;
};

class CommitSyncsTest : private LocalDirectory, public SyncsTest {
 protected:
  CommitSyncsTest() : SyncsTest(Env::Posix(), root) {}
};

TEST_F(CommitSyncsTest, TheFirstOneSyncsTheBytesTheIndexAndTwoDirectories) {
  for (const char* name : {"a.h5", "b.h5"}) {
    Writer writer(*store_->OpenOrCreateFile(name, 0), SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, "bytes").ok());
    EXPECT_EQ(SyncsOf(writer), 4);
    ASSERT_TRUE(writer.End().ok());
  }
}

TEST_F(CommitSyncsTest, ANewDirectoryCostsOneMoreOnce) {
  const std::pair<const char*, int> wanted[] = {{"d/a.h5", 5}, {"d/b.h5", 4}, {"d/e/f/a.h5", 6}};
  for (auto [name, syncs] : wanted) {
    Writer writer(*store_->OpenOrCreateFile(name, 0), SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, "bytes").ok());
    EXPECT_EQ(SyncsOf(writer), syncs) << name;
    ASSERT_TRUE(writer.End().ok());
  }
}

TEST_F(CommitSyncsTest, LaterOnesSyncTheStageAndTheIndex) {
  auto file = *store_->OpenOrCreateFile("x.h5", 0);
  Writer writer(file, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "first").ok());
  EXPECT_EQ(SyncsOf(writer), 4);
  for (int expected : {3, 2, 2}) {  // The first of them makes the stage.
    ASSERT_TRUE(writer.Write(0, writer.content() + "more").ok());
    EXPECT_EQ(SyncsOf(writer), expected);
  }
}

// Syncs of an old head, of the new one, of the names made, of the index, of two directories.
TEST_F(CommitSyncsTest, ANewGenerationSyncsBothHeadsAndTheOldOnesSecondName) {
  auto file = *store_->OpenOrCreateFile("x.h5", 0);
  for (const int expected : {4, 6}) {
    Writer writer(file, SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, "bytes").ok());
    EXPECT_EQ(SyncsOf(writer), expected);
    ASSERT_TRUE(writer.End().ok());
  }
}

struct DiskLikeCephFs {
  DiskLikeCephFs() { disk.SetGrowsAhead(true); }
  FaultEnv disk;
};

class NamesInOrderTest : protected DiskLikeCephFs, public SyncsTest {
 protected:
  NamesInOrderTest() : SyncsTest(disk, "/") {}
};

TEST_F(NamesInOrderTest, ANewNameInTheHistoryNeedsNoSyncOfItsOwn) {
  auto file = *store_->OpenOrCreateFile("x.h5", 0);
  for (const int expected : {3, 5}) {
    Writer writer(file, SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, "bytes").ok());
    EXPECT_EQ(SyncsOf(writer), expected);
    ASSERT_TRUE(writer.End().ok());
  }
}

// No head is renamed then, which would make the index's name durable.
TEST_F(NamesInOrderTest, AFileThatWasThereIsDurableOnceItIsOpen) {
  {
    auto tree = disk.OpenTree("/");
    auto head = (*tree)->Open("found.h5", OpenKind::kCreate, 0640);
    ASSERT_TRUE(WriteAt(**head, 0, "bytes").ok());
    ASSERT_TRUE((*head)->Sync().ok());
    ASSERT_TRUE((*tree)->SyncDirectory("").ok());
  }
  ASSERT_TRUE(store_->OpenOrCreateFile("found.h5", 0).ok());
  CrashPoint all_is_dropped;
  all_is_dropped.change_count = disk.change_count();
  all_is_dropped.data = all_is_dropped.names = Unsynced::kDropped;
  const auto after = disk.Crash(all_is_dropped);
  auto store = OpenStore(*after, "/");
  auto file = store->OpenFile("found.h5");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadVersion(**file, 1), "bytes");
}

// Whether names keep their order.
class FailedNamesTest : public testing::TestWithParam<bool> {
 protected:
  // Takes x.h5 from `disk` after a power loss that takes all names that it can.
  static void ExpectThere(const FaultEnv& disk, std::string_view bytes) {
    for (const NameOrder order : {NameOrder::kJournal, NameOrder::kPerDirectory}) {
      CrashPoint point;
      point.change_count = disk.change_count();
      point.data = point.names = Unsynced::kDropped;
      point.order = order;
      const auto after = disk.Crash(point);
      auto store = OpenStore(*after, "/");
      auto file = store->OpenFile("x.h5");
      ASSERT_TRUE(file.ok()) << file.status();
      const auto info = (*file)->Info();
      ASSERT_TRUE(info.ok()) << info.status();
      EXPECT_EQ(info->newest_version.provenance.comment, "");
      EXPECT_EQ(ReadVersion(**file, 1), bytes);
    }
  }
};

// A session that goes on is told by an open what is durable.
TEST_P(FailedNamesTest, WhatAnOpenFindsIsDurable) {
  int found = 0;
  bool was_met = true;
  for (uint64_t call = 0; was_met; ++call) {
    SCOPED_TRACE(call);
    FaultEnv disk;
    disk.SetGrowsAhead(GetParam());
    auto store = OpenStore(disk, "/");
    {
      Writer writer(*store->OpenOrCreateFile("x.h5", 0), SessionStart::kContinue);
      ASSERT_TRUE(writer.Write(0, "bytes").ok());
      disk.FailCall(call, absl::InternalError("Input/output error"));
      const bool is_durable = writer.CutDurably(BarrierKind::kCommit).ok();
      was_met = !is_durable;
      disk.FailCalls(0, 0, absl::OkStatus());
      writer.End().IgnoreError();
    }
    auto file = store->OpenFile("x.h5");
    if (!file.ok()) continue;
    const auto info = (*file)->Info();
    ASSERT_TRUE(info.ok()) << info.status();
    if (info->durable_cut == 0) continue;
    ++found;
    ExpectThere(disk, "bytes");
  }
  EXPECT_GT(found, 1);
}

TEST_P(FailedNamesTest, AHeadThatIsTakenInIsDurableOnceItIsOpen) {
  bool was_met = true;
  for (uint64_t call = 0; was_met; ++call) {
    SCOPED_TRACE(call);
    FaultEnv disk;
    disk.SetGrowsAhead(GetParam());
    {
      auto tree = disk.OpenTree("/");
      auto head = (*tree)->Open("x.h5", OpenKind::kCreate, 0640);
      ASSERT_TRUE(WriteAt(**head, 0, "bytes").ok());
      ASSERT_TRUE((*head)->Sync().ok());
      ASSERT_TRUE((*tree)->SyncDirectory("").ok());
    }
    auto store = OpenStore(disk, "/");
    disk.FailCall(call, absl::InternalError("Input/output error"));
    auto file = store->OpenOrCreateFile("x.h5", 0);
    was_met = disk.fault_met();
    disk.FailCalls(0, 0, absl::OkStatus());
    if (!file.ok()) file = store->OpenOrCreateFile("x.h5", 0);
    ASSERT_TRUE(file.ok()) << file.status();
    CrashPoint point;
    point.change_count = disk.change_count();
    point.data = point.names = Unsynced::kDropped;
    point.order = NameOrder::kPerDirectory;
    auto tree = disk.Crash(point)->OpenTree("/");
    EXPECT_TRUE(*(*tree)->Exists("x.h5.h5m/index"));
  }
}

INSTANTIATE_TEST_SUITE_P(InOrderOrNot, FailedNamesTest, testing::Bool());

}  // namespace
}  // namespace h5mirror::store
