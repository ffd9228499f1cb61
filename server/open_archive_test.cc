// The archive of a configuration, and what the root remembers of it.
#include "server/open_archive.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
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

TEST_F(OpenArchiveTest, ACellHasItsPartWhichTheCellRemembers) {
  const auto of_server = OpenClusterArchive(config_);
  ASSERT_TRUE(of_server.ok()) << of_server.status();
  const auto claim = [&](const std::string& cell) {
    const auto part = OpenCellArchive(**of_server, cell, env_, "/");
    EXPECT_TRUE(part.ok()) << part.status();
    (*part)->SetGuard([] { return absl::OkStatus(); });
    const archive::RootArchive::BackgroundWork claims;
    return (*part)->Head("root", absl::Seconds(10)).status();
  };
  EXPECT_TRUE(claim("lab a").ok());
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "cells/lab_20a/root"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "root"));
  EXPECT_TRUE(claim("lab a").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(claim("other"))) << "the cell has another part";
}

// Its files are served, and what is wrong with its archive is told.
TEST_F(OpenArchiveTest, ACellWhoseOwnerIsUnreadableHasAPartThatFails) {
  const auto of_server = OpenClusterArchive(config_);
  ASSERT_TRUE(of_server.ok()) << of_server.status();
  ASSERT_TRUE(KeepArchive(env_, "/", "junk").ok());
  const auto part = OpenCellArchive(**of_server, "lab", env_, "/");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(absl::IsFailedPrecondition((*part)->Head("root", absl::Seconds(10)).status()));
  EXPECT_NE((*of_server)->Standing().error.find("32 hex digits"), std::string::npos);
}

TEST(CellPartsTest, EachCellHasAPartThatTellsItsName) {
  const std::string cells[] = {"",      "lab", "lab-2",        "a/b", "a_b",
                               "a.new", "...", "Mess\xc3\xbc", " _2f"};
  std::set<std::string> parts;
  for (const std::string& cell : cells) {
    const std::string part = PartOfCell(cell);
    EXPECT_TRUE(store::CheckObjectName(part).ok()) << part;
    EXPECT_EQ(part.find('/', kCellParts.size()), part.npos) << part;
    EXPECT_EQ(CellOfObject(part + "/files/1"), cell);
    EXPECT_TRUE(parts.insert(part).second) << part;
  }
  EXPECT_EQ(PartOfCell("a/b"), "cells/a_2fb");
  for (const char* other : {"root", "files/a/b", "cells/lab", "cells/a_2Fb/x", "cells/a_/x",
                            "cells//x", "cells/a b/x", "cells/a_6c/x"}) {
    EXPECT_EQ(CellOfObject(other), std::nullopt) << other;
  }
}

// A restore makes a directory of each.
TEST(CellPartsTest, NoPartLeadsOutOfTheRoot) {
  for (const char* cell : {"..", ".", "../../etc", "/etc", "a/../../b", "a//b", "a/", "a/.",
                           ".h5mirror", "a/.h5mirror"}) {
    EXPECT_EQ(CellOfObject(PartOfCell(cell) + "/root"), std::nullopt) << cell;
  }
  EXPECT_EQ(CellOfObject("cells/_2e_2e_2f_2e_2e_2fetc/root"), std::nullopt);
  EXPECT_EQ(CellOfObject("cells/a_00b/root"), std::nullopt);
}

TEST(CellPartsTest, ANameThatIsTooLongIsRefused) {
  EXPECT_TRUE(CheckCellNames({"lab", std::string(100, 'x')}).ok());
  const absl::Status refused = CheckCellNames({"lab", std::string(70, '.')});
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

}  // namespace
}  // namespace h5mirror::server
