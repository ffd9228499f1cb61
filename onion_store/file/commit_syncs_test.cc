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

}  // namespace
}  // namespace h5mirror::store
