#include "base/local_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/local_record_json.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

class LocalRecordTest : public ::testing::Test {
 protected:
  LocalRecordTest() {
    std::string name = (std::filesystem::temp_directory_path() / "h5m_record_XXXXXX").native();
    directory_ = mkdtemp(name.data());
    file_ = directory_ / "run7.h5";
  }
  ~LocalRecordTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path RecordFile() const { return RecordDirectory(file_) / "client.json"; }

  static LocalRecord Example() {
    LocalRecord record;
    record.state = RecordState::kBehind;
    record.file_id = RandomBytes16();
    record.server = "node7:7447";
    record.name = "beam/Lauf \"7\"/\xc3\xbc.h5";
    record.cut = 41;
    record.version = 12;
    record.stat = {.inode = UINT64_MAX, .size_bytes = 1LL << 50, .mtime_ns = -1, .ctime_ns = 7};
    record.renamed_from = "beam/old.h5";
    record.group = RecordGroup{RandomBytes16(), 7, {"a.h5-m.h5", "/other/\xc3\xbc.h5"}};
    record.pending_session_id = RandomBytes16();
    record.pending_seq = 3;
    record.dirty_map_id = RandomBytes16();
    record.detail = "server away";
    record.since = absl::FromUnixNanos(1793714400123456789);
    return record;
  }

  std::filesystem::path directory_;
  std::filesystem::path file_;
};

TEST_F(LocalRecordTest, AnUpdateOfTheSameSizeKeepsTheFile) {
  LocalRecord record = Example();
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  const uint64_t inode = StatFile(RecordFile())->inode;
  record.state = RecordState::kClean;
  record.cut = 42;
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  EXPECT_EQ(StatFile(RecordFile())->inode, inode);
  EXPECT_EQ(StatFile(RecordFile())->size_bytes % 512, 0);
  EXPECT_EQ(ReadLocalRecord(file_)->cut, 42);
}

// In a directory that all users may write, where others may put links.
TEST_F(LocalRecordTest, ALinkOfAnotherUserToADirectoryIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to be another user";
  const std::filesystem::path elsewhere = directory_ / "elsewhere";
  std::filesystem::create_directory(elsewhere);
  ASSERT_EQ(WriteLocalRecord(file_, Example()), absl::OkStatus());
  std::filesystem::rename(RecordFile(), elsewhere / "client.json");
  std::filesystem::remove(RecordDirectory(file_));
  std::filesystem::create_directory_symlink(elsewhere, RecordDirectory(file_));
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(lchown(RecordDirectory(file_).c_str(), kNobody, kNobody), 0);
  LocalRecord record = Example();
  record.cut = 42;
  EXPECT_FALSE(WriteLocalRecord(file_, record).ok());
  RemoveLocalRecord(file_);
  EXPECT_FALSE(ReadLocalRecord(file_).ok()) << "nor is it believed";
  // The user's own link may lead anywhere.
  ASSERT_EQ(lchown(RecordDirectory(file_).c_str(), 0, 0), 0);
  EXPECT_EQ(ReadLocalRecord(file_)->cut, 41) << "it is as it was";
  EXPECT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  EXPECT_EQ(ReadLocalRecord(file_)->cut, 42);
}

TEST_F(LocalRecordTest, ARecordThatIsALinkIsNotRead) {
  ASSERT_EQ(WriteLocalRecord(file_, Example()), absl::OkStatus());
  std::filesystem::rename(RecordFile(), directory_ / "elsewhere.json");
  std::filesystem::create_symlink(directory_ / "elsewhere.json", RecordFile());
  EXPECT_FALSE(ReadLocalRecord(file_).ok());
}

TEST_F(LocalRecordTest, AnUpdateOfAnotherSizeLeavesNothingOfTheOld) {
  LocalRecord record = Example();
  record.detail.assign(2000, 'x');
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  record.detail = "short";
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  EXPECT_EQ(ReadLocalRecord(file_)->detail, "short");
  EXPECT_LE(StatFile(RecordFile())->size_bytes, 1024);
}

TEST_F(LocalRecordTest, AnUpdateBehindTheUsersBackMakesNoFile) {
  LocalRecord record = Example();
  ASSERT_FALSE(UpdateLocalRecord(file_, record, record.since).value());
  EXPECT_FALSE(std::filesystem::exists(RecordDirectory(file_)));
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  record.detail.assign(3000, 'y');
  ASSERT_TRUE(UpdateLocalRecord(file_, record, record.since).value());
  EXPECT_EQ(ReadLocalRecord(file_)->detail, record.detail);
  record.detail = "";
  ASSERT_TRUE(UpdateLocalRecord(file_, record, record.since).value());
  EXPECT_EQ(ReadLocalRecord(file_)->detail, "");
}

TEST_F(LocalRecordTest, AnUpdateLeavesWhatAnotherHasWrittenSince) {
  LocalRecord record = Example();
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  LocalRecord others = record;
  others.since += absl::Nanoseconds(1);
  others.cut = 77;
  ASSERT_EQ(WriteLocalRecord(file_, others), absl::OkStatus());
  record.cut = 78;
  EXPECT_FALSE(UpdateLocalRecord(file_, record, record.since).value());
  EXPECT_EQ(ReadLocalRecord(file_)->cut, 77);
  EXPECT_TRUE(UpdateLocalRecord(file_, record, others.since).value());
  EXPECT_EQ(ReadLocalRecord(file_)->cut, 78);
}

TEST_F(LocalRecordTest, RoundTripsEveryField) {
  const LocalRecord record = Example();
  ASSERT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
  const auto read = ReadLocalRecord(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state, record.state);
  EXPECT_EQ(read->file_id, record.file_id);
  EXPECT_EQ(read->server, record.server);
  EXPECT_EQ(read->name, record.name);
  EXPECT_EQ(read->renamed_from, record.renamed_from);
  EXPECT_EQ(read->cut, record.cut);
  EXPECT_EQ(read->version, record.version);
  EXPECT_EQ(read->stat, record.stat);
  EXPECT_EQ(read->group, record.group);
  EXPECT_EQ(read->pending_session_id, record.pending_session_id);
  EXPECT_EQ(read->pending_seq, record.pending_seq);
  EXPECT_EQ(read->dirty_map_id, record.dirty_map_id);
  EXPECT_EQ(read->detail, record.detail);
  EXPECT_EQ(read->since, record.since);
}

TEST_F(LocalRecordTest, DefaultRecordRoundTrips) {
  ASSERT_EQ(WriteLocalRecord(file_, LocalRecord()), absl::OkStatus());
  const auto read = ReadLocalRecord(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pending_seq, 0u);
  EXPECT_EQ(read->since, absl::InfinitePast());
}

TEST_F(LocalRecordTest, NoRecordIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadLocalRecord(file_).status()));
}

TEST_F(LocalRecordTest, OnlyTheOwnerMayRead) {
  ASSERT_EQ(WriteLocalRecord(file_, Example()), absl::OkStatus());
  struct stat info;
  ASSERT_EQ(stat(RecordFile().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(RecordDirectory(file_).c_str(), &info), 0);
  // Others may ask for a file by its name.
  EXPECT_EQ(info.st_mode & 0766, 0700u);
}

TEST_F(LocalRecordTest, RewritingLeavesOneFile) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(WriteLocalRecord(file_, Example()), absl::OkStatus());
  const std::filesystem::directory_iterator entries(RecordDirectory(file_));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(LocalRecordTest, DamagedRecordIsDataLossThatSaysWhatToDo) {
  ASSERT_EQ(WriteLocalRecord(file_, Example()), absl::OkStatus());
  std::filesystem::resize_file(RecordFile(), 40);
  const absl::Status status = ReadLocalRecord(file_).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("client.json"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Removing it is safe"));
}

TEST_F(LocalRecordTest, WrongValuesAreNamed) {
  const std::string good = RecordToJson(Example()).value();
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return std::string(RecordFromJson(text).status().message());
  };
  EXPECT_THAT(with("\"cut\": 41", "\"cut\": \"x\""), HasSubstr("\"cut\": not a whole number"));
  EXPECT_THAT(with("\"behind\"", "\"lost\""), HasSubstr("unknown state 'lost'"));
  EXPECT_THAT(with("\"format\": 1", "\"format\": 2"), HasSubstr("later release"));
  EXPECT_THAT(with("\"inode\"", "\"node\""), HasSubstr("\"stat\": \"inode\": missing"));
}

TEST_F(LocalRecordTest, NameThatJsonCannotKeepIsRefused) {
  LocalRecord record = Example();
  record.name = "\xff.h5";
  EXPECT_TRUE(absl::IsInvalidArgument(WriteLocalRecord(file_, record)));
  record = Example();
  record.detail = "bytes \xff of an error message";
  EXPECT_EQ(WriteLocalRecord(file_, record), absl::OkStatus());
}

TEST_F(LocalRecordTest, StatOfPathAndDescriptorAgree) {
  std::ofstream(file_) << "12345";
  const auto by_path = StatFile(file_);
  ASSERT_TRUE(by_path.ok()) << by_path.status();
  EXPECT_EQ(by_path->size_bytes, 5);
  const int fd = open(file_.c_str(), O_RDONLY);
  EXPECT_EQ(StatDescriptor(fd).value(), *by_path);
  close(fd);
  EXPECT_TRUE(absl::IsNotFound(StatFile(directory_ / "none").status()));
}

// A file with a record, as a clean close leaves it.
void MakeFileWithRecord(const std::filesystem::path& file, LocalRecord record) {
  std::ofstream(file) << "content of " << file;
  record.stat = *StatFile(file);
  ASSERT_EQ(WriteLocalRecord(file, record), absl::OkStatus());
}

TEST_F(LocalRecordTest, TheRecordOfARenamedFileIsFoundUnderItsOldName) {
  MakeFileWithRecord(file_, Example());
  MakeFileWithRecord(directory_ / "other.h5", Example());
  const std::filesystem::path renamed = directory_ / "renamed.h5";
  std::filesystem::rename(file_, renamed);
  const auto former = FindFormerRecord(renamed, "node7", *StatFile(renamed));
  ASSERT_EQ(former.status(), absl::OkStatus());
  EXPECT_EQ(former->place.local_file, file_);
  EXPECT_EQ(former->record.cut, 41);
  RemoveLocalRecord(former->place);
  EXPECT_FALSE(std::filesystem::exists(RecordDirectory(file_)));
}

TEST_F(LocalRecordTest, ACopyOrAHardLinkWasNotRenamed) {
  MakeFileWithRecord(file_, Example());
  const std::filesystem::path link = directory_ / "link.h5";
  std::filesystem::create_hard_link(file_, link);
  EXPECT_TRUE(absl::IsNotFound(FindFormerRecord(link, "node7", *StatFile(link)).status()));
  const std::filesystem::path copy = directory_ / "copy.h5";
  std::filesystem::copy_file(file_, copy);
  std::filesystem::remove(file_);
  EXPECT_TRUE(absl::IsNotFound(FindFormerRecord(copy, "node7", *StatFile(copy)).status()));
}

}  // namespace
}  // namespace h5mirror
