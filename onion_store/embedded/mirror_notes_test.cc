#include "onion_store/embedded/mirror_notes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/dirty_map.h"
#include "base/env.h"
#include "base/local_record.h"
#include "onion_store/embedded/embedded_store.h"

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
  // The head's stat, as a journal written now has it.
  FileStat Stat() const { return *StatFile(head_); }
  void Tell(const JournalCut& cut, const FileStat& before, const FileStat& found) const {
    NoteMovesOf(head_)(cut, {before, found});
  }
  // The map of the present head.
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
  // If the head never moves, all bytes that the server would cut off are sent again.
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{kPage, kPage + 4}}));
}

TEST_F(MirrorNotesTest, ItIsOfTheHeadThatHasMoved) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  fs::resize_file(head_, 2 * kPage);
  EXPECT_FALSE(Map().has_value());
  Tell(Cut(), before, before);
  const auto map = Map();
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{kPage, kPage}}));
}

// The pages that others wrote between a kill and the next open are in no journal.
TEST_F(MirrorNotesTest, AHeadThatWasLeftBetweenTwoCutsIsSentWhole) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  std::ofstream(head_) << std::string(kPage, 'z') << std::string(kPage, 'B');
  Tell(Cut(), before, Stat());
  const auto map = Map();
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->base_cut, kCut);
  EXPECT_EQ(map->truncate, 2 * kPage);
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{0, 2 * kPage}}));
}

TEST_F(MirrorNotesTest, AKillWhileTheMoveIsNotedLosesNothing) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  LocalRecord noted = Record();
  fs::resize_file(head_, 2 * kPage);
  Tell(Cut(), before, before);
  Tell(Cut(), before, Stat());  // Killed after it.
  EXPECT_TRUE(Map().has_value());
  ASSERT_TRUE(WriteLocalRecord(head_, noted).ok());  // Between map and record.
  Tell(Cut(), before, Stat());
  ASSERT_TRUE(Map().has_value());
  EXPECT_EQ(Map()->extents.ToVector(), (std::vector<Extent>{{0, 2 * kPage}}));
}

// The server is away: an edit, a program without the driver, an edit of the same page.
TEST_F(MirrorNotesTest, AMapOfBeforeOthersWroteIsNotThatOfTheNextCut) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  std::ofstream(head_) << std::string(kPage, 'a') << std::string(kPage, 'B');
  Tell(Cut(), before, before);
  ASSERT_TRUE(Map().has_value());
  std::ofstream(head_) << std::string(kPage, 'z') << std::string(kPage, 'B') << "theirs";
  const FileStat changed = Stat();
  JournalCut second = Cut();
  second.size_before = 2 * kPage + 6;
  ASSERT_TRUE(NoteComingCut(head_, second).ok());
  std::ofstream(head_) << std::string(kPage, 'z') << std::string(kPage, 'C') << "another";
  Tell(second, changed, changed);
  EXPECT_FALSE(Map().has_value());
  Tell(second, changed, Stat());  // Killed in the middle.
  EXPECT_FALSE(Map().has_value());
}

// `mv another x.h5` in the middle of a cut, which is then taken back in the file that moved.
TEST_F(MirrorNotesTest, AFileThatWasPutInItsPlaceIsNotTakenForTheOneThatMoved) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  std::ofstream(directory_ / "another") << std::string(before_.size(), 'z');
  fs::rename(directory_ / "another", head_);
  Tell(Cut(), before, before);
  EXPECT_FALSE(Map().has_value());
  EXPECT_EQ(Record().stat, before);
}

// A power loss may bring an older map back, and a record that fits it.
TEST_F(MirrorNotesTest, AnOlderMapIsNotTakenForThatOfALaterCut) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  FileStat later = before;
  later.mtime_ns += 1;
  later.ctime_ns += 1;
  fs::resize_file(head_, 2 * kPage);
  Tell(Cut(), later, before);
  ASSERT_TRUE(Map().has_value());
  EXPECT_EQ(Map()->extents.ToVector(), (std::vector<Extent>{{0, 2 * kPage}}));
}

TEST_F(MirrorNotesTest, ACutThatTheMapDoesNotKnowIsSentWithAllElse) {
  const FileStat before = Stat();
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  JournalCut another = Cut();
  another.pages.insert(another.pages.begin(),
                       {0, std::string(kPage, 'a'), std::string(kPage, 'A')});
  std::ofstream(head_) << std::string(kPage, 'A') << std::string(kPage, 'B');
  Tell(another, before, before);
  ASSERT_TRUE(Map().has_value());
  EXPECT_EQ(Map()->extents.ToVector(), (std::vector<Extent>{{0, 2 * kPage}}));
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

// A re-creation of which the server was told, and that was not answered. Should the map be lost,
// its barrier must not stand for the file with this cut.
TEST_F(MirrorNotesTest, NoBarrierStandsForTheFileWithALaterCut) {
  DirtyMap map;
  map.id.fill(5);
  map.file_id = Record().file_id;
  map.claim = DirtyMap::Claim::kCreate;
  map.stat = Stat();
  ASSERT_TRUE(WriteDirtyMap(head_, map).ok());
  LocalRecord record = Record();
  record.state = RecordState::kBehind;
  record.dirty_map_id = map.id;
  record.pending_session_id.fill(9);
  record.pending_seq = 1;
  ASSERT_TRUE(WriteLocalRecord(head_, record).ok());
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  ASSERT_TRUE(Map().has_value());
  EXPECT_EQ(Map()->claim, DirtyMap::Claim::kCreate);
  EXPECT_EQ(Record().pending_seq, 0u);
}

TEST_F(MirrorNotesTest, TheLeaseIsGivenToWhoKeepsNoHistoryAndNotesWhatItFinishes) {
  EXPECT_EQ(Take(Mirrored::kRefused).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(NoteComingCut(head_, Cut()).ok());
  {
    auto tree = *Env::Posix().OpenTree(directory_);
    auto head = *tree->Open("x.h5", OpenKind::kWrite, 0);
    const auto killed = [](const JournalCut&, const MovedFrom&) {
      throw 1;
    };  // With the journal still there.
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
