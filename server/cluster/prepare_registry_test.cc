#include "server/cluster/prepare_registry.h"

#include <filesystem>
#include <string>

#include "cluster/claims.h"
#include "cluster/records.h"
#include "cluster/testing/memory_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ClusterSettings SettingsOf(const std::string& node) {
  ClusterSettings settings;
  settings.directory = "/srv/registry";
  settings.node = node;
  settings.source = "h5mirrord.toml:3";
  return settings;
}

std::string ErrorOf(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

void SetServer(cluster::Registry& registry, const std::string& id, cluster::ServerState state) {
  cluster::ServerRecord record;
  record.epoch = 1;
  record.state = state;
  const cluster::NewText text{cluster::ServerName(id), cluster::Encode(record)};
  ASSERT_TRUE(registry.CompareAndSet({}, {&text, 1}).ok());
}

TEST(PrepareRegistryTest, AServerOfAnotherRootChangesNothing) {
  cluster::MemoryRegistry registry;
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("a"), "cephfs:/lab").ok());
  ASSERT_TRUE(KeepRoot(registry, SettingsOf("a"), "cephfs:/lab").ok());
  const cluster::RegistryView before = *registry.ReadAll();
  EXPECT_EQ(before.at("p/root"), R"({"root":"cephfs:/lab"})");
  ClusterSettings other = SettingsOf("b");
  other.cells = {"", "x"};
  other.lease = absl::Seconds(9);
  for (const absl::Status& status : {PrepareRegistry(registry, other, "cephfs:/trial?id=b"),
                                     KeepRoot(registry, other, "cephfs:/trial?id=b")}) {
    EXPECT_THAT(ErrorOf(status),
                AllOf(HasSubstr("h5mirrord.toml:3"), HasSubstr("file:/srv/registry"),
                      HasSubstr("root = \"cephfs:/lab\""),
                      HasSubstr("root = \"cephfs:/trial\" here"), HasSubstr("another registry")));
  }
  EXPECT_EQ(*registry.ReadAll(), before);
  EXPECT_TRUE(PrepareRegistry(registry, SettingsOf("b"), "cephfs:/lab/?id=b").ok());
}

TEST(PrepareRegistryTest, ARootThatServedNothingIsNotKept) {
  cluster::MemoryRegistry registry;
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("a"), "cephfs:/lba").ok());
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("a"), "cephfs:/lab").ok());
  EXPECT_TRUE(KeepRoot(registry, SettingsOf("a"), "cephfs:/lab").ok());
  EXPECT_TRUE(KeepRoot(registry, SettingsOf("a"), "cephfs:/lab").ok()) << "again";
}

TEST(PrepareRegistryTest, ARootThatIsMountedLaterIsCheckedLater) {
  const TestDirectory directory;
  const std::filesystem::path disk = directory.path() / "disk";
  std::filesystem::create_directory_symlink(disk, directory.path() / "link");
  cluster::MemoryRegistry registry;
  std::filesystem::create_directories(disk);
  ASSERT_TRUE(KeepRoot(registry, SettingsOf("a"), directory.path() / "link").ok());
  std::filesystem::remove(disk);
  EXPECT_TRUE(PrepareRegistry(registry, SettingsOf("a"), directory.path() / "link").ok());
  std::filesystem::create_directories(disk);
  EXPECT_TRUE(KeepRoot(registry, SettingsOf("a"), directory.path() / "link").ok());
}

TEST(PrepareRegistryTest, TheKeyOfOneServerIsNoPartOfARoot) {
  EXPECT_EQ(PlaceOfRoot("cephfs:/lab//x/?id=node7&conf=/etc/ceph/site.conf"), "cephfs:/lab/x");
  EXPECT_EQ(PlaceOfRoot("cephfs:/lab?fs=two&id=node8"), "cephfs:/lab?fs=two");
  EXPECT_TRUE(IsOneRoot("cephfs:/lab?fs=two", "cephfs:/lab"));
  EXPECT_FALSE(IsOneRoot("cephfs:/lab?fs=two", "cephfs:/lab?fs=one"));
  EXPECT_FALSE(IsOneRoot("cephfs:/lab", "cephfs:/labs"));
  EXPECT_FALSE(IsOneRoot("cephfs:/lab", "/lab"));
}

TEST(PrepareRegistryTest, ALinkToARootIsThatRoot) {
  const TestDirectory directory;
  const std::filesystem::path root = directory.path() / "root";
  std::filesystem::create_directories(root);
  EXPECT_EQ(PlaceOfRoot("data"), PlaceOfRoot(std::filesystem::current_path() / "data"));
  std::filesystem::create_directory_symlink(root, directory.path() / "link");
  EXPECT_EQ(PlaceOfRoot(directory.path() / "link"), PlaceOfRoot(root));
  EXPECT_EQ(PlaceOfRoot(root.string() + "/"), PlaceOfRoot(root));
  EXPECT_EQ(PlaceOfRoot("/"), "/");
}

TEST(PrepareRegistryTest, OtherTimesAreToldAsInTheConfiguration) {
  cluster::MemoryRegistry registry;
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("a"), "/srv/lab").ok());
  SetServer(registry, "a", cluster::ServerState::kUp);
  SetServer(registry, "c", cluster::ServerState::kGone);
  ClusterSettings other = SettingsOf("b");
  other.lease = absl::Seconds(9);
  EXPECT_THAT(
      ErrorOf(PrepareRegistry(registry, other, "/srv/lab")),
      AllOf(HasSubstr("lease = \"9s\" here"), HasSubstr("lease = \"4s\" in the registry"),
            HasSubstr("a has not stopped"), HasSubstr("the former times"), Not(HasSubstr("{"))));
  SetServer(registry, "a", cluster::ServerState::kFenced);
  EXPECT_TRUE(PrepareRegistry(registry, other, "/srv/lab").ok());
}

}  // namespace
}  // namespace h5mirror::server
