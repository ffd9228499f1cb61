#include "client_vfd/plugin/config/real_path.h"

#include <filesystem>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

namespace fs = std::filesystem;

class RealPathTest : public testing::Test {
 protected:
  RealPathTest() {
    std::string name = (fs::temp_directory_path() / "h5m_real_path_XXXXXX").native();
    directory_ = fs::canonical(mkdtemp(name.data()));
    fs::create_directories(directory_ / "data" / "deep");
    fs::create_directory_symlink("data", directory_ / "link");
  }
  ~RealPathTest() override { fs::remove_all(directory_); }

  std::string Real(const std::string& path) {
    return RealPathOfMissing((directory_ / path).native());
  }
  std::string In(const std::string& path) { return (directory_ / path).native(); }

  fs::path directory_;
};

TEST_F(RealPathTest, WhatExistsIsResolvedAndTheRestTakenAsItIs) {
  EXPECT_EQ(Real("link/run.h5"), In("data/run.h5"));
  EXPECT_EQ(Real("link/a/b/run.h5"), In("data/a/b/run.h5"));
  EXPECT_EQ(Real("link/deep"), In("data/deep"));
  EXPECT_EQ(Real("link/a/../run.h5"), In("data/run.h5"));
  EXPECT_EQ(Real("./link/./run.h5"), In("data/run.h5"));
}

TEST_F(RealPathTest, PathsOfOtherMachinesAndRelativeOnesAreTaken) {
  EXPECT_EQ(RealPathOfMissing("/no-such-directory/x/run.h5"), "/no-such-directory/x/run.h5");
  EXPECT_EQ(RealPathOfMissing("no-such.h5"), (fs::current_path() / "no-such.h5").native());
}

TEST(CarryOverTest, TargetsLieToTheOtherFileAsTheyLieToTheFile) {
  EXPECT_EQ(CarryOver("/data/run/raw.h5", "/data/run.h5", "beam/run.h5"), "beam/run/raw.h5");
  EXPECT_EQ(CarryOver("/data/raw.h5", "/data/a/run.h5", "beam/a/run.h5"), "beam/raw.h5");
  EXPECT_EQ(CarryOver("/data/raw.h5", "/data/run.h5", "run.h5"), "raw.h5");
}

TEST(CarryOverTest, NothingLeadsOutOfTheRoot) {
  EXPECT_EQ(CarryOver("/raw.h5", "/data/run.h5", "run.h5"), "");
  EXPECT_EQ(CarryOver("/other/raw.h5", "/data/run.h5", "run.h5"), "");
}

}  // namespace
}  // namespace h5mirror::vfd
