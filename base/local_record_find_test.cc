#include <cstdlib>
#include <fstream>

#include "base/dirty_map.h"
#include "base/local_record.h"
#include "base/server_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

// Files that have or had several mirrors.
class LocalRecordFindTest : public ::testing::Test {
 protected:
  LocalRecordFindTest() {
    std::string name = (std::filesystem::temp_directory_path() / "h5m_find_XXXXXX").native();
    directory_ = mkdtemp(name.data());
    file_ = directory_ / "run7.h5";
  }
  ~LocalRecordFindTest() override { std::filesystem::remove_all(directory_); }

  static LocalRecord Of(const std::string& server, int64_t cut) {
    LocalRecord record;
    record.server = server;
    record.name = "run7.h5";
    record.cut = cut;
    record.since = absl::FromUnixSeconds(cut);
    return record;
  }
  RecordPlace Alone() const { return file_; }
  RecordPlace AmongSeveral(const std::string& server) const { return {file_, ServerTag(server)}; }
  void Write(const RecordPlace& place, const LocalRecord& record) const {
    ASSERT_EQ(WriteLocalRecord(place, record), absl::OkStatus());
  }

  std::filesystem::path directory_;
  std::filesystem::path file_;
};

TEST_F(LocalRecordFindTest, AFileWithOneMirrorHasTheNamesThatItAlwaysHad) {
  EXPECT_EQ(RecordPath(Alone()), RecordDirectory(file_) / "client.json");
  EXPECT_EQ(RecordPath(AmongSeveral("a")),
            RecordDirectory(file_) / ("client-" + ServerTag("a") + ".json"));
}

TEST_F(LocalRecordFindTest, TheOnlyMirrorsRecordIsFoundWhereItBecomesOneOfSeveral) {
  Write(Alone(), Of("a:7447", 41));
  const auto found = FindRecordOf(AmongSeveral("a"), "a");
  ASSERT_EQ(found.status(), absl::OkStatus());
  EXPECT_EQ(found->record.cut, 41);
  EXPECT_EQ(found->place.tag, "");
  EXPECT_TRUE(absl::IsNotFound(FindRecordOf(AmongSeveral("b"), "b").status()));
}

TEST_F(LocalRecordFindTest, WhoTakesARecordIsItsOnlyWriterFromThenOn) {
  LocalRecord closed = Of("a", 41);
  closed.state = RecordState::kBehind;
  closed.pending_seq = 3;
  Write(Alone(), closed);
  const auto taken = TakeRecordOf(Alone(), "a");
  ASSERT_EQ(taken.status(), absl::OkStatus());
  EXPECT_EQ(taken->record.pending_seq, 3u);
  LocalRecord late = closed;  // Written by the program that has closed the file.
  late.pending_seq = 4;
  EXPECT_FALSE(UpdateLocalRecord(Alone(), late, closed.since).value());
  EXPECT_TRUE(UpdateLocalRecord(Alone(), late, taken->record.since).value());
}

TEST_F(LocalRecordFindTest, ARecordOfAnotherServerIsNotTaken) {
  LocalRecord closed = Of("a", 41);
  closed.state = RecordState::kBehind;
  Write(Alone(), closed);
  ASSERT_EQ(TakeRecordOf(Alone(), "b").status(), absl::OkStatus());
  EXPECT_EQ(ReadLocalRecord(Alone())->since, closed.since);
}

TEST_F(LocalRecordFindTest, OneOfSeveralIsFoundWhereItBecomesTheOnlyOne) {
  Write(AmongSeveral("a"), Of("a", 41));
  Write(AmongSeveral("b"), Of("b", 42));
  const auto found = FindRecordOf(Alone(), "b:7447");
  ASSERT_EQ(found.status(), absl::OkStatus());
  EXPECT_EQ(found->record.cut, 42);
  EXPECT_EQ(found->place.tag, ServerTag("b"));
}

TEST_F(LocalRecordFindTest, ItsOwnPlaceComesFirst) {
  Write(Alone(), Of("a", 41));
  Write(AmongSeveral("a"), Of("a", 42));
  EXPECT_EQ(FindRecordOf(AmongSeveral("a"), "a")->record.cut, 42);
  EXPECT_EQ(FindRecordOf(Alone(), "a")->record.cut, 41);
}

TEST_F(LocalRecordFindTest, ARecordOfAnotherServerIsFoundAsEver) {
  Write(Alone(), Of("a", 41));
  EXPECT_EQ(FindRecordOf(Alone(), "b")->record.server, "a");
}

TEST_F(LocalRecordFindTest, EachServerHasOneRecordTheNewerOfTwo) {
  Write(Alone(), Of("b", 50));
  Write(AmongSeveral("b"), Of("b", 42));
  Write(AmongSeveral("c"), Of("c", 1));
  Write(AmongSeveral("a"), Of("a", 2));
  const auto found = FindLocalRecords(file_);
  ASSERT_EQ(found.status(), absl::OkStatus());
  std::string servers;
  for (const FoundRecord& each : *found) servers += each.record.server;
  EXPECT_EQ(servers, "bac");
  EXPECT_EQ(found->front().record.cut, 50);
}

TEST_F(LocalRecordFindTest, AFileWithoutRecordsHasNone) {
  EXPECT_TRUE(FindLocalRecords(file_)->empty());
}

TEST_F(LocalRecordFindTest, OneThatDoesNotParseIsNamed) {
  Write(AmongSeveral("a"), Of("a", 1));
  std::ofstream(RecordPath(AmongSeveral("a"))) << "{";
  const absl::Status status = FindLocalRecords(file_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(ServerTag("a")));
}

TEST_F(LocalRecordFindTest, EachMirrorHasItsOwnDirtyMap) {
  DirtyMap map;
  map.id[0] = 1;
  LocalRecord record = Of("a", 1);
  record.state = RecordState::kBehind;
  record.dirty_map_id = map.id;
  Write(AmongSeveral("a"), record);
  ASSERT_EQ(WriteDirtyMap(AmongSeveral("a"), map), absl::OkStatus());
  EXPECT_TRUE(FindDirtyMap(AmongSeveral("a"), record, map.stat).has_value());
  EXPECT_FALSE(FindDirtyMap(AmongSeveral("b"), record, map.stat).has_value());
  EXPECT_FALSE(FindDirtyMap(Alone(), record, map.stat).has_value());
  RemoveLocalRecord(AmongSeveral("a"));
  EXPECT_FALSE(std::filesystem::exists(RecordDirectory(file_)));
}

TEST_F(LocalRecordFindTest, OneOfSeveralMayBelongToARenamedFile) {
  std::ofstream(file_) << "content";
  LocalRecord record = Of("b", 7);
  record.stat = *StatFile(file_);
  Write(AmongSeveral("b"), record);
  const std::filesystem::path renamed = directory_ / "renamed.h5";
  std::filesystem::rename(file_, renamed);
  const auto former = FindFormerRecord({renamed, ServerTag("b")}, "b", *StatFile(renamed));
  ASSERT_EQ(former.status(), absl::OkStatus());
  EXPECT_EQ(former->record.cut, 7);
  EXPECT_EQ(former->place.local_file, file_);
}

}  // namespace
}  // namespace h5mirror
