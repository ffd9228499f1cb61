// How often a commit waits for the disk before it is acked. Each sync is milliseconds on a real
// one.
#include <filesystem>

#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class CommitSyncsTest : public testing::Test {
 protected:
  CommitSyncsTest() {
    std::string pattern = testing::TempDir() + "/commit_syncs_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
    store_ = OpenStore(env_, root_);
  }
  ~CommitSyncsTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }

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
  std::filesystem::path root_;
  std::unique_ptr<Store> store_;
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

}  // namespace
}  // namespace h5mirror::store
