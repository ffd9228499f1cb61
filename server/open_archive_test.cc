// The archive of a configuration, and what the root remembers of it.
#include "server/open_archive.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/testing/fault_env.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

constexpr char kOwnerFile[] = ".h5mirror/archive";

class OpenArchiveTest : public testing::Test {
 protected:
  OpenArchiveTest() {
    EXPECT_TRUE((*env_.OpenTree("/"))->MakeDirectory(".h5mirror", 0700).ok());
    config_.root = "/";
    config_.archive = "dir:" + directory_.path().string();
  }
  // Makes the archive the root's.
  absl::Status Claim() {
    const auto archive = OpenArchive(config_, env_);
    if (!archive.ok()) return archive.status();
    const archive::RootArchive::BackgroundWork claims;
    return (*archive)->Head("root", absl::Seconds(10)).status();
  }

  FaultEnv env_;  // of a root that is not of this machine, as in CephFS
  TestDirectory directory_;
  Config config_;
};

TEST_F(OpenArchiveTest, ADirectoryIsOfThisMachineWhereverTheRootIs) {
  EXPECT_TRUE(Claim().ok());
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "root"));
  EXPECT_TRUE(*(*env_.OpenTree("/"))->Exists(kOwnerFile));
}

TEST_F(OpenArchiveTest, TheRootRemembersItsArchive) {
  ASSERT_TRUE(Claim().ok());
  EXPECT_TRUE(Claim().ok());
  std::filesystem::remove(directory_.path() / "root");
  EXPECT_TRUE(absl::IsFailedPrecondition(Claim()));
  ASSERT_TRUE((*env_.OpenTree("/"))->Remove(kOwnerFile).ok());
  EXPECT_TRUE(Claim().ok()) << "it begins anew";
}

TEST_F(OpenArchiveTest, WithoutOneThereIsNone) {
  config_.archive.clear();
  const auto none = OpenArchive(config_, env_);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace h5mirror::server
