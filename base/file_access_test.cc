#include "base/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/env.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kUser = NamedAccess::Kind::kUser;
constexpr auto kGroup = NamedAccess::Kind::kGroup;

TEST(FileAccessTest, TheBytesAreThoseOfTheKernelsHeader) {
  // As `setfacl -m u:1000:r` writes them on a file of mode 0600.
  const std::string expected(
      "\x02\0\0\0"
      "\x01\0\x06\0\xff\xff\xff\xff"
      "\x02\0\x04\0\xe8\x03\0\0"
      "\x04\0\0\0\xff\xff\xff\xff"
      "\x10\0\x04\0\xff\xff\xff\xff"
      "\x20\0\0\0\xff\xff\xff\xff",
      4 + 5 * 8);
  EXPECT_EQ(EncodeAccessList({0600, {{kUser, 1000, 4}}}), expected);
}

TEST(FileAccessTest, AListComesBackAsItWas) {
  const FileAccess access{0640, {{kUser, 7, 4}, {kUser, 9, 6}, {kGroup, 5, 0}}};
  const auto decoded = DecodeAccessList(EncodeAccessList(access));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, access);
}

TEST(FileAccessTest, AMaskCountsForAllButOwnerAndOthers) {
  std::string bytes = EncodeAccessList({0664, {{kUser, 7, 6}}});
  bytes[bytes.size() - 8 - 6] = 4;  // the mask's bits
  const auto decoded = DecodeAccessList(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->mode_bits, 0644u);
  EXPECT_THAT(decoded->named, ElementsAre(NamedAccess{kUser, 7, 4}));
}

TEST(FileAccessTest, OtherBytesAreRefused) {
  const std::string good = EncodeAccessList({0600, {}});
  for (const std::string& bad :
       {std::string(), good.substr(0, 3), good.substr(0, 9), "\x03" + good.substr(1),
        good.substr(0, 4) + "\x03" + good.substr(5)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeAccessList(bad).status())) << bad.size();
  }
}

class FileAccessOnDiskTest : public ::testing::Test {
 protected:
  FileAccessOnDiskTest() {
    std::filesystem::create_directories(directory_);
    auto tree = Env::Posix().OpenTree(directory_);
    file_ = *(*tree)->Open("x", OpenKind::kCreateFresh, 0600);
  }
  ~FileAccessOnDiskTest() override { std::filesystem::remove_all(directory_); }

  uint32_t ModeShown() const {
    struct stat st {};
    EXPECT_EQ(stat((directory_ / "x").c_str(), &st), 0);
    return st.st_mode & 0777;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) / StrCat("file_access_test.", getpid());
  std::unique_ptr<EnvFile> file_;
};

TEST_F(FileAccessOnDiskTest, AReaderIsAddedAndTheGroupGetsNothing) {
  const FileAccess access{0600, {{kUser, 12345, 4}}};
  const absl::Status set = file_->SetAccess(access, -1);
  if (absl::IsUnimplemented(set)) GTEST_SKIP() << set;
  ASSERT_TRUE(set.ok()) << set;
  EXPECT_EQ(*file_->Access(), access);
  EXPECT_EQ(ModeShown(), 0640u) << "the mask";
}

TEST_F(FileAccessOnDiskTest, TheMaskIsNoRightOfTheGroup) {
  const int fd = open((directory_ / "x").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ModeWithoutMask(fd, 0640), 0640u) << "without a list";
  EXPECT_EQ(ModeWithoutMask(-1, 0640), 0640u) << "without a file";
  const absl::Status set = file_->SetAccess({0600, {{kUser, 12345, 4}}}, -1);
  const uint32_t mode = ModeWithoutMask(fd, ModeShown());
  close(fd);
  if (absl::IsUnimplemented(set)) GTEST_SKIP() << set;
  EXPECT_EQ(mode, 0600u);
}

TEST_F(FileAccessOnDiskTest, AListGoesWithTheLastEntry) {
  const absl::Status set = file_->SetAccess({0600, {{kUser, 12345, 4}}}, -1);
  if (absl::IsUnimplemented(set)) GTEST_SKIP() << set;
  ASSERT_TRUE(file_->SetAccess({0600, {}}, -1).ok());
  EXPECT_EQ(*file_->Access(), (FileAccess{0600, {}}));
  EXPECT_EQ(ModeShown(), 0600u);
  EXPECT_LT(getxattr((directory_ / "x").c_str(), "system.posix_acl_access", nullptr, 0), 0);
}

TEST_F(FileAccessOnDiskTest, AUserThatCannotBeIsRefused) {
  const absl::Status set = file_->SetAccess({0600, {{kUser, UINT32_MAX, 4}}}, -1);
  EXPECT_TRUE(absl::IsUnimplemented(set)) << set;
  EXPECT_THAT(std::string(set.message()), HasSubstr("set the access list of"));
  EXPECT_EQ(ModeShown(), 0600u) << "nothing was given";
}

}  // namespace
}  // namespace h5mirror
