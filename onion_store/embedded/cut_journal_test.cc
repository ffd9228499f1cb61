#include "onion_store/embedded/cut_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "onion_store/testing/test_cut_journal.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

TEST_F(CutJournalTest, ACommitMovesTheHeadAndLeavesNothingBeside) {
  ASSERT_TRUE(Commit(env_).ok());
  auto tree = *env_.OpenTree("/");
  EXPECT_EQ(ContentOf(*tree, "x.h5"), after_);
  EXPECT_TRUE(tree->List("x.h5.h5m")->empty());
}

// After settling, the head is "before" or "after", and nothing is beside it.
TEST_F(CutJournalTest, AfterAKillAtAnyChangeTheHeadIsOneOfTheTwo) {
  const auto start = env_.CopyNow();
  const size_t first = env_.change_count();
  ASSERT_TRUE(Commit(env_, JournalSync::kProcess).ok());
  const size_t count = env_.change_count() - first;
  ASSERT_GT(count, 4u);
  int old_count = 0, new_count = 0, torn_count = 0;
  for (size_t survive = 0; survive <= count; ++survive) {
    SCOPED_TRACE(survive);
    const auto killed = start->CopyNow();
    size_t seen = 0;
    killed->SetLie([&](const FaultDisk&, const FaultChange&) { return seen++ >= survive; });
    Commit(*killed, JournalSync::kProcess).IgnoreError();
    killed->SetLie(nullptr);
    auto tree = *killed->OpenTree("/");
    const std::string left = ContentOf(*tree, "x.h5");
    torn_count += left != before_ && left != after_ ? 1 : 0;
    const absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
    ASSERT_TRUE(settled.ok()) << settled;
    const std::string content = ContentOf(*tree, "x.h5");
    ASSERT_TRUE(content == before_ || content == after_);
    (content == before_ ? old_count : new_count)++;
  }
  EXPECT_GT(old_count, 0);
  EXPECT_GT(new_count, 0);
  EXPECT_GT(torn_count, 0) << "the test never met a head between two cuts";
}

TEST_F(CutJournalTest, AfterAKillOnTheWayToAShorterHeadItIsOneOfTheTwo) {
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), 0, after_).ok());
  JournalCut cut = Cut(*tree);
  std::swap(cut.size_before, cut.size_after);
  for (JournalPage& page : cut.pages) std::swap(page.before, page.after);
  int seen = 0, new_count = 0;
  for (int survive = 0; seen >= survive; ++survive) {
    SCOPED_TRACE(survive);
    const auto killed = env_.CopyNow();
    auto left = *killed->OpenTree("/");
    auto head = *left->Open("x.h5", OpenKind::kWrite, 0);
    seen = 0;
    killed->SetLie([&](const FaultDisk&, const FaultChange&) { return seen++ >= survive; });
    CutJournal journal(*left, "x.h5", JournalSync::kProcess);
    journal.Commit(*head, cut).IgnoreError();
    killed->SetLie(nullptr);
    const absl::Status settled = SettleJournal(*left, "x.h5", JournalWay::kForward);
    ASSERT_TRUE(settled.ok()) << settled;
    const std::string content = ContentOf(*left, "x.h5");
    ASSERT_EQ(content, survive < 3 ? after_ : before_);
    new_count += content == before_ ? 1 : 0;
  }
  EXPECT_GT(new_count, 4);
}

TEST_F(CutJournalTest, AfterAPowerLossTheHeadIsOneOfTheTwo) {
  const size_t first = env_.change_count();
  ASSERT_TRUE(Commit(env_).ok());
  const size_t last = env_.change_count();
  for (size_t changes = first; changes <= last; ++changes) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << changes << " changes, seed " << seed);
      const auto crashed = env_.Crash(changes, seed);
      auto tree = *crashed->OpenTree("/");
      const absl::Status settled = Settle(*tree);
      ASSERT_TRUE(settled.ok()) << settled;
      const std::string content = ContentOf(*tree, "x.h5");
      ASSERT_TRUE(content == before_ || content == after_);
      ASSERT_TRUE(changes != last || content == after_) << "an acknowledged cut is lost";
    }
  }
  EXPECT_GT(mixed_count_, 0) << "no disk wrote the pages in another order";
}

TEST_F(CutJournalTest, AnErrorAtAnyCallLeavesTheHeadAsItWasOrOnItsWay) {
  const auto start = env_.CopyNow();
  for (uint64_t call = 0;; ++call) {
    SCOPED_TRACE(call);
    const auto failing = start->CopyNow();
    failing->FailCall(call, absl::ResourceExhaustedError("no space left on device"));
    const absl::Status committed = Commit(*failing, JournalSync::kProcess);
    if (!failing->fault_met()) break;
    auto tree = *failing->OpenTree("/");
    ASSERT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kForward).ok());
    const std::string content = ContentOf(*tree, "x.h5");
    ASSERT_TRUE(content == before_ || content == after_);
  }
}

// At once, and after a power loss.
TEST_F(CutJournalTest, WhatAFailedCommitSaysOfTheHeadIsTrue) {
  const auto start = env_.CopyNow();
  int between_count = 0;
  for (const uint64_t failures : {1, 2, 1000}) {
    bool met = true;
    for (uint64_t call = 0; met; ++call) {
      SCOPED_TRACE(testing::Message() << failures << " failures from call " << call);
      const auto failing = start->CopyNow();
      auto tree = *failing->OpenTree("/");
      auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
      const JournalCut cut = Cut(*tree);
      CutJournal journal(*tree, "x.h5", JournalSync::kDurable);
      failing->FailCalls(call, failures, absl::ResourceExhaustedError("no space left on device"));
      const absl::Status committed = journal.Commit(*head, cut);
      met = failing->fault_met();
      failing->FailCalls(0, 0, absl::OkStatus());
      const std::string content = ContentOf(*tree, "x.h5");
      ASSERT_TRUE(journal.is_between() || content == (committed.ok() ? after_ : before_));
      between_count += journal.is_between() ? 1 : 0;
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const auto crashed = failing->Crash(failing->change_count(), seed);
        auto left = *crashed->OpenTree("/");
        const absl::Status settled = Settle(*left);
        ASSERT_TRUE(settled.ok()) << settled;
        const std::string now = ContentOf(*left, "x.h5");
        ASSERT_TRUE(now == before_ || now == after_);
        ASSERT_TRUE(journal.is_between() || now == content);
      }
    }
  }
  EXPECT_GT(between_count, 0);
}

TEST_F(CutJournalTest, ACommittedCutCanBeGivenUp) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  const auto left = ReadJournal(*tree, "x.h5");
  ASSERT_TRUE(left.ok() && left->is_committed);
  EXPECT_EQ(left->cut.comment, "CREATE /a");
  ASSERT_NE(ContentOf(*tree, "x.h5"), before_);
  ASSERT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kBack).ok());
  EXPECT_EQ(ContentOf(*tree, "x.h5"), before_);
  EXPECT_TRUE(tree->List("x.h5.h5m")->empty());
}

TEST_F(CutJournalTest, AJournalOfANewerProgramIsNotTakenForABrokenOne) {
  auto tree = *env_.OpenTree("/");
  auto journal = *tree->Open("x.h5.h5m/journal", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*journal, 0, "H5MJRNL2 and so on").ok());
  const absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
  EXPECT_TRUE(absl::IsFailedPrecondition(settled));
  EXPECT_THAT(std::string(settled.message()), HasSubstr("x.h5.h5m/journal is of a newer h5edit"));
  EXPECT_EQ(ContentOf(*tree, "x.h5.h5m/journal"), "H5MJRNL2 and so on");
  EXPECT_EQ(ContentOf(*tree, "x.h5"), before_);
}

TEST_F(CutJournalTest, AJournalThatIsHardlyBegunIsRemoved) {
  auto tree = *env_.OpenTree("/");
  for (const std::string& begun : {std::string(), std::string("H5MJR"), std::string(600, '\0')}) {
    auto journal = *tree->Open("x.h5.h5m/journal", OpenKind::kCreateFresh, 0600);
    ASSERT_TRUE(WriteAt(*journal, 0, begun).ok());
    EXPECT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kForward).ok());
    EXPECT_FALSE(*tree->Exists("x.h5.h5m/journal"));
  }
}

TEST_F(CutJournalTest, PagesThatCannotBeAreRefused) {
  const auto start = env_.CopyNow();
  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    const auto env = start->CopyNow();
    auto tree = *env->OpenTree("/");
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    JournalCut cut = Cut(*tree);
    if (kind == 0) std::swap(cut.pages[0], cut.pages[1]);
    if (kind == 1) cut.pages[2].offset = uint64_t{1} << 63;
    if (kind == 2) cut.pages[2].after += "beyond the end";
    CutJournalTestKill(*env, 3, [&] {
      CutJournal journal(*tree, "x.h5", JournalSync::kProcess);
      journal.Commit(*head, cut).IgnoreError();
    });
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadJournal(*tree, "x.h5").status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(SettleJournal(*tree, "x.h5", JournalWay::kForward)));
    EXPECT_EQ(ContentOf(*tree, "x.h5"), before_);
  }
}

TEST_F(CutJournalTest, WhatIsGivenUpStaysUnderAnotherName) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  const std::string torn = ContentOf(*tree, "x.h5");
  const std::string journal = ContentOf(*tree, "x.h5.h5m/journal");
  ASSERT_TRUE(SetJournalAside(*tree, "x.h5").ok());
  EXPECT_FALSE(ReadJournal(*tree, "x.h5")->exists);
  EXPECT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kForward).ok());
  EXPECT_EQ(ContentOf(*tree, "x.h5"), torn);
  EXPECT_EQ(tree->List("x.h5.h5m")->size(), 1u);
  EXPECT_EQ(ContentOf(*tree, "x.h5.h5m/journal-given-up"), journal);
}

TEST_F(CutJournalTest, AWriteThatWasBrokenOffAnywhereIsFinished) {
  const auto start = env_.CopyNow();
  for (const size_t written : {1, 103, 108, 511, 513, 4095}) {
    SCOPED_TRACE(written);
    const auto killed = start->CopyNow();
    CutJournalTestKill(*killed, 3, [&] { Commit(*killed, JournalSync::kProcess).IgnoreError(); });
    auto tree = *killed->OpenTree("/");
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    ASSERT_TRUE(WriteAt(*head, 0, after_.substr(0, written)).ok());
    const bool is_begun = ContentOf(*tree, "x.h5") != before_;
    const absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
    ASSERT_TRUE(settled.ok()) << settled;
    EXPECT_EQ(ContentOf(*tree, "x.h5"), is_begun ? after_ : before_);
  }
}

TEST_F(CutJournalTest, AHeadInUseIsPutInOrderLater) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  const auto reader = tree->Lock("x.h5", LockKind::kShared);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(absl::IsUnavailable(SettleJournal(*tree, "x.h5", JournalWay::kForward)));
}

}  // namespace
}  // namespace h5mirror::store
