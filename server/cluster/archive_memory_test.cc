#include "server/cluster/archive_memory.h"

#include <string>

#include "cluster/testing/memory_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/fault_object_store.h"

namespace h5mirror::server {
namespace {

absl::Status Check(archive::ClusterMark& mark, store::ObjectStore& archive) {
  archive::ClusterMark::Verdict verdict;
  return mark.Check(archive, archive::ClusterMark::Asker::kServer, absl::Seconds(1), nullptr,
                    &verdict);
}

using ::testing::HasSubstr;

Config ConfigOf(const std::string& root) {
  Config config;
  config.root = root;
  config.cluster = ClusterSettings();
  config.cluster->directory = root + "-registry";
  return config;
}

TEST(ArchiveMemoryTest, AllServersOfAClusterRememberOneId) {
  store::FaultObjectStore archive;
  cluster::MemoryRegistry registry;
  const Config config = ConfigOf("/srv/lab");
  for (int server = 0; server < 2; ++server) {
    archive::ClusterMark mark(ClusterMarkOf(config, registry));
    EXPECT_TRUE(Check(mark, archive).ok());
  }
  const std::string text = registry.ReadAll()->at("p/archive");
  EXPECT_THAT(text, HasSubstr(R"("claimed":true)"));
  EXPECT_THAT(text, HasSubstr(R"("place":"mem://archive")"));
}

TEST(ArchiveMemoryTest, AnotherClusterIsNamed) {
  store::FaultObjectStore archive;
  cluster::MemoryRegistry first, second;
  archive::ClusterMark lab(ClusterMarkOf(ConfigOf("/srv/lab"), first));
  archive::ClusterMark other(ClusterMarkOf(ConfigOf("/srv/other"), second));
  const auto check = [&](archive::ClusterMark& mark) { return Check(mark, archive); };
  ASSERT_TRUE(check(lab).ok());
  const absl::Status refused = check(other);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/srv/lab with the registry"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/srv/other with the registry"));
}

TEST(ArchiveMemoryTest, ATextOfAnotherFormIsSaid) {
  store::FaultObjectStore archive;
  cluster::MemoryRegistry registry;
  ASSERT_TRUE(registry.CompareAndSet({}, {{"p/archive", "{}"}}).ok());
  archive::ClusterMark mark(ClusterMarkOf(ConfigOf("/srv/lab"), registry));
  const absl::Status checked = Check(mark, archive);
  EXPECT_TRUE(absl::IsDataLoss(checked)) << checked;
  EXPECT_THAT(std::string(checked.message()), HasSubstr("p/archive"));
}

}  // namespace
}  // namespace h5mirror::server
