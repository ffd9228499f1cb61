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
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("a"), "/srv/lab").ok());
  const cluster::RegistryView before = *registry.ReadAll();
  ClusterSettings other = SettingsOf("b");
  other.cells = {"", "x"};
  other.lease = absl::Seconds(9);
  EXPECT_THAT(ErrorOf(PrepareRegistry(registry, other, "/srv/trial")),
              AllOf(HasSubstr("h5mirrord.toml:3"), HasSubstr("file:/srv/registry"),
                    HasSubstr("root = \"/srv/lab\""), HasSubstr("root = \"/srv/trial\" here")));
  EXPECT_EQ(*registry.ReadAll(), before);
  EXPECT_TRUE(PrepareRegistry(registry, SettingsOf("b"), "/srv/lab/").ok());
}

TEST(PrepareRegistryTest, ARegistryOfAnEarlierReleaseLearnsTheRoot) {
  cluster::MemoryRegistry registry;
  SetServer(registry, "a", cluster::ServerState::kUp);
  ASSERT_TRUE(cluster::CreateCell(registry, "").ok());
  const std::string times = R"({"beat_ms":1000,"lease_ms":4000})";
  ASSERT_TRUE(registry.CompareAndSet({}, {{"p/times", times}}).ok());
  ASSERT_TRUE(PrepareRegistry(registry, SettingsOf("b"), "/srv/lab").ok());
  EXPECT_EQ(registry.ReadAll()->at("p/root"), R"({"root":"/srv/lab"})");
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
