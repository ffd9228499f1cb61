#include "base/record_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

class RecordFilesTest : public ::testing::Test {
 protected:
  RecordFilesTest() {
    std::string name = (fs::temp_directory_path() / "h5m_files_XXXXXX").native();
    directory_ = mkdtemp(name.data());
  }
  ~RecordFilesTest() override { fs::remove_all(directory_); }

  fs::path MadeDirectory(const char* name) const {
    fs::create_directory(directory_ / name);
    return directory_ / name;
  }

  // The inode of the directory that is opened for a file in `directory`; 0: none is opened.
  static ino_t OpenedInode(const fs::path& directory) {
    const OwnedFd fd = OpenDirectoryOf(directory / "record.json");
    struct stat opened {};
    return fd.valid() && fstat(fd.get(), &opened) == 0 ? opened.st_ino : 0;
  }

  static ino_t InodeOf(const fs::path& path) {
    struct stat found {};
    return stat(path.c_str(), &found) == 0 ? found.st_ino : 1;
  }

  fs::path directory_;
};

TEST_F(RecordFilesTest, OwnLinksAreFollowed) {
  const fs::path target = MadeDirectory("target"), link = directory_ / "link";
  for (const fs::path& text :
       {target, fs::path("target"), fs::path("target/"), fs::path("./target/../target")}) {
    fs::create_symlink(text, link);
    EXPECT_EQ(OpenedInode(link), InodeOf(target)) << text;
    fs::remove(link);
  }
  fs::create_symlink("second", link);
  fs::create_symlink("target", directory_ / "second");
  EXPECT_EQ(OpenedInode(link), InodeOf(target));
}

TEST_F(RecordFilesTest, PathsWithoutADirectoryOfTheirOwn) {
  EXPECT_TRUE(OpenDirectoryOf("record.json").valid());
  EXPECT_TRUE(OpenDirectoryOf("/record.json").valid());
  EXPECT_TRUE(OpenDirectoryOf("./record.json").valid());
  EXPECT_EQ(OpenedInode(directory_ / "."), InodeOf(directory_));
}

TEST_F(RecordFilesTest, FailuresHaveTheirErrno) {
  EXPECT_FALSE(OpenDirectoryOf(directory_ / "none" / "x").valid());
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(ReplaceRecordFile(directory_ / "plain", "x"), absl::OkStatus());
  EXPECT_FALSE(OpenDirectoryOf(directory_ / "plain" / "x").valid());
  EXPECT_EQ(errno, ENOTDIR);
  fs::create_symlink("round", directory_ / "round");
  EXPECT_FALSE(OpenDirectoryOf(directory_ / "round" / "x").valid());
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(RecordFilesTest, LinksOfAnotherUserAreNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to be another user";
  MadeDirectory("target");
  const fs::path others = directory_ / "others", own = directory_ / "own";
  fs::create_symlink("target", others);
  ASSERT_EQ(lchown(others.c_str(), kNobody, kNobody), 0);
  fs::create_symlink("others", own);
  for (const fs::path& link : {others, own}) {
    EXPECT_FALSE(OpenDirectoryOf(link / "x").valid());
    EXPECT_EQ(errno, ELOOP) << link;
    EXPECT_FALSE(ReadRecordFile(link / "x", 100).ok());
  }
}

// A directory that others may write, without a sticky bit.
TEST_F(RecordFilesTest, ALinkThatIsExchangedMeanwhileIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to be another user";
  const fs::path own = directory_ / "own", others = directory_ / "others";
  fs::create_symlink(MadeDirectory("good"), own);
  fs::create_symlink(MadeDirectory("bad"), others);
  ASSERT_EQ(lchown(others.c_str(), kNobody, kNobody), 0);
  const ino_t bad = InodeOf(directory_ / "bad");
  std::atomic<bool> is_done = false;
  std::atomic<bool> can_exchange = true;
  std::thread neighbour([&] {
    while (!is_done && can_exchange) {
      can_exchange =
          renameat2(AT_FDCWD, own.c_str(), AT_FDCWD, others.c_str(), RENAME_EXCHANGE) == 0;
    }
  });
  bool was_bad = false;
  for (int i = 0; i < 20'000 && !was_bad; ++i) was_bad = OpenedInode(own) == bad;
  is_done = true;
  neighbour.join();
  EXPECT_FALSE(was_bad);
  if (!can_exchange) GTEST_SKIP() << "this filesystem exchanges no names";
}

}  // namespace
}  // namespace h5mirror
