#include "client_vfd/session/session_record.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Writing = SessionRecord::Writing;

class SessionRecordTest : public ::testing::Test {
 protected:
  SessionRecordTest() {
    std::string name = (std::filesystem::temp_directory_path() / "h5m_session_XXXXXX").native();
    directory_ = mkdtemp(name.data());
    file_ = directory_ / "run7.h5";
    std::ofstream(file_) << "bytes";
    facts_.stat_at_open = *StatFile(file_);
    facts_.server = "node7:7447";
    facts_.name = "beam/run7.h5";
  }
  ~SessionRecordTest() override { std::filesystem::remove_all(directory_); }

  // A record of the file, as another session has left it.
  LocalRecord Left(RecordState state = RecordState::kClean) const {
    LocalRecord record;
    record.state = state;
    record.file_id = RandomBytes16();
    record.server = facts_.server;
    record.name = facts_.name;
    record.cut = 41;
    record.stat = facts_.stat_at_open;
    record.since = absl::Now();
    return record;
  }

  SessionRecord Begun(const RecordPlace& place) const {
    SessionRecord record(place);
    const std::optional<FoundRecord> found = record.Find(facts_);
    const auto known = found ? std::optional(found->record) : std::nullopt;
    record.Begin(found, RelationOf(facts_, known), facts_);
    return record;
  }

  static SessionRecord::News NewsOf(RecordState state) {
    SessionRecord::News news;
    news.state = state;
    news.detail = "server away";
    news.now = absl::Now();
    return news;
  }

  DirtyMap MapOfFile() const {
    DirtyMap map;
    map.id = RandomBytes16();
    map.session_id = RandomBytes16();
    map.stat = facts_.stat_at_open;
    return map;
  }

  // As a close leaves it that was not answered.
  SessionRecord BehindWith(const DirtyMap& map) const {
    SessionRecord record = Begun(file_);
    EXPECT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
    EXPECT_EQ(record.SaveMap(map), absl::OkStatus());
    EXPECT_EQ(*record.Save(NewsOf(RecordState::kBehind), Writing::kUpdate), true);
    return record;
  }
  bool FindMap(const SessionRecord& record, const Relation& relation = {}) const {
    return record.FindMap({file_, record.value()}, relation, facts_).has_value();
  }

  LocalRecord OnDisk() const { return ReadLocalRecord(file_).value_or(LocalRecord{}); }
  bool HasMap() const { return std::filesystem::exists(RecordDirectory(file_) / "dirty"); }

  std::filesystem::path directory_;
  std::filesystem::path file_;
  LocalFacts facts_;
};

TEST_F(SessionRecordTest, AFileWithoutARecordGetsOne) {
  SessionRecord record = Begun(file_);
  EXPECT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
  EXPECT_EQ(OnDisk().state, RecordState::kOpen);
  EXPECT_EQ(OnDisk().name, facts_.name);
  EXPECT_EQ(OnDisk().stat, facts_.stat_at_open);
}

TEST_F(SessionRecordTest, ItGoesOnFromWhatWasKnownOfTheFile) {
  const LocalRecord left = Left();
  ASSERT_EQ(WriteLocalRecord(file_, left), absl::OkStatus());
  const SessionRecord record = Begun(file_);
  EXPECT_EQ(record.value().file_id, left.file_id);
  EXPECT_EQ(record.value().cut, 41);
}

TEST_F(SessionRecordTest, ARecordOfAnotherNameSaysNothing) {
  LocalRecord left = Left();
  left.name = "beam/other.h5";
  ++left.stat.mtime_ns;  // Else it was renamed.
  ASSERT_EQ(WriteLocalRecord(file_, left), absl::OkStatus());
  EXPECT_EQ(Begun(file_).value().file_id, Bytes16{});
}

TEST_F(SessionRecordTest, ACleanCloseNotesCutAndVersionAndNoReason) {
  SessionRecord record = Begun(file_);
  SessionRecord::News news = NewsOf(RecordState::kClean);
  news.cut = 42;
  news.version = 7;
  news.final_seq = 3;
  ASSERT_EQ(*record.Save(news, Writing::kMake), true);
  EXPECT_EQ(OnDisk().cut, 42);
  EXPECT_EQ(OnDisk().version, 7);
  EXPECT_EQ(OnDisk().detail, "");
  EXPECT_EQ(OnDisk().pending_seq, 0U);
}

TEST_F(SessionRecordTest, ACloseThatIsNotAnsweredNotesItsBarrier) {
  SessionRecord record = Begun(file_);
  SessionRecord::News news = NewsOf(RecordState::kBehind);
  news.session_id = RandomBytes16();
  news.final_seq = 3;
  news.cut = 42;
  ASSERT_EQ(*record.Save(news, Writing::kMake), true);
  EXPECT_EQ(OnDisk().pending_session_id, news.session_id);
  EXPECT_EQ(OnDisk().pending_seq, 3U);
  EXPECT_EQ(OnDisk().cut, 0) << "it is not durable";
  EXPECT_EQ(OnDisk().detail, "server away");
}

TEST_F(SessionRecordTest, EachRecordIsLaterThanTheOneBefore) {
  SessionRecord record = Begun(file_);
  SessionRecord::News news = NewsOf(RecordState::kOpen);
  ASSERT_EQ(*record.Save(news, Writing::kMake), true);
  const absl::Time first = OnDisk().since;
  news.now -= absl::Hours(1);  // The clock was set back.
  ASSERT_EQ(*record.Save(news, Writing::kMake), true);
  EXPECT_EQ(OnDisk().since, first + absl::Nanoseconds(1));
}

TEST_F(SessionRecordTest, AnUpdateMakesNoRecord) {
  SessionRecord record = Begun(file_);
  EXPECT_EQ(*record.Save(NewsOf(RecordState::kBehind), Writing::kUpdate), false);
  EXPECT_FALSE(std::filesystem::exists(RecordDirectory(file_)));
}

TEST_F(SessionRecordTest, AnUpdateLeavesAnothersRecordAlone) {
  SessionRecord record = Begun(file_);
  ASSERT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
  EXPECT_FALSE(record.IsAnothers());
  const LocalRecord other = Left(RecordState::kOpen);
  ASSERT_EQ(WriteLocalRecord(file_, other), absl::OkStatus());
  EXPECT_TRUE(record.IsAnothers());
  EXPECT_EQ(*record.Save(NewsOf(RecordState::kClean), Writing::kUpdate), false);
  EXPECT_EQ(OnDisk().since, other.since);
  EXPECT_TRUE(record.IsAnothers()) << "also after it was tried";
}

TEST_F(SessionRecordTest, OnlyARecordThatIsBehindNamesAMap) {
  const DirtyMap map = MapOfFile();
  SessionRecord record = BehindWith(map);
  EXPECT_EQ(OnDisk().dirty_map_id, map.id);
  ASSERT_EQ(*record.Save(NewsOf(RecordState::kClean), Writing::kUpdate), true);
  EXPECT_EQ(OnDisk().dirty_map_id, Bytes16{});
  EXPECT_FALSE(HasMap());
}

TEST_F(SessionRecordTest, TheNextSessionForgetsTheMapThatItFound) {
  BehindWith(MapOfFile());
  SessionRecord record = Begun(file_);
  EXPECT_TRUE(FindMap(record));
  ASSERT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
  EXPECT_FALSE(HasMap());
}

TEST_F(SessionRecordTest, UnderANewNameNothingIsResumed) {
  DirtyMap map = MapOfFile();
  map.claim = DirtyMap::Claim::kResume;
  const SessionRecord record = BehindWith(map);
  EXPECT_TRUE(FindMap(record));
  Relation relation;
  relation.renamed_from = "beam/old.h5";
  EXPECT_FALSE(FindMap(record, relation));
}

TEST_F(SessionRecordTest, AFileThatIsCreatedAgainTakesUpNoMap) {
  const SessionRecord record = BehindWith(MapOfFile());
  EXPECT_TRUE(FindMap(record));
  facts_.created = true;
  EXPECT_FALSE(FindMap(record));
}

TEST_F(SessionRecordTest, ARecordElsewhereIsRemovedOnceOneIsHere) {
  ASSERT_EQ(WriteLocalRecord(file_, Left()), absl::OkStatus());
  const RecordPlace here(file_, "0123456789abcdef");
  SessionRecord record = Begun(here);
  EXPECT_EQ(record.value().cut, 41);
  ASSERT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
  EXPECT_TRUE(std::filesystem::exists(RecordPath(file_))) << "a program that dies leaves two";
  record.ForgetElsewhere();
  EXPECT_FALSE(std::filesystem::exists(RecordPath(file_)));
  EXPECT_TRUE(std::filesystem::exists(RecordPath(here)));
}

TEST_F(SessionRecordTest, ARecordOfAFormerNameGoesWhenTheServerHasTheNewOne) {
  ASSERT_EQ(WriteLocalRecord(file_, Left()), absl::OkStatus());
  const std::filesystem::path renamed = directory_ / "run8.h5";
  std::filesystem::rename(file_, renamed);
  facts_.name = "beam/run8.h5";
  facts_.stat_at_open = *StatFile(renamed);
  SessionRecord record = Begun(renamed);
  EXPECT_TRUE(record.has_former_place());
  EXPECT_EQ(record.value().renamed_from, "beam/run7.h5");
  record.ForgetRename();
  EXPECT_TRUE(record.is_renamed()) << "the former record is there";
  record.ForgetFormerPlace();
  EXPECT_FALSE(record.is_renamed());
  EXPECT_FALSE(std::filesystem::exists(RecordPath(file_)));
}

TEST_F(SessionRecordTest, AServerThatKnowsNoRenameGetsANewFile) {
  SessionRecord record(file_);
  record.Inherit(Left(), file_);
  record.BeginAsNewFile();
  EXPECT_EQ(record.value().file_id, Bytes16{});
  EXPECT_FALSE(record.is_renamed());
}

TEST_F(SessionRecordTest, AnOutsideChangeIsNotedAsACloseWithoutAnAnswer) {
  SessionRecord record = Begun(file_);
  const DirtyMap map = MapOfFile();
  ASSERT_EQ(*record.Save(NewsOf(RecordState::kOpen), Writing::kMake), true);
  ASSERT_TRUE(record.NoteOutside(map, absl::Now()));
  EXPECT_EQ(OnDisk().state, RecordState::kBehind);
  EXPECT_EQ(OnDisk().pending_session_id, map.session_id);
  EXPECT_EQ(OnDisk().dirty_map_id, map.id);
  EXPECT_TRUE(HasMap());
}

TEST_F(SessionRecordTest, TheServersFileIdIsNewsOnce) {
  SessionRecord record(file_);
  const Bytes16 id = RandomBytes16();
  EXPECT_TRUE(record.SetFileId(id));
  EXPECT_FALSE(record.SetFileId(id));
}

}  // namespace
}  // namespace h5mirror::vfd
