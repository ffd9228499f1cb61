#include "cli/verbs/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class OwnDirectoryTest : public ::testing::Test {
 protected:
  OwnDirectoryTest() {
    std::string name = (fs::temp_directory_path() / "h5m_own_XXXXXX").native();
    around_ = mkdtemp(name.data());
    path_ = around_ / "doctor";
  }
  ~OwnDirectoryTest() override { fs::remove_all(around_); }

  static mode_t ModeOf(const fs::path& path) {
    struct stat found {};
    return stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
  }

  static void GiveAway(const fs::path& path) {
    if (geteuid() != 0) GTEST_SKIP() << "takes root, to be another user";
    ASSERT_EQ(lchown(path.c_str(), kNobody, kNobody), 0);
  }

  static void ExpectRefused(const absl::Status& status, const std::string& why) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  fs::path around_, path_;
};

TEST_F(OwnDirectoryTest, ItIsMadeAndThenUsed) {
  EXPECT_EQ(MakeOwnDirectory(path_), absl::OkStatus());
  EXPECT_EQ(ModeOf(path_), 0700u);
  EXPECT_EQ(MakeOwnDirectory(path_), absl::OkStatus());
}

TEST_F(OwnDirectoryTest, OneThatTheGroupMayWriteIsTakenFromIt) {
  fs::create_directory(path_);
  ASSERT_EQ(chmod(path_.c_str(), 0775), 0);
  EXPECT_EQ(MakeOwnDirectory(path_), absl::OkStatus());
  EXPECT_EQ(ModeOf(path_), 0755u);
}

TEST_F(OwnDirectoryTest, OnesOwnLinkIsFollowed) {
  fs::create_directory(around_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", path_);
  EXPECT_EQ(MakeOwnDirectory(path_), absl::OkStatus());
}

TEST_F(OwnDirectoryTest, APlainFileIsNone) {
  std::ofstream(path_) << "x";
  ExpectRefused(MakeOwnDirectory(path_), "is no directory");
}

TEST_F(OwnDirectoryTest, ADirectoryOfAnotherUserIsRefused) {
  fs::create_directory(path_);
  GiveAway(path_);
  ExpectRefused(MakeOwnDirectory(path_), "is a directory of another user (65534)");
  ExpectRefused(CheckKeepsFiles(path_), "is a directory of another user (65534)");
}

TEST_F(OwnDirectoryTest, ALinkOfAnotherUserIsRefused) {
  fs::create_directory(around_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", path_);
  GiveAway(path_);
  ExpectRefused(MakeOwnDirectory(path_), "is a link that another user has made");
  ExpectRefused(CheckKeepsFiles(path_), "is a link that another user has made");
}

TEST_F(OwnDirectoryTest, OneForAllMustBeSticky) {
  fs::create_directory(path_);
  for (const mode_t mode : {0700, 0755, 0775, 01777}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(CheckKeepsFiles(path_), absl::OkStatus()) << std::oct << mode;
  }
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  ExpectRefused(CheckKeepsFiles(path_), "not sticky");
}

TEST_F(OwnDirectoryTest, AFileOfOnesOwnIsTaken) {
  EXPECT_EQ(CheckOwnFile(path_), absl::OkStatus()) << "none is there";
  std::ofstream(path_) << "x";
  EXPECT_EQ(CheckOwnFile(path_), absl::OkStatus());
  GiveAway(path_);
  ExpectRefused(CheckOwnFile(path_), "is no plain file of yours");
}

TEST_F(OwnDirectoryTest, AFileThatLeadsElsewhereIsRefused) {
  std::ofstream(around_ / "precious") << "x";
  fs::create_symlink("precious", path_);
  ExpectRefused(CheckOwnFile(path_), "is no plain file of yours");
  fs::remove(path_);
  fs::create_hard_link(around_ / "precious", path_);
  ExpectRefused(CheckOwnFile(path_), "one with another name");
}

}  // namespace
}  // namespace h5mirror::tools
