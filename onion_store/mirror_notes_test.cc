#include "onion_store/mirror_notes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/dirty_map.h"
#include "base/env.h"
#include "base/local_record.h"
#include "onion_store/embedded_store.h"

namespace h5mirror::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPage = 4096;
constexpr int64_t kCut = 7;

// A file of three pages that was closed cleanly as cut 7 of its mirror.
class MirrorNotesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mirror-notes-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    head_ = directory_ / "x.h5";
    std::ofstream(head_) << before_;
    LocalRecord record;
    record.state = RecordState::kClean;
    record.file_id.fill(3);
    record.server = "node7:7447";
    record.name = "x.h5";
    record.cut = kCut;
    record.stat = *StatFile(head_);
    record.since = absl::FromUnixSeconds(1'000'000);
    ASSERT_TRUE(WriteLocalRecord(head_, record).ok());
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Changes the second page, and cuts the third off.
  JournalCut Cut() const {
    JournalCut cut;
    cut.inode = StatFile(head_)->inode;
    cut.size_before = before_.size();
    cut.size_after = 2 * kPage;
    cut.comment = "CREATE /a";
    cut.pages.push_back({kPage, std::string(kPage, 'b'), std::string(kPage, 'B')});
    cut.pages.push_back({2 * kPage, "tail", ""});
    return cut;
  }

  LocalRecord Record() const { return *ReadLocalRecord(head_); }
  // Of the head as it is.
  std::optional<DirtyMap> Map() const { return FindDirtyMap(head_, Record(), *StatFile(head_)); }

  absl::StatusOr<std::unique_ptr<EmbeddedLease>> Take(Mirrored mirrored) const {
    return EmbeddedLease::Take(Env::Posix(), head_, LockKind::kExclusive, "test",
                               absl::ZeroDuration(), mirrored);
  }

  fs::path directory_, head_;
  const std::string before_ = std::string(kPage, 'a') + std::string(kPage, 'b') + "tail";
};

TEST_F(MirrorNotesTest, AComingCutIsKnownWhileTheHeadIsAsItWas) {
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  const auto map = Map();
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->claim, DirtyMap::Claim::kContinue);
  EXPECT_EQ(map->base_cut, kCut);
  EXPECT_EQ(map->truncate, 2 * kPage);
  // All that the server would cut off with it is sent again where the head never moves.
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{kPage, kPage + 4}}));
}

TEST_F(MirrorNotesTest, ItIsOfTheHeadThatHasMoved) {
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  fs::resize_file(head_, 2 * kPage);
  EXPECT_FALSE(Map().has_value());
  NoteMovesOf(head_)(Cut());
  const auto map = Map();
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{kPage, kPage}}));
  NoteMovesOf(head_)(Cut());  // As after a kill.
  EXPECT_TRUE(Map().has_value());
}

TEST_F(MirrorNotesTest, AHeadThatMovedWithoutANoteHasDiverged) {
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  JournalCut another = Cut();
  another.pages.insert(another.pages.begin(),
                       {0, std::string(kPage, 'a'), std::string(kPage, 'A')});
  std::ofstream(head_) << std::string(kPage, 'A') << std::string(kPage, 'B');
  NoteMovesOf(head_)(another);
  EXPECT_FALSE(Map().has_value());
}

TEST_F(MirrorNotesTest, WhatIsNotTheMirrorsStateStaysSo) {
  std::ofstream(head_, std::ios::app) << "theirs";
  const LocalRecord record = Record();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  EXPECT_EQ(Record().state, RecordState::kClean);
  EXPECT_EQ(Record().since, record.since);
}

TEST_F(MirrorNotesTest, ASecondCutIsAddedAndNoAnswerIsWaitedForAnyMore) {
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  // As an attempt to send it leaves them whose answer was lost.
  LocalRecord record = Record();
  DirtyMap map = *Map();
  map.claim = DirtyMap::Claim::kResume;
  map.session_id.fill(9);
  ASSERT_TRUE(WriteDirtyMap(head_, map).ok());
  record.pending_session_id = map.session_id;
  record.pending_seq = 1;
  ASSERT_TRUE(WriteLocalRecord(head_, record).ok());

  JournalCut second = Cut();
  second.pages = {{0, std::string(kPage, 'a'), std::string(kPage, 'A')}};
  second.size_after = second.size_before;
  ASSERT_TRUE(NoteComingCut(head_, second).ok());
  ASSERT_TRUE(Map().has_value());
  EXPECT_EQ(Map()->extents.ToVector(), (std::vector<Extent>{{0, 2 * kPage + 4}}));
  EXPECT_EQ(Map()->session_id, map.session_id);
  EXPECT_EQ(Record().pending_seq, 0u);
}

TEST_F(MirrorNotesTest, TheLeaseIsGivenToWhoKeepsNoHistoryAndNotesWhatItFinishes) {
  EXPECT_EQ(Take(Mirrored::kRefused).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  {
    auto tree = *Env::Posix().OpenTree(directory_);
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    const auto killed = [](const JournalCut&) { throw 1; };  // With the journal still there.
    CutJournal journal(*tree, "x.h5", JournalSync::kProcess, killed);
    EXPECT_ANY_THROW(journal.Commit(*head, Cut()).IgnoreError());
  }
  EXPECT_FALSE(Map().has_value());
  auto lease = Take(Mirrored::kGiven);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_TRUE((*lease)->is_mirrored());
  EXPECT_EQ(fs::file_size(head_), 2 * kPage);
  EXPECT_TRUE(Map().has_value());
  lease->reset();
  EXPECT_FALSE(fs::exists(directory_ / "x.h5.h5m/journal"));
  EXPECT_FALSE(fs::exists(directory_ / "x.h5.h5m/lock"));
  EXPECT_TRUE(fs::exists(directory_ / "x.h5.h5m/client.json"));
}

}  // namespace
}  // namespace h5mirror::store
