#include "rpc/configured_servers.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::ElementsAre;

class ConfiguredServersTest : public testing::Test {
 protected:
  ConfiguredServersTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "servers-XXXXXX").string();
    directory_ = mkdtemp(path.data());
    unsetenv("H5MIRROR_SERVER");
    unsetenv("HDF5_DRIVER_CONFIG");
  }
  ~ConfiguredServersTest() override {
    std::filesystem::remove_all(directory_);
    unsetenv("H5MIRROR_SERVER");
    unsetenv("HDF5_DRIVER_CONFIG");
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  std::vector<std::string> Servers() const { return ConfiguredServersIn({directory_}).value(); }

  std::filesystem::path directory_;
};

TEST_F(ConfiguredServersTest, TheDefaultCountsWhereNothingIsConfigured) {
  EXPECT_THAT(Servers(), ElementsAre("127.0.0.1:7447"));
}

TEST_F(ConfiguredServersTest, AllPlacesCount) {
  setenv("H5MIRROR_SERVER", "node7", 1);
  setenv("HDF5_DRIVER_CONFIG", "root=/data; server = node8,unix:/run/h.sock ;exclude=*.tmp", 1);
  Write("client.toml", "server = [\"Node7:7447\", \"node9\"]\n");
  EXPECT_THAT(Servers(), ElementsAre("node7", "node8", "unix:/run/h.sock", "node9"));
}

TEST_F(ConfiguredServersTest, TheDriversFileCounts) {
  Write("driver.toml", "server = \"node8\"\nroot = \"/data\"\n");
  setenv("HDF5_DRIVER_CONFIG", ("@" + (directory_ / "driver.toml").string()).c_str(), 1);
  EXPECT_THAT(Servers(), ElementsAre("node8"));
}

TEST_F(ConfiguredServersTest, EmbeddedIsNoServer) {
  setenv("HDF5_DRIVER_CONFIG", "server=embedded", 1);
  EXPECT_THAT(Servers(), ElementsAre("127.0.0.1:7447"));
}

TEST_F(ConfiguredServersTest, ListsOfOneClusterAreUnited) {
  setenv("H5MIRROR_SERVER", "node7|node8", 1);
  Write("client.toml", "server = \"node9|Node7:7447\"\n");
  EXPECT_THAT(Servers(), ElementsAre("node7|node8|node9"));
}

TEST_F(ConfiguredServersTest, MirrorsDoNotBecomeOneCluster) {
  setenv("H5MIRROR_SERVER", "a,c", 1);
  Write("client.toml", "server = \"c|b|a\"\n");
  EXPECT_THAT(Servers(), ElementsAre("a|b", "c"));
}

TEST(FindConfiguredTest, ARecordsListIsThatOfTheClusterAsConfigured) {
  const std::vector<std::string> configured = {"node7|node9", "other"};
  EXPECT_EQ(FindConfigured(configured, "node7|node8"), "node7|node9") << "the site has changed";
  EXPECT_EQ(FindConfigured(configured, "NODE9:7447"), "node7|node9");
  EXPECT_EQ(FindConfigured(configured, "evil|other"), "other") << "no other one is asked";
  EXPECT_EQ(FindConfigured(configured, "evil"), std::nullopt);
}

// A login at one mirror would go to the other one.
TEST(FindConfiguredTest, ARecordThatMakesTwoMirrorsOneIsForeign) {
  EXPECT_EQ(FindConfigured(std::vector<std::string>{"a", "c"}, "c|a"), std::nullopt);
  EXPECT_EQ(FindConfigured(std::vector<std::string>{"a", "c"}, "c"), "c");
}

}  // namespace
}  // namespace h5mirror::rpc
