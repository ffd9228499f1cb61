// The owner of a file, through all that happens to it.
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::AnyOf;
using testing::Contains;

const FileOwner kNoFile;

LocalAccess By(const std::string& owner) { return {0640, std::nullopt, owner}; }

class OwnerTest : public testing::Test {
 protected:
  OwnerTest() { Reopen(); }
  void Reopen() {
    store_.reset();
    store_ = OpenStore(env_, "/");
    store_->SetOwnerListener([this](const std::string& name) {
      absl::MutexLock lock(&mutex_);
      told_.push_back(name);
    });
  }
  // Makes a version by a session of `owner`.
  void Write(const std::string& name, const std::string& owner,
             SessionStart start = SessionStart::kContinue) {
    Writer writer(*store_->OpenOrCreateFile(name, 512), start, "", By(owner));
    ASSERT_TRUE(writer.begun().ok()) << writer.begun();
    ASSERT_TRUE(writer.Write(0, "by " + owner).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
  }
  FileOwner OwnerOf(const std::string& name) {
    const auto owner = store_->OwnerOf(name);
    EXPECT_TRUE(owner.ok()) << owner.status();
    return owner.value_or(FileOwner());
  }
  std::vector<std::string> TakeTold() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(told_, {});
  }

  FaultEnv env_;
  absl::Mutex mutex_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Store> store_;
};

FileOwner Owned(const std::string& owner) { return {true, owner}; }

TEST_F(OwnerTest, TheSessionThatMakesAFileOwnsIt) {
  EXPECT_EQ(OwnerOf("a.h5"), kNoFile);
  Write("a.h5", "unix:anna");
  EXPECT_THAT(TakeTold(), Contains("a.h5"));
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna"));
  Write("a.h5", "unix:bob");
  Write("a.h5", "token:robot", SessionStart::kNewGeneration);
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna")) << "it stays through versions and generations";
  EXPECT_EQ((*store_->OpenFile("a.h5"))->Info()->owner, "unix:anna");
  Reopen();
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna")) << "from the disk";
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna")) << "and from what was read of it";
  EXPECT_EQ((*store_->OpenFile("a.h5"))->Info()->owner, "unix:anna");
}

TEST_F(OwnerTest, AFileIsThereWhileItsFirstSessionGoesOn) {
  auto file = *store_->OpenOrCreateFile("a.h5", 512);
  EXPECT_EQ(OwnerOf("a.h5"), kNoFile);
  {
    Writer writer(file, SessionStart::kContinue, "", By("unix:anna"));
    EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna"));
    ASSERT_TRUE(writer.Write(0, "x").ok());
    ASSERT_TRUE(writer.End().ok());
  }
  EXPECT_EQ(OwnerOf("a.h5"), kNoFile) << "it went without a cut";
  Write("a.h5", "unix:bob");
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:bob"));
}

// The first writer is fenced before its cut is durable: the file is still that writer's.
TEST_F(OwnerTest, ASessionThatGoesOnFromAnothersCutIsNotTheOwner) {
  auto file = *store_->OpenOrCreateFile("a.h5", 512);
  Writer first(file, SessionStart::kContinue, "", By("unix:anna"));
  ASSERT_TRUE(first.Write(0, "x").ok());
  ASSERT_TRUE(first.Cut(BarrierKind::kTick).ok());
  Writer second(file, SessionStart::kContinue, "x", By("unix:bob"));
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna"));
  ASSERT_TRUE(second.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(second.End().ok());
  Reopen();
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna"));
}

TEST_F(OwnerTest, TheOwnerGoesWithTheFile) {
  Write("a.h5", "unix:anna");
  Reopen();
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:anna"));
  ASSERT_TRUE(store_->Move("a.h5", "d/b.h5").ok());
  EXPECT_EQ(OwnerOf("a.h5"), kNoFile);
  EXPECT_EQ(OwnerOf("d/b.h5"), Owned("unix:anna"));
  EXPECT_THAT(TakeTold(), testing::IsSupersetOf({"a.h5", "d/b.h5"}));
  const auto removed = store_->Remove("d/b.h5", {}, absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->owner, "unix:anna");
  EXPECT_EQ(OwnerOf("d/b.h5"), kNoFile);
  EXPECT_THAT(TakeTold(), Contains("d/b.h5"));
  EXPECT_EQ(store_->ListRemoved()->at(0).owner, "unix:anna");
  Write("d/b.h5", "unix:bob");
  EXPECT_EQ(OwnerOf("d/b.h5"), Owned("unix:bob")) << "the name is free for others";
  ASSERT_TRUE(store_->Undelete(removed->id, "c.h5").ok());
  EXPECT_THAT(TakeTold(), Contains("c.h5"));
  EXPECT_EQ(OwnerOf("c.h5"), Owned("unix:anna"));
  Reopen();
  EXPECT_EQ(OwnerOf("c.h5"), Owned("unix:anna"));
  EXPECT_EQ(OwnerOf("d/b.h5"), Owned("unix:bob"));
}

TEST_F(OwnerTest, FilesOfNobodyAreThere) {
  Write("a.h5", "");
  Write("b.h5", "unix:with/slash");
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(tree->Open("plain.h5", OpenKind::kCreateFresh, 0644).ok());
  for (const char* name : {"a.h5", "b.h5", "plain.h5"}) {
    EXPECT_EQ(OwnerOf(name), Owned("")) << name;
  }
  ASSERT_TRUE(store_->OpenOrCreateFile("plain.h5", 512).ok());
  Write("plain.h5", "unix:anna");
  EXPECT_EQ(OwnerOf("plain.h5"), Owned("")) << "the server found it, and nobody made it";
  EXPECT_EQ(OwnerOf("../a.h5"), kNoFile);
  EXPECT_EQ(OwnerOf("a.h5/below.h5"), kNoFile);
}

TEST_F(OwnerTest, AnotherOwnerIsDurableAtOnce) {
  Write("a.h5", "unix:anna");
  for (const std::string owner : {"jwt:bob", "", "token:robot", "token:robot"}) {
    TakeTold();
    ASSERT_TRUE((*store_->OpenFile("a.h5"))->SetOwner(owner).ok());
    EXPECT_THAT(TakeTold(), Contains("a.h5"));
    EXPECT_EQ(OwnerOf("a.h5"), Owned(owner));
    Reopen();
    EXPECT_EQ(OwnerOf("a.h5"), Owned(owner));
  }
  EXPECT_TRUE(absl::IsInvalidArgument((*store_->OpenFile("a.h5"))->SetOwner("anna")));
  EXPECT_TRUE(absl::IsInvalidArgument((*store_->OpenFile("a.h5"))->SetOwner("unix:a/b")));
}

TEST_F(OwnerTest, SeveralOwnersAreNone) {
  Write("a.h5", "unix:anna");
  Reopen();
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(tree->Open("a.h5.h5m/owner-unix:bob", OpenKind::kCreateFresh, 0600).ok());
  EXPECT_EQ(OwnerOf("a.h5"), Owned(""));
  EXPECT_EQ((*store_->OpenFile("a.h5"))->Info()->owner, "");
  ASSERT_TRUE((*store_->OpenFile("a.h5"))->SetOwner("unix:carol").ok());
  Reopen();
  EXPECT_EQ(OwnerOf("a.h5"), Owned("unix:carol"));
}

// A file that exists has its owner, and a file that never came to be leaves no owner to the next.
TEST_F(OwnerTest, ACrashNeverPartsAFileFromItsOwner) {
  const size_t start = env_.change_count();
  Write("a.h5", "unix:anna");
  const size_t made = env_.change_count();
  ASSERT_TRUE((*store_->OpenFile("a.h5"))->SetOwner("unix:bob").ok());
  const size_t given = env_.change_count();
  int had_none = 0, had_anna = 0;
  for (size_t at = start; at <= given; ++at) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto crashed = env_.Crash(at, seed);
      auto store = OpenStore(*crashed, "/");
      ASSERT_NE(store, nullptr);
      if (const auto file = store->OpenFile("a.h5"); file.ok()) {
        const std::string owner = store->OwnerOf("a.h5")->owner;
        if (at <= made) {
          EXPECT_EQ(owner, "unix:anna") << at << " " << seed;
        }
        if (at == given) {
          EXPECT_EQ(owner, "unix:bob") << seed;
        }
        EXPECT_THAT(owner, AnyOf("unix:anna", "unix:bob")) << at << " " << seed;
        had_anna += owner == "unix:anna";
        continue;
      }
      EXPECT_LE(at, made);
      ++had_none;
      EXPECT_EQ(*store->OwnerOf("a.h5"), kNoFile);
      Writer writer(*store->OpenOrCreateFile("a.h5", 512), SessionStart::kContinue, "",
                    By("unix:carol"));
      ASSERT_TRUE(writer.Write(0, "x").ok());
      ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
      ASSERT_TRUE(writer.End().ok());
      store.reset();
      store = OpenStore(*crashed, "/");
      EXPECT_EQ(*store->OwnerOf("a.h5"), Owned("unix:carol")) << at << " " << seed;
    }
  }
  EXPECT_GT(had_none, 0);
  EXPECT_GT(had_anna, 0);
}

}  // namespace
}  // namespace h5mirror::store
