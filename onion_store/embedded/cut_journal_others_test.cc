// Other programs change a file in which an edit was broken off, or is at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "onion_store/embedded/cut_journal.h"
#include "onion_store/testing/test_cut_journal.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

TEST_F(CutJournalTest, AHeadThatOthersHaveChangedIsLeftAlone) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), 2000, "theirs").ok());
  const std::string theirs = ContentOf(*tree, "x.h5");
  const absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
  EXPECT_TRUE(absl::IsFailedPrecondition(settled));
  EXPECT_THAT(std::string(settled.message()), HasSubstr("changed by another program"));
  EXPECT_EQ(ContentOf(*tree, "x.h5"), theirs);
  EXPECT_TRUE(absl::IsFailedPrecondition(SettleJournal(*tree, "x.h5", JournalWay::kBack)));
  EXPECT_EQ(ContentOf(*tree, "x.h5"), theirs);
}

TEST_F(CutJournalTest, ACopyOfATornHeadGoesBackAndNotForward) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  const std::string torn = ContentOf(*tree, "x.h5");
  ASSERT_TRUE(tree->Remove("x.h5").ok());
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kCreate, 0600), 0, torn).ok());
  const absl::Status forward = SettleJournal(*tree, "x.h5", JournalWay::kForward);
  EXPECT_TRUE(absl::IsFailedPrecondition(forward));
  EXPECT_THAT(std::string(forward.message()), HasSubstr("is another file than the one"));
  EXPECT_EQ(ContentOf(*tree, "x.h5"), torn);
  ASSERT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kBack).ok());
  EXPECT_EQ(ContentOf(*tree, "x.h5"), before_);
}

TEST_F(CutJournalTest, WhatOthersAppendedIsNotCutOff) {
  CutJournalTestKill(env_, 4, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), 5 * kPage, "theirs").ok());
  const std::string theirs = ContentOf(*tree, "x.h5");
  for (const JournalWay way : {JournalWay::kForward, JournalWay::kBack}) {
    SettleJournal(*tree, "x.h5", way).IgnoreError();
    EXPECT_EQ(ContentOf(*tree, "x.h5"), theirs);
  }
}

// A cut that makes the head ten pages long, and has only the last page.
class LongCutTest : public CutJournalTest {
 protected:
  // Leaves the cut committed, with nothing of it in the head.
  void Leave() { Leave(before_); }
  void Leave(const std::string& content) {
    auto tree = *env_.OpenTree("/");
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    JournalCut cut;
    cut.inode = head->Stat()->inode;
    cut.size_before = before_.size();
    cut.size_after = 10 * kPage;
    cut.pages.push_back({9 * kPage, "", std::string(kPage, 'n')});
    CutJournalTestKill(env_, 3, [&] {
      CutJournal journal(*tree, "x.h5", JournalSync::kProcess);
      journal.Commit(*head, cut).IgnoreError();
    });
    ASSERT_EQ(ContentOf(*tree, "x.h5"), content);
    ASSERT_TRUE(ReadJournal(*tree, "x.h5")->is_committed);
  }
  // Settles the cut after another program wrote `bytes` at `offset`.
  absl::Status SettleAfter(uint64_t offset, const std::string& bytes) {
    auto tree = *env_.OpenTree("/");
    H5M_RETURN_IF_ERROR(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), offset, bytes));
    const std::string theirs = ContentOf(*tree, "x.h5");
    absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
    EXPECT_TRUE(settled.ok() || ContentOf(*tree, "x.h5") == theirs);
    return settled;
  }
};

TEST_F(LongCutTest, IsFinished) {
  Leave();
  ASSERT_TRUE(SettleJournal(**env_.OpenTree("/"), "x.h5", JournalWay::kForward).ok());
  const std::string content = ContentOf(**env_.OpenTree("/"), "x.h5");
  EXPECT_EQ(content.size(), 10 * kPage);
  EXPECT_EQ(content.substr(9 * kPage), std::string(kPage, 'n'));
}

TEST_F(LongCutTest, WhatOthersWroteBetweenItsPagesIsLeftAlone) {
  Leave();
  EXPECT_TRUE(absl::IsFailedPrecondition(SettleAfter(5 * kPage, "theirs")));
}

TEST_F(LongCutTest, AHeadThatIsMarkedAsOpenForWritingIsLeftAlone) {
  std::string superblock("\x89HDF\r\n\x1a\n\x03\x08\x08\x00", 12);
  superblock.resize(kPage, '\0');
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), kPage, superblock).ok());
  Leave(ContentOf(*tree, "x.h5"));
  EXPECT_TRUE(absl::IsFailedPrecondition(SettleAfter(kPage + 11, std::string(1, '\x05'))));
  EXPECT_TRUE(SettleAfter(kPage + 11, std::string(1, '\0')).ok());
}

TEST_F(CutJournalTest, AHeadThatChangedWhileItWasEditedIsLeftAlone) {
  auto tree = *env_.OpenTree("/");
  auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
  const JournalCut cut = Cut(*tree);
  ASSERT_TRUE(WriteAt(*head, before_.size(), "theirs").ok());
  CutJournal journal(*tree, "x.h5", JournalSync::kProcess);
  EXPECT_TRUE(absl::IsFailedPrecondition(journal.Commit(*head, cut)));
  EXPECT_EQ(ContentOf(*tree, "x.h5"), before_ + "theirs");
}

// The next program that opens the file must not undo the owner's work.
TEST_F(CutJournalTest, AHeadThatWasPutBackStaysSo) {
  for (const int survive : {3, 4}) {
    SCOPED_TRACE(survive);
    const auto env = env_.CopyNow();
    CutJournalTestKill(*env, survive, [&] { Commit(*env, JournalSync::kProcess).IgnoreError(); });
    for (const JournalWay way : {JournalWay::kForward, JournalWay::kForwardAsked}) {
      const auto restored = env->CopyNow();
      auto tree = *restored->OpenTree("/");
      ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kCreateFresh, 0), 0, before_).ok());
      std::string notice;
      ASSERT_TRUE(SettleJournal(*tree, "x.h5", way, nullptr, &notice).ok());
      EXPECT_EQ(ContentOf(*tree, "x.h5"), before_);
      EXPECT_THAT(notice, HasSubstr("x.h5 was put back to what it was before an edit"));
      EXPECT_THAT(notice, HasSubstr("CREATE /a"));
      EXPECT_TRUE(tree->List("x.h5.h5m")->empty());
    }
  }
}

TEST_F(CutJournalTest, AHeadThatNobodyHasTouchedIsFinished) {
  CutJournalTestKill(env_, 3, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  auto tree = *env_.OpenTree("/");
  ASSERT_EQ(ContentOf(*tree, "x.h5"), before_);
  std::string notice;
  ASSERT_TRUE(SettleJournal(*tree, "x.h5", JournalWay::kForward, nullptr, &notice).ok());
  EXPECT_EQ(ContentOf(*tree, "x.h5"), after_);
  EXPECT_EQ(notice, "");
}

// A power loss may leave pages so, or another program that set a value back: only a person can
// tell.
TEST_F(CutJournalTest, PagesInAnotherOrderAreLeftToAPerson) {
  CutJournalTestKill(env_, 3, [this] { Commit(env_, JournalSync::kProcess).IgnoreError(); });
  // Old bytes in the page that is written first: the whole page, or a sector.
  for (const size_t old_bytes : {kPage, size_t{512}}) {
    SCOPED_TRACE(old_bytes);
    const auto env = env_.CopyNow();
    auto tree = *env->OpenTree("/");
    std::string mixed = after_;
    mixed.replace(0, old_bytes, before_.substr(0, old_bytes));
    ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kWrite, 0), 0, mixed).ok());
    const absl::Status settled = SettleJournal(*tree, "x.h5", JournalWay::kForward);
    ASSERT_TRUE(absl::IsFailedPrecondition(settled)) << settled;
    EXPECT_THAT(std::string(settled.message()), HasSubstr("h5edit --recover x.h5 finishes"));
    EXPECT_EQ(ContentOf(*tree, "x.h5"), mixed);
    EXPECT_TRUE(ReadJournal(*tree, "x.h5")->is_committed);
    for (const JournalWay way : {JournalWay::kForwardAsked, JournalWay::kBack}) {
      const auto asked = env->CopyNow();
      auto again = *asked->OpenTree("/");
      ASSERT_TRUE(SettleJournal(*again, "x.h5", way).ok());
      EXPECT_EQ(ContentOf(*again, "x.h5"), way == JournalWay::kBack ? before_ : after_);
    }
  }
}

// The new file comes before the journal is written, or after the head was written.
TEST_F(CutJournalTest, AHeadThatIsReplacedWhileItIsEditedIsNotCalledDone) {
  for (const int survive : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(survive);
    const auto env = env_.CopyNow();
    auto tree = *env->OpenTree("/");
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    const JournalCut cut = Cut(*tree);
    ASSERT_TRUE(WriteAt(**tree->Open("theirs", OpenKind::kCreate, 0600), 0, "theirs").ok());
    if (survive == 0) {
      ASSERT_TRUE(tree->Rename("theirs", "x.h5").ok());
    }
    int seen = 0;
    env->SetLie([&](const FaultDisk& disk, const FaultChange&) {
      if (++seen != survive) return false;
      // A rename between two changes of the journal. No call of the tree can be made from here.
      auto& names = const_cast<FaultDisk&>(disk).nodes[FaultDisk::kRoot].entries;
      names["x.h5"] = names.at("theirs");
      return false;
    });
    CutJournal journal(*tree, "x.h5", JournalSync::kProcess);
    const absl::Status committed = journal.Commit(*head, cut);
    env->SetLie(nullptr);
    ASSERT_GE(seen, survive);
    ASSERT_TRUE(absl::IsFailedPrecondition(committed)) << committed;
    EXPECT_THAT(std::string(committed.message()), HasSubstr("was replaced while it was edited"));
    EXPECT_FALSE(journal.is_between());
    EXPECT_TRUE(journal.Close().ok());
    EXPECT_EQ(ContentOf(*tree, "x.h5"), "theirs");
    EXPECT_TRUE(tree->List("x.h5.h5m")->empty());
    std::string gone(after_.size(), '\0');
    ASSERT_TRUE(ReadOrZeros(*head, 0, absl::MakeSpan(gone)).ok());
    EXPECT_EQ(gone.substr(0, before_.size()), before_);
  }
}

}  // namespace
}  // namespace h5mirror::store
