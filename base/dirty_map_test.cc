#include "base/dirty_map.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

DirtyMap Example() {
  DirtyMap map;
  map.id = RandomBytes16();
  map.file_id = RandomBytes16();
  map.claim = DirtyMap::Claim::kResume;
  map.session_id = RandomBytes16();
  map.base_cut = 40;
  map.cut_newest = 44;
  map.stat = {.inode = 7, .size_bytes = 1 << 20, .mtime_ns = 5, .ctime_ns = 6};
  map.truncate = 4096;
  map.extents.Add({0, 100});
  map.extents.Add({8192, 4096});
  return map;
}

// `bytes` with a matching checksum, as a hostile writer would make it.
std::string Summed(std::string bytes) {
  const uint32_t sum = Crc32c(std::string_view(bytes).substr(0, bytes.size() - sizeof(uint32_t)));
  std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
  return bytes;
}

std::string WithNumber(std::string bytes, size_t at, uint64_t number) {
  std::memcpy(bytes.data() + at, &number, sizeof(number));
  return Summed(std::move(bytes));
}

class DirtyMapFileTest : public ::testing::Test {
 protected:
  DirtyMapFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "h5m_dirty_XXXXXX").native();
    directory_ = mkdtemp(name.data());
    file_ = directory_ / "run7.h5";
    std::filesystem::create_directory(RecordDirectory(file_));
    record_.state = RecordState::kBehind;
    record_.file_id = map_.file_id;
    record_.stat = map_.stat;
    record_.dirty_map_id = map_.id;
    record_.since = absl::FromUnixSeconds(1);
  }
  ~DirtyMapFileTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_, file_;
  DirtyMap map_ = Example();
  LocalRecord record_;
};

TEST(DirtyMapTest, ComesBackAsItWas) {
  const DirtyMap map = Example();
  const absl::StatusOr<DirtyMap> back = DirtyMapFromBytes(DirtyMapToBytes(map));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->id, map.id);
  EXPECT_EQ(back->file_id, map.file_id);
  EXPECT_EQ(back->claim, map.claim);
  EXPECT_EQ(back->session_id, map.session_id);
  EXPECT_EQ(back->barrier_seq, 0u);
  EXPECT_EQ(back->base_cut, 40);
  EXPECT_EQ(back->cut_newest, 44);
  EXPECT_EQ(back->stat, map.stat);
  EXPECT_EQ(back->truncate, map.truncate);
  EXPECT_EQ(back->extents.ToVector(), map.extents.ToVector());
}

TEST(DirtyMapTest, NeverSmallerAndNothingChangedComeBackToo) {
  DirtyMap map = Example();
  map.truncate.reset();
  map.extents.Clear();
  const absl::StatusOr<DirtyMap> back = DirtyMapFromBytes(DirtyMapToBytes(map));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->truncate.has_value());
  EXPECT_TRUE(back->extents.empty());
}

TEST(DirtyMapTest, ATornOrFlippedMapIsNone) {
  const std::string bytes = DirtyMapToBytes(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(DirtyMapFromBytes(bytes.substr(0, size)).status())) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_TRUE(absl::IsDataLoss(DirtyMapFromBytes(flipped).status())) << at;
  }
}

TEST(DirtyMapTest, NumbersThatCannotBeAreRefused) {
  const std::string bytes = DirtyMapToBytes(Example());
  constexpr size_t kBaseCut = 72, kTruncate = 120, kCount = 128, kSecondOffset = 152;
  for (const uint64_t count : {uint64_t{1}, uint64_t{3}, uint64_t{1} << 60, UINT64_MAX}) {
    EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kCount, count)).ok()) << count;
  }
  for (const uint64_t offset : {uint64_t{99}, uint64_t{INT64_MAX} - 4095, UINT64_MAX}) {
    EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kSecondOffset, offset)).ok()) << offset;
  }
  EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kSecondOffset + 8, 0)).ok()) << "empty";
  EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kSecondOffset + 8, UINT64_MAX)).ok());
  EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kBaseCut, UINT64_MAX)).ok()) << "negative";
  EXPECT_FALSE(DirtyMapFromBytes(WithNumber(bytes, kTruncate, UINT64_MAX - 1)).ok());
  EXPECT_TRUE(DirtyMapFromBytes(WithNumber(bytes, kSecondOffset, INT64_MAX - 4096)).ok());
}

TEST(DirtyMapTest, ALaterFormatIsRefused) {
  std::string bytes = DirtyMapToBytes(Example());
  bytes[8] = 2;
  const absl::Status status = DirtyMapFromBytes(Summed(bytes)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(DirtyMapFileTest, IsFoundWhereRecordAndFileAreOfTheSameClose) {
  ASSERT_EQ(WriteDirtyMap(file_, map_), absl::OkStatus());
  EXPECT_TRUE(FindDirtyMap(file_, record_, map_.stat).has_value());
  RemoveDirtyMap(file_);
  EXPECT_FALSE(FindDirtyMap(file_, record_, map_.stat).has_value());
}

TEST_F(DirtyMapFileTest, IsNotLookedAtWhereTheRecordDoesNotNameIt) {
  ASSERT_EQ(WriteDirtyMap(file_, map_), absl::OkStatus());
  LocalRecord open = record_;
  open.state = RecordState::kOpen;
  EXPECT_FALSE(FindDirtyMap(file_, open, map_.stat).has_value());
  LocalRecord unnamed = record_;
  unnamed.dirty_map_id = {};
  EXPECT_FALSE(FindDirtyMap(file_, unnamed, map_.stat).has_value());
  LocalRecord of_another = record_;
  of_another.dirty_map_id = RandomBytes16();
  EXPECT_FALSE(FindDirtyMap(file_, of_another, map_.stat).has_value());
}

TEST_F(DirtyMapFileTest, IsNotThatOfAFileChangedSince) {
  ASSERT_EQ(WriteDirtyMap(file_, map_), absl::OkStatus());
  FileStat touched = map_.stat;
  ++touched.mtime_ns;
  EXPECT_FALSE(FindDirtyMap(file_, record_, touched).has_value());
  record_.stat = touched;  // A record of a later close whose map was not written.
  EXPECT_FALSE(FindDirtyMap(file_, record_, touched).has_value());
}

TEST_F(DirtyMapFileTest, GoesWithTheRecordThatNamesItNoMoreAndNotWithAnothers) {
  ASSERT_EQ(WriteLocalRecord(file_, record_), absl::OkStatus());
  ASSERT_EQ(WriteDirtyMap(file_, map_), absl::OkStatus());
  LocalRecord forgotten = record_;
  forgotten.dirty_map_id = {};
  const absl::Time another = record_.since + absl::Seconds(1);
  EXPECT_FALSE(UpdateLocalRecord(file_, forgotten, another).value());
  EXPECT_TRUE(FindDirtyMap(file_, record_, map_.stat).has_value());
  EXPECT_TRUE(UpdateLocalRecord(file_, forgotten, record_.since).value());
  EXPECT_FALSE(FindDirtyMap(file_, record_, map_.stat).has_value());
}

TEST_F(DirtyMapFileTest, DoesNotMakeADirectoryThatTheUserRemoved) {
  std::filesystem::remove_all(RecordDirectory(file_));
  EXPECT_TRUE(absl::IsNotFound(WriteDirtyMap(file_, map_)));
  EXPECT_FALSE(std::filesystem::exists(RecordDirectory(file_)));
}

}  // namespace
}  // namespace h5mirror
