// Files that are moved, removed and brought back, also with a crash in the middle.
#include <filesystem>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/shared/new_name.h"
#include "onion_store/store_health.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Two versions of `name`: "one" and "two two".
void WriteTwo(Store& store, const std::string& name) {
  Writer writer(*store.OpenOrCreateFile(name, 512), SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "one").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.Write(0, "two two").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
}

// "one, two two" if the file is whole.
std::string Content(Store& store, const std::string& name) {
  auto file = store.OpenFile(name);
  if (!file.ok()) return std::string(file.status().message());
  return ReadVersion(**file, 1) + ", " + ReadVersion(**file, 2);
}

constexpr char kWhole[] = "one, two two";

class StoreNamesTest : public testing::Test {
 protected:
  StoreNamesTest() { Reopen(); }
  void Reopen() {
    store_.reset();
    store_ = OpenStore(env_, "/");
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const std::vector<FileSummary> files = *store_->List("", "", 100);
    for (const FileSummary& file : files) names.push_back(file.name);
    return names;
  }
  RemovedFile Remove(const std::string& name, absl::Duration keep = absl::Hours(1)) {
    Provenance who;
    who.claimed_user = "alice";
    auto removed = store_->Remove(name, who, keep);
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.ok() ? *removed : RemovedFile();
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
};

// "d/d/.../x.h5".
std::string Deep(int levels) {
  std::string name;
  for (int i = 1; i < levels; ++i) name += "d/";
  return name + "x.h5";
}

TEST_F(StoreNamesTest, ANameThatIsTooDeepIsGivenToNoFile) {
  WriteTwo(*store_, Deep(kNameLevelsMax));
  EXPECT_THAT(Names(), ElementsAre(Deep(kNameLevelsMax)));
  const std::string deeper = Deep(kNameLevelsMax + 1);
  for (const absl::Status& refused :
       {store_->OpenOrCreateFile(deeper, 0).status(), store_->Move(Deep(kNameLevelsMax), deeper)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("129 levels"));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile(deeper).status()));
  const std::string id = Remove(Deep(kNameLevelsMax)).id;
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Undelete(id, deeper).status()));
  EXPECT_TRUE(store_->Undelete(id, "").ok());
}

TEST_F(StoreNamesTest, AFileOfADeeperNameIsListedAndServed) {
  WriteTwo(*store_, "run/x.h5");
  store_.reset();
  const std::string below = Deep(300).substr(0, Deep(300).size() - 5);  // without "/x.h5"
  const auto tree = *env_.OpenTree("/");
  for (size_t at = below.find('/'); at != std::string::npos; at = below.find('/', at + 1)) {
    ASSERT_TRUE(tree->MakeDirectory(below.substr(0, at), 0755).ok());
  }
  ASSERT_TRUE(tree->Rename("run", below).ok());
  Reopen();
  EXPECT_THAT(Names(), ElementsAre(Deep(300)));
  EXPECT_EQ(Content(*store_, Deep(300)), kWhole);
  EXPECT_TRUE(store_->OpenOrCreateFile(Deep(300), 0).ok()) << "it is written on";
  const std::string id = Remove(Deep(300)).id;
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(store_->Undelete(id, "").ok());
  ASSERT_TRUE(store_->Move(Deep(300), "x.h5").ok());
  EXPECT_EQ(Content(*store_, "x.h5"), kWhole);
}

TEST_F(StoreNamesTest, AFileWhoseIndexWasLostIsListedAndNeverSaidToBeMissing) {
  WriteTwo(*store_, "d/a.h5");
  store_.reset();
  const auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(tree->Rename("d/a.h5.h5m/index", "kept").ok());
  ASSERT_TRUE(tree->Rename("d/a.h5.h5m/index-wal", "kept-wal").ok());
  Reopen();
  EXPECT_THAT(Names(), ElementsAre("d/a.h5"));
  const absl::Status opened = store_->OpenFile("d/a.h5").status();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("put the index back"));
  EXPECT_TRUE(absl::IsDataLoss(store_->Move("d/a.h5", "b.h5")));
  store_.reset();
  ASSERT_TRUE(tree->Rename("kept", "d/a.h5.h5m/index").ok());
  ASSERT_TRUE(tree->Rename("kept-wal", "d/a.h5.h5m/index-wal").ok());
  Reopen();
  EXPECT_EQ(Content(*store_, "d/a.h5"), kWhole);
}

TEST_F(StoreNamesTest, ADirectoryThatMayNotBeReadHidesNoOtherFile) {
  WriteTwo(*store_, "a.h5");
  WriteTwo(*store_, "lost+found/b.h5");
  WriteTwo(*store_, "z.h5");
  env_.FailOpensOf("lost+found", absl::PermissionDeniedError("opendir: Permission denied"));
  EXPECT_THAT(Names(), ElementsAre("a.h5", "z.h5"));
  EXPECT_THAT(StoreHealth::Of(*store_)->TakeNotices(), IsEmpty()) << "every file system has one";
  EXPECT_TRUE(absl::IsPermissionDenied(store_->List("lost+found", "", 100).status()));
  env_.FailOpensOf("", absl::OkStatus());
  WriteTwo(*store_, "d/e/f.h5");
  env_.FailOpensOf("d/e", absl::PermissionDeniedError("opendir: Permission denied"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Names(), Not(Contains("d/e/f.h5")));
  // The background may report that it cannot apply there.
  std::vector<std::string> told;
  for (const StoreNotice& notice : StoreHealth::Of(*store_)->TakeNotices()) {
    if (notice.kind == StoreNotice::Kind::kUnreadable) told.push_back(notice.file);
  }
  EXPECT_THAT(told, ElementsAre("d/e"));
}

TEST_F(StoreNamesTest, AMovedFileKeepsItsHistoryAndCanBeWrittenOn) {
  WriteTwo(*store_, "d/a.h5");
  ASSERT_TRUE(store_->Move("d/a.h5", "e/f/b.h5").ok());
  EXPECT_THAT(Names(), ElementsAre("e/f/b.h5"));
  EXPECT_EQ(Content(*store_, "e/f/b.h5"), kWhole);
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile("d/a.h5").status()));
  Writer writer(*store_->OpenFile("e/f/b.h5"), SessionStart::kContinue, "two two");
  ASSERT_TRUE(writer.Write(0, "3").ok());
  EXPECT_EQ(writer.CutDurably(BarrierKind::kCommit)->version, 3);
  ASSERT_TRUE(writer.End().ok());
  Reopen();
  EXPECT_EQ(ReadVersion(**store_->OpenFile("e/f/b.h5"), 3), "3wo two");
  WriteTwo(*store_, "d/a.h5");
  EXPECT_EQ(Content(*store_, "d/a.h5"), kWhole) << "the old name is free";
}

TEST_F(StoreNamesTest, ATakenNameABadOneAndAWriterAreRefused) {
  WriteTwo(*store_, "a.h5");
  WriteTwo(*store_, "b.h5");
  const absl::Status taken = store_->Move("a.h5", "b.h5");
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("b.h5 exists"));
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Move("a.h5", "a.h5")));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Move("a.h5", "../c.h5")));
  EXPECT_TRUE(absl::IsNotFound(store_->Move("none.h5", "c.h5")));
  {
    Writer writer(*store_->OpenFile("a.h5"), SessionStart::kContinue, "two two");
    EXPECT_TRUE(absl::IsFailedPrecondition(store_->Move("a.h5", "c.h5")));
    EXPECT_TRUE(absl::IsFailedPrecondition(store_->Remove("a.h5", {}, absl::Hours(1)).status()));
    ASSERT_TRUE(writer.Write(0, "T").ok()) << "the writer goes on";
    ASSERT_TRUE(writer.End().ok());
  }
  EXPECT_EQ(Content(*store_, "a.h5"), kWhole);
  EXPECT_EQ(Content(*store_, "b.h5"), kWhole);
}

TEST_F(StoreNamesTest, WhoHoldsAMovedFileIsToldWhereItIs) {
  WriteTwo(*store_, "a.h5");
  auto held = *store_->OpenFile("a.h5");
  auto reader = *held->OpenVersion(1);
  ASSERT_TRUE(store_->Move("a.h5", "b.h5").ok());
  EXPECT_THAT(std::string(held->Info().status().message()), HasSubstr("a.h5 was moved to b.h5"));
  EXPECT_TRUE(absl::IsUnavailable(held->Acquire().status()));
  EXPECT_EQ(Content(*store_, "b.h5"), kWhole) << "beside the reader of before";
}

TEST_F(StoreNamesTest, ARemovedFileComesBackWithItsHistory) {
  WriteTwo(*store_, "d/a.h5");
  const RemovedFile removed = Remove("d/a.h5");
  EXPECT_THAT(Names(), IsEmpty());
  WriteTwo(*store_, "d/a.h5");
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Undelete(removed.id, "").status()));
  Reopen();
  auto listed = *store_->ListRemoved();
  ASSERT_EQ(listed.size(), 1);
  EXPECT_EQ(listed[0].name, "d/a.h5");
  EXPECT_EQ(listed[0].who.claimed_user, "alice");
  EXPECT_GT(listed[0].disk_bytes, 1000);
  EXPECT_EQ(*store_->Undelete(removed.id, "e/b.h5"), "e/b.h5");
  EXPECT_EQ(Content(*store_, "e/b.h5"), kWhole);
  EXPECT_THAT(*store_->ListRemoved(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->Undelete(removed.id, "c.h5").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Undelete("../x", "c.h5").status()));
}

TEST_F(StoreNamesTest, WhatHasExpiredIsGoneForGood) {
  WriteTwo(*store_, "a.h5");
  const RemovedFile removed = Remove("a.h5", absl::Hours(1));
  EXPECT_EQ(*store_->PurgeRemoved(removed.expires - absl::Seconds(1)), 0);
  EXPECT_EQ(*store_->PurgeRemoved(removed.expires), 1);
  EXPECT_THAT(*store_->ListRemoved(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->Undelete(removed.id, "").status()));
  WriteTwo(*store_, "a.h5");
  const RemovedFile now = Remove("a.h5", absl::ZeroDuration());
  EXPECT_TRUE(absl::IsNotFound(store_->Undelete(now.id, "").status())) << "before it is purged";
}

TEST_F(StoreNamesTest, ARemovedFileCanBePurgedBeforeItsTime) {
  WriteTwo(*store_, "a.h5");
  ASSERT_TRUE((*store_->OpenFile("a.h5"))->Tag(1, "first", TagMode::kKeep).ok());
  const RemovedFile first = Remove("a.h5");
  WriteTwo(*store_, "a.h5");
  const RemovedFile second = Remove("a.h5");
  EXPECT_EQ(first.tags, 1u);
  EXPECT_EQ(second.tags, 0u);
  ASSERT_TRUE(store_->PurgeOneRemoved(first.id).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->PurgeOneRemoved(first.id)));
  EXPECT_TRUE(absl::IsNotFound(store_->Undelete(first.id, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->PurgeOneRemoved("../a")));
  Reopen();
  ASSERT_EQ(store_->ListRemoved()->size(), 1u);
  ASSERT_TRUE(store_->Undelete(second.id, "").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->PurgeOneRemoved(second.id))) << "it is back";
  EXPECT_EQ(Content(*store_, "a.h5"), kWhole);
}

// Every moment of a purge: the removed file can be brought back whole, or is gone.
TEST_F(StoreNamesTest, ACrashInTheMiddleOfAPurgeLeavesNoPart) {
  WriteTwo(*store_, "a.h5");
  const RemovedFile removed = Remove("a.h5");
  Reopen();
  const size_t before = env_.change_count();
  ASSERT_TRUE(store_->PurgeOneRemoved(removed.id).ok());
  const size_t after = env_.change_count();
  int back_count = 0, gone_count = 0;
  for (size_t at = before; at <= after; ++at) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      auto crashed = env_.Crash(at, seed);
      auto store = OpenStore(*crashed, "/");
      ASSERT_NE(store, nullptr) << "change " << at << " seed " << seed;
      if (store->ListRemoved()->empty()) {
        ++gone_count;
        continue;
      }
      ++back_count;
      ASSERT_TRUE(store->Undelete(removed.id, "").ok()) << "change " << at << " seed " << seed;
      ASSERT_EQ(Content(*store, "a.h5"), kWhole) << "change " << at << " seed " << seed;
    }
  }
  EXPECT_GT(back_count, 0);
  EXPECT_GT(gone_count, 0);
}

// Every moment of a move, as a power loss and as a crash of the process leave it.
TEST_F(StoreNamesTest, ACrashInTheMiddleLeavesTheOldNameOrTheNewOne) {
  WriteTwo(*store_, "d/a.h5");
  Reopen();  // No work of the above is under way any more.
  const size_t before = env_.change_count();
  ASSERT_TRUE(store_->Move("d/a.h5", "e/b.h5").ok());
  const size_t after = env_.change_count();
  const RemovedFile removed = Remove("e/b.h5");
  const size_t gone = env_.change_count();
  ASSERT_TRUE(store_->Undelete(removed.id, "").ok());
  store_.reset();
  const size_t back = env_.change_count();
  int old_count = 0, new_count = 0, removed_count = 0;
  for (size_t at = before; at <= back; ++at) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      auto crashed = env_.Crash(at, seed);
      auto store = OpenStore(*crashed, "/");
      ASSERT_NE(store, nullptr) << "change " << at << " seed " << seed;
      const auto listed = *store->ListRemoved();
      std::vector<std::string> whole;
      for (const char* name : {"d/a.h5", "e/b.h5"}) {
        if (Content(*store, name) == kWhole) whole.push_back(name);
      }
      ASSERT_EQ(whole.size() + listed.size(), 1) << "change " << at << " seed " << seed;
      if (!listed.empty()) {
        ++removed_count;
        ASSERT_TRUE(store->Undelete(listed[0].id, "c.h5").ok());
        ASSERT_EQ(Content(*store, "c.h5"), kWhole) << "change " << at << " seed " << seed;
        continue;
      }
      (whole[0] == "d/a.h5" ? old_count : new_count) += 1;
      const bool acked = at >= after && at < gone;
      ASSERT_TRUE(!acked || whole[0] == "e/b.h5") << "acked, change " << at;
    }
  }
  EXPECT_GT(old_count, 0);
  EXPECT_GT(new_count, 0);
  EXPECT_GT(removed_count, 0);
}

TEST_F(StoreNamesTest, ACallThatFailsLeavesTheFileWholeUnderOneOfItsNames) {
  for (uint64_t call = 0;; ++call) {
    FaultEnv env;
    auto store = OpenStore(env, "/");
    WriteTwo(*store, "a.h5");
    ASSERT_TRUE((*store->OpenFile("a.h5"))->WaitApplied(absl::Seconds(20)).ok());
    env.FailCall(call, absl::InternalError("EIO"));
    const absl::Status moved = store->Move("a.h5", "b.h5");
    const bool met = env.fault_met();
    env.FailCall(uint64_t{1} << 40, absl::OkStatus());
    EXPECT_TRUE(moved.ok() || std::string(moved.message()).find("EIO") != std::string::npos ||
                std::string(moved.message()).find("a.h5") != std::string::npos)
        << "call " << call << ": " << moved;
    // The next call finishes the move, or finds the file at its old name.
    const bool at_b = Content(*store, "b.h5") == kWhole;
    EXPECT_TRUE(at_b || Content(*store, "a.h5") == kWhole) << "call " << call << ": " << moved;
    EXPECT_TRUE(at_b || !moved.ok());
    if (!met) break;
    ASSERT_LT(call, 500);
  }
}

// A rename must not read the head.
TEST(StoreNamesOnDiskTest, AMoveReadsNothingOfTheHead) {
  std::string pattern = testing::TempDir() + "/store_names_test.XXXXXX";
  const std::filesystem::path root = mkdtemp(pattern.data());
  CountingEnv env;
  {
    auto store = OpenStore(env, root);
    Writer writer(*store->OpenOrCreateFile("a.h5", 4096), SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, std::string(4 << 20, 'x')).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(writer.file().WaitApplied(absl::Seconds(20)).ok());
    env.counts().Clear();
    ASSERT_TRUE(store->Move("a.h5", "b.h5").ok());
    ASSERT_TRUE(store->OpenFile("b.h5").ok());
    EXPECT_LT(env.counts().bytes.load(), 1 << 20);
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace h5mirror::store
