#include "base/testing/failing_env.h"

#include <string>

#include "base/names_in_order.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

class FailingEnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_ = *env_.OpenTree("/");
    file_ = *tree_->Open("x", OpenKind::kCreate, 0600);
    ASSERT_TRUE(WriteAt(*file_, 0, "0123456789").ok());
  }
  std::string Read() {
    std::string bytes(16, '\0');
    bytes.resize(*(*(*behind_.OpenTree("/"))->Open("x", OpenKind::kRead, 0))
                      ->ReadAt(0, absl::MakeSpan(bytes)));
    return bytes;
  }
  // The file's bytes on the disk of the wrapped Env, which loses all unsynced changes.
  std::string ReadAfterPowerLoss() {
    CrashPoint point{.change_count = behind_.change_count(),
                     .data = Unsynced::kDropped,
                     .names = Unsynced::kKept};
    auto crashed = behind_.Crash(point);
    std::string bytes(16, '\0');
    bytes.resize(*(*(*crashed->OpenTree("/"))->Open("x", OpenKind::kRead, 0))
                      ->ReadAt(0, absl::MakeSpan(bytes)));
    return bytes;
  }

  FaultEnv behind_;
  FailingEnv env_{behind_, "/"};
  std::unique_ptr<EnvTree> tree_;
  std::unique_ptr<EnvFile> file_;
};

TEST_F(FailingEnvTest, ACallFailsOnceAndAWriteIsShort) {
  env_.FailCalls(env_.call_count(), 1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(WriteAt(*file_, 0, "abcd")));
  EXPECT_TRUE(env_.fault_met());
  EXPECT_EQ(Read(), "ab23456789");
  EXPECT_TRUE(WriteAt(*file_, 0, "abcd").ok());
}

TEST_F(FailingEnvTest, ASyncThatFailsDoesNothing) {
  env_.FailCalls(env_.call_count(), 1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsInternal(file_->Sync()));
  EXPECT_EQ(ReadAfterPowerLoss(), "");
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_EQ(ReadAfterPowerLoss(), "0123456789");
}

TEST_F(FailingEnvTest, WritesAloneCanFail) {
  env_.FailCalls(0, UINT64_MAX, absl::ResourceExhaustedError("full"), FailingEnv::Calls::kWrites);
  EXPECT_TRUE(tree_->MakeDirectory("e", 0700).ok());
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_FALSE(WriteAt(*file_, 0, "a").ok());
}

TEST_F(FailingEnvTest, AHookComesOnceBeforeItsChange) {
  int calls = 0;
  env_.Before(FailingEnv::Count::kChanges, env_.change_count() + 1, [&] {
    ++calls;
    EXPECT_EQ(Read(), "a123456789") << "the change has been made";
  });
  ASSERT_TRUE(WriteAt(*file_, 0, "a").ok());
  ASSERT_TRUE(file_->Size().ok());  // No change.
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(WriteAt(*file_, 0, "b").ok());
  ASSERT_TRUE(WriteAt(*file_, 0, "c").ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(FailingEnvTest, ASyncThatLiesDoesNothing) {
  env_.SetLie([](std::string_view name) { return name == "x"; });
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_EQ(ReadAfterPowerLoss(), "");
  env_.SetLie(nullptr);
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_EQ(ReadAfterPowerLoss(), "0123456789");
}

TEST_F(FailingEnvTest, OfSeveralFilesEachIsASync) {
  auto y = *tree_->Open("y", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*y, 0, "abcd").ok());
  const FileSync syncs[] = {{y.get()}, {file_.get(), FileSync::Kind::kDataAndTimes}};
  env_.FailCalls(env_.call_count() + 1, 1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsInternal(tree_->SyncAll(syncs)));
  EXPECT_EQ(env_.count(FailingEnv::Count::kSyncs), 2u);
  EXPECT_EQ(ReadAfterPowerLoss(), "");
  env_.SetLie([](std::string_view name) { return name == "x"; });
  EXPECT_TRUE(tree_->SyncAll(syncs).ok());
  EXPECT_EQ(ReadAfterPowerLoss(), "");
  env_.SetLie(nullptr);
  EXPECT_TRUE(tree_->SyncAll(syncs).ok());
  EXPECT_EQ(ReadAfterPowerLoss(), "0123456789");
}

TEST_F(FailingEnvTest, BytesInAdvanceAreAChange) {
  EXPECT_FALSE(file_->GrowAhead(12));
  behind_.SetGrowsAhead(true);
  env_.FailCalls(env_.call_count(), 1, absl::ResourceExhaustedError("full"));
  EXPECT_FALSE(file_->GrowAhead(12));
  EXPECT_EQ(env_.grow_count(), 0u);
  const size_t changes = env_.change_count();
  EXPECT_TRUE(file_->GrowAhead(12));
  EXPECT_EQ(env_.change_count(), changes + 1);
  EXPECT_EQ(env_.grow_count(), 1u);
  EXPECT_EQ(Read(), std::string("0123456789\0\0", 12));
}

TEST_F(FailingEnvTest, NamesKeepTheirOrderWhereTheyDoBehindIt) {
  EXPECT_FALSE(KeepsNamesInOrder(*tree_));
  behind_.SetGrowsAhead(true);
  EXPECT_TRUE(KeepsNamesInOrder(*tree_));
}

// If a rename survives, so do all earlier names in both of its directories. Unrelated names may be
// lost.
TEST_F(FailingEnvTest, ADiskThatKeepsNamesInOrderLosesThemInOrder) {
  behind_.SetGrowsAhead(true);
  for (const char* name : {"d", "other"}) ASSERT_TRUE(tree_->MakeDirectory(name, 0700).ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  for (const char* name : {"other/first", "d/first", "d/second"}) {
    ASSERT_TRUE(tree_->Open(name, OpenKind::kCreate, 0600).ok());
  }
  ASSERT_TRUE(tree_->Rename("d/second", "second").ok());
  ASSERT_TRUE(tree_->Open("last", OpenKind::kCreate, 0600).ok());
  CrashPoint point;
  point.change_count = behind_.change_count();
  point.order = NameOrder::kPerDirectory;
  EXPECT_EQ(behind_.Possible(point).order, NameOrder::kWholeRenames);
  int renamed = 0, without_another = 0;
  for (point.seed = 0; point.seed < 100; ++point.seed) {
    auto tree = behind_.Crash(point)->OpenTree("/");
    const bool is_renamed = *(*tree)->Exists("second");
    EXPECT_TRUE(is_renamed || !*(*tree)->Exists("last")) << point.seed;
    if (!is_renamed) continue;
    EXPECT_TRUE(*(*tree)->Exists("d/first")) << point.seed;
    EXPECT_FALSE(*(*tree)->Exists("d/second")) << point.seed;
    ++renamed;
    without_another += *(*tree)->Exists("other/first") ? 0 : 1;
  }
  EXPECT_GT(without_another, 0);
  EXPECT_LT(without_another, renamed);
}

// A sync of one of its directories makes a rename safe, and with it all earlier names in the other
// directory.
TEST_F(FailingEnvTest, ASyncOfOneDirectoryCoversWhatARenameCovers) {
  behind_.SetGrowsAhead(true);
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  for (const char* name : {"d/first", "d/second"}) {
    ASSERT_TRUE(tree_->Open(name, OpenKind::kCreate, 0600).ok());
  }
  ASSERT_TRUE(tree_->Rename("d/second", "second").ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  CrashPoint point;
  point.change_count = behind_.change_count();
  point.names = Unsynced::kDropped;
  for (const bool lies : {false, true}) {
    behind_.SetLiesAboutNames(lies);
    EXPECT_TRUE(KeepsNamesInOrder(*tree_));
    point.order = NameOrder::kPerDirectory;
    auto tree = behind_.Crash(point)->OpenTree("/");
    EXPECT_TRUE(*(*tree)->Exists("second"));
    EXPECT_EQ(*(*tree)->Exists("d/first"), !lies);
  }
}

TEST_F(FailingEnvTest, SomeFilesAreSyncedBehindTheStore) {
  int synced = 0;
  constexpr int kTries = 64;
  for (uint64_t seed = 0; seed < kTries; ++seed) {
    const std::string bytes(1, static_cast<char>('A' + seed));
    ASSERT_TRUE(WriteAt(*file_, 0, bytes).ok());
    env_.SyncSome(seed);
    synced += ReadAfterPowerLoss().substr(0, 1) == bytes ? 1 : 0;
  }
  EXPECT_GT(synced, 0);
  EXPECT_LT(synced, kTries);
}

}  // namespace
}  // namespace h5mirror
