// An index that is closed between two calls because many indexes are in use.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

class ClosedIndexTest : public testing::Test {
 protected:
  ClosedIndexTest() : tree_(*env_.OpenTree("/")), vfs_(*tree_) {
    row_.file_id = FileId{7};
    row_.page_size_bytes = 512;
    row_.generation = row_.durable_cut = 1;
    row_.cut_reserved = 1000;
    for (const char* directory : {"d", "e"}) {
      EXPECT_TRUE(tree_->MakeDirectory(directory, 0700).ok());
      EXPECT_TRUE(tree_->SyncDirectory("").ok());
      const VersionRow first = Version(1);
      auto made = VersionIndex::Create({vfs_, *tree_, directory, &open_}, row_, {&first, 1},
                                       GenerationRow{1, 1, 50});
      EXPECT_TRUE(made.ok()) << made.status();
      indexes_.push_back(*std::move(made));
    }
  }
  static VersionRow Version(VersionNumber number) {
    VersionRow row;
    row.info.version = row.info.cut = number;
    row.info.generation = 1;
    row.info.provenance.comment = "it's " + std::to_string(number);
    return row;
  }
  VersionIndex& index() { return *indexes_[0]; }
  absl::Status Commit(VersionNumber number) {
    const VersionRow version = Version(number);
    row_.durable_cut = number;
    return index().CommitCuts(row_, {&version, 1}, std::nullopt);
  }
  // Closes the first index by a use of the other.
  void CloseIt() { ASSERT_TRUE(indexes_[1]->ReadFileRow().ok()); }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SqliteVfs vfs_;
  MemoryBudget budget_{1 << 20};
  OpenIndexes open_{budget_, 1};
  FileRow row_;
  std::vector<std::unique_ptr<VersionIndex>> indexes_;
};

TEST_F(ClosedIndexTest, AnswersAndCommitsAsOneThatStaysOpen) {
  for (VersionNumber number = 2; number < 20; ++number) {
    ASSERT_TRUE(Commit(number).ok());
    CloseIt();
    EXPECT_EQ(index().GetVersion(number)->info.provenance.comment,
              "it's " + std::to_string(number));
    EXPECT_EQ(index().CountUpTo(number).value(), number);
    CloseIt();
  }
  EXPECT_EQ(open_.open_count(), 1u);
  EXPECT_EQ(budget_.used_bytes(), OpenIndexes::kIndexBytes);
  EXPECT_TRUE(index().CheckWhole()->empty());
}

// Every call: none would work without its database.
TEST_F(ClosedIndexTest, EveryCallOpensItAgain) {
  MoveCursor move;
  PagesCursor pages, level{1, 0}, version_rows{1, -1, 0, 1};
  std::vector<RunOfGeneration> runs;
  std::vector<PageRun> rows;
  std::vector<VersionSize> sizes;
  int64_t done = 0;
  VersionIndex& x = index();
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return x.ReadFileRow().status(); },
      [&] { return x.WriteFileRow(row_); },
      [&] { return Commit(2); },
      [&] { return x.AddPages(row_, {}); },
      [&] { return x.CommitApplied(row_, 2, 1); },
      [&] { return x.GetVersion(2).status(); },
      [&] { return x.Newest().status(); },
      [&] { return x.List({}, 10).status(); },
      [&] { return x.CountUpTo(9).status(); },
      [&] { return x.FindBack(0).status(); },
      [&] { return x.FindTime(absl::Now()).status(); },
      [&] { return x.FindTag("t").status(); },
      [&] { return x.TagsOf(2).status(); },
      [&] { return x.SetTag(2, "t", TagMode::kKeep).status(); },
      [&] { return x.RemoveTag("t").status(); },
      [&] { return x.CountTags().status(); },
      [&] { return x.SourceOf(2).status(); },
      [&] { return x.ForkedFrom().status(); },
      [&] { return x.LastPromotedFrom(FileId{8}).status(); },
      [&] { return x.LastCheck().status(); },
      [&] { return x.SetLastCheck({}); },
      [&] { return x.FindCut(2).status(); },
      [&] { return x.SizeMax(1).status(); },
      [&] { return x.GetGeneration(1).status(); },
      [&] { return x.FindPages(1, 1, 0, 9).status(); },
      [&] { return x.FindChanges(1, 1, 9).status(); },
      [&] { return x.FindChangedPages(1, 1, 9, 9).status(); },
      [&] { return x.NextPage(1, 1, 0).status(); },
      [&] { return x.HasVersion(1).status(); },
      [&] { return x.DropVersions({}); },
      [&] { return x.MoveDropped(512, 9, &move, &done).status(); },
      [&] { return x.ScanPages(9, &pages, &runs).status(); },
      [&] { return x.MoveRuns(row_, {}); },
      [&] { return x.UnusedGenerations(1).status(); },
      [&] { return x.Generations().status(); },
      [&] { return x.DropGeneration(9); },
      [&] { return x.Shrink().status(); },
      [&] { return x.Checkpoint(); },
      [&] { return x.ScanVersions(9, 0, &sizes).status(); },
      [&] { return x.NextGenerationWithPages(0).status(); },
      [&] { return x.ScanLevel(9, &level, &rows).status(); },
      [&] { return x.ScanVersionRows(9, &version_rows, &rows).status(); },
      [&] { return x.LargerThan(0).status(); },
      [&] { return x.NewestUpTo(9).status(); },
      [&] { return x.CheckWhole().status(); },
      [&] { return x.CheckSources(); },
      [&] { return x.HasRun(1, PageRun()).status(); },
      [&] { return x.ReadersOf(1, 0, 2, 0).status(); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    CloseIt();
    const absl::Status status = calls[i]();
    EXPECT_TRUE(status.ok()) << "call " << i << ": " << status;
  }
  CloseIt();
  EXPECT_TRUE(absl::IsNotFound(x.FindRequest({5}).status()));
}

TEST_F(ClosedIndexTest, SourcesOfVersionsAreFoundAgain) {
  CloseIt();
  EXPECT_EQ(index().SourceOf(2).value(), std::nullopt);
  VersionRow promoted = Version(2);
  promoted.info.source.emplace();
  promoted.info.source->kind = SourceKind::kPromotion;
  promoted.info.source->file_id = FileId{8};
  promoted.info.source->version = promoted.info.source->cut = 5;
  row_.durable_cut = 2;
  CloseIt();
  ASSERT_TRUE(index().CommitCuts(row_, {&promoted, 1}, std::nullopt).ok());
  CloseIt();
  EXPECT_EQ(index().LastPromotedFrom(FileId{8}).value(), 2);
  CloseIt();
  EXPECT_EQ(index().GetVersion(2)->info.source->version, 5);
}

TEST_F(ClosedIndexTest, ClosingAndOpeningWriteNothing) {
  ASSERT_TRUE(Commit(2).ok());
  const size_t changes = env_.change_count();
  CloseIt();
  ASSERT_TRUE(index().ReadFileRow().ok());
  CloseIt();
  ASSERT_TRUE(index().FindCut(2).ok());
  EXPECT_EQ(env_.change_count(), changes);
}

TEST_F(ClosedIndexTest, TheLogDoesNotGrowWithTheCommits) {
  int64_t longest = 0;
  for (VersionNumber number = 2; number < 400; ++number) {
    ASSERT_TRUE(Commit(number).ok());
    CloseIt();
    longest = std::max(longest, tree_->Stat("d/index-wal")->size_bytes);
  }
  EXPECT_LT(longest, 400 << 10);
  EXPECT_EQ(index().CountUpTo(1000).value(), 399);
}

TEST_F(ClosedIndexTest, OnAFullDiskALongLogStays) {
  for (VersionNumber number = 2; number < 400; ++number) ASSERT_TRUE(Commit(number).ok());
  ASSERT_GT(tree_->Stat("d/index-wal")->size_bytes, 256 << 10);
  CloseIt();
  env_.SetCapacity(0);
  EXPECT_EQ(index().CountUpTo(1000).value(), 399);
}

TEST_F(ClosedIndexTest, WhatWasCommittedSurvivesAPowerLossAtAnyMoment) {
  std::vector<size_t> moments;
  for (VersionNumber number = 2; number < 8; ++number) {
    ASSERT_TRUE(Commit(number).ok());
    CloseIt();
    moments.push_back(env_.change_count());
  }
  for (size_t i = 0; i < moments.size(); ++i) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const auto after = env_.Crash(moments[i], seed);
      const auto tree = *after->OpenTree("/");
      const SqliteVfs vfs(*tree);
      const auto opened = VersionIndex::Open(vfs, *tree, "d");
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ((*opened)->ReadFileRow()->durable_cut, static_cast<CutNumber>(i) + 2)
          << "seed " << seed;
    }
  }
}

TEST_F(ClosedIndexTest, AnErrorOfTheOpenIsThatOfTheCallAndNotOfTheNextOne) {
  CloseIt();
  env_.FailOpensOf("d/index", absl::ResourceExhaustedError("Too many open files"));
  EXPECT_FALSE(index().ReadFileRow().ok());
  EXPECT_FALSE(Commit(2).ok());
  env_.FailOpensOf("", absl::OkStatus());
  EXPECT_EQ(index().ReadFileRow()->durable_cut, 1);
  EXPECT_TRUE(Commit(2).ok());
}

TEST_F(ClosedIndexTest, ARefusedOpenIsToldAsOne) {
  CloseIt();
  for (const int error : {EPERM, EACCES}) {
    env_.FailOpensOf("d/index", ErrnoToStatus(error, "open d/index"));
    const absl::Status refused = index().ReadFileRow().status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("d/index"));
  }
  env_.FailOpensOf("", absl::OkStatus());
  EXPECT_EQ(index().ReadFileRow()->durable_cut, 1);
}

TEST_F(ClosedIndexTest, ACopyThatWasPutInItsPlaceIsNotTakenForIt) {
  CloseIt();
  ASSERT_TRUE(tree_->Rename("e/index", "d/index").ok());
  EXPECT_TRUE(absl::IsDataLoss(index().ReadFileRow().status()));
  ASSERT_TRUE(tree_->Remove("d/index").ok());
  EXPECT_TRUE(absl::IsDataLoss(index().ReadFileRow().status()));
  EXPECT_TRUE(absl::IsDataLoss(index().FindCut(1).status())) << "not that it has no such cut";
}

// SQLite would make an empty log.
TEST_F(ClosedIndexTest, ALogThatIsMissingIsNotTakenForAnEmptyOne) {
  ASSERT_TRUE(Commit(2).ok());
  CloseIt();
  ASSERT_TRUE(tree_->Remove("d/index-wal").ok());
  EXPECT_TRUE(absl::IsDataLoss(index().ReadFileRow().status()));
  EXPECT_TRUE(absl::IsDataLoss(Commit(3)));
}

// If it were opened again, it would find a whole commit in the log, but the disk may hold nothing
// of it.
TEST_F(ClosedIndexTest, OneWhoseCommitFailedStaysOpenUntilTheNextCommit) {
  ASSERT_TRUE(Commit(2).ok());
  const uint64_t before = env_.call_count();
  ASSERT_TRUE(Commit(3).ok());
  const uint64_t calls = env_.call_count() - before;
  env_.FailCall(calls - 1, absl::InternalError("fdatasync: Input/output error"));
  ASSERT_FALSE(Commit(4).ok());
  CloseIt();
  EXPECT_EQ(open_.open_count(), 2u);
  EXPECT_EQ(index().ReadFileRow()->durable_cut, 3);
  ASSERT_TRUE(Commit(4).ok());
  indexes_.pop_back();
  indexes_.push_back(*VersionIndex::Open({vfs_, *tree_, "e", &open_}));  // Closes the first one.
  EXPECT_EQ(open_.open_count(), 1u);
  EXPECT_EQ(index().ReadFileRow()->durable_cut, 4);
}

// Its name may be that of another file by now.
TEST_F(ClosedIndexTest, OneThatIsGivenUpIsNeverOpenedAgain) {
  CloseIt();
  index().GiveUp();
  const uint64_t calls = env_.call_count();
  EXPECT_TRUE(absl::IsUnavailable(index().ReadFileRow().status()));
  EXPECT_TRUE(absl::IsUnavailable(Commit(2)));
  EXPECT_TRUE(absl::IsUnavailable(index().FindPages(1, 1, 0, 10).status()));
  EXPECT_EQ(env_.call_count(), calls);
}

TEST_F(ClosedIndexTest, OneThatIsGivenUpWhileItIsOpenIsClosed) {
  ASSERT_TRUE(index().ReadFileRow().ok());
  index().GiveUp();
  EXPECT_EQ(open_.open_count(), 0u);
  EXPECT_TRUE(absl::IsUnavailable(index().ReadFileRow().status()));
}

}  // namespace
}  // namespace h5mirror::store
