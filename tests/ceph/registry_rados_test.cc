// The contract of a registry, and the fencing, on the Ceph that tests/ceph/run has started.
#include <stdlib.h>

#include <memory>
#include <string>

#include "base/hex.h"
#include "base/random.h"
#include "cluster/rados/rados_cluster.h"
#include "cluster/testing/registry_contract.h"
#include "gmock/gmock.h"

namespace h5mirror::cluster {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

absl::StatusOr<std::unique_ptr<RadosCluster>> OpenTestCluster(const std::string& object) {
  const char* const conf = getenv("H5M_TEST_CEPHFS_CONF");
  if (conf == nullptr) {
    return absl::FailedPreconditionError("H5M_TEST_CEPHFS_CONF is not set: use tests/ceph/run");
  }
  return OpenRadosCluster({conf, "", "data", object, ""});
}

// A registry with its connection.
class RadosClient final : public Registry {
 public:
  explicit RadosClient(std::unique_ptr<RadosCluster> cluster) : cluster_(std::move(cluster)) {}
  absl::StatusOr<RegistryView> ReadAll() override { return cluster_->registry().ReadAll(); }
  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override {
    return cluster_->registry().Read(names);
  }
  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override {
    return cluster_->registry().CompareAndSet(expected, changes);
  }

 private:
  const std::unique_ptr<RadosCluster> cluster_;
};

class RadosPlaceOfTest final : public RegistryPlace {
 public:
  std::unique_ptr<Registry> Open() override {
    auto opened = OpenTestCluster(object_);
    if (!opened.ok()) ADD_FAILURE() << opened.status();
    return opened.ok() ? std::make_unique<RadosClient>(*std::move(opened)) : nullptr;
  }

 private:
  const std::string object_ = HexOf(RandomBytes16());
};

INSTANTIATE_TEST_SUITE_P(Rados, RegistryContractTest,
                         ::testing::Values(RegistryCase{
                             "rados", [] { return std::make_unique<RadosPlaceOfTest>(); }}),
                         RegistryCaseName);

TEST(RadosRegistryTest, MoreNamesThanOneAnswerHoldsAreReadAsOneState) {
  const auto cluster = OpenTestCluster(HexOf(RandomBytes16()));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Registry& registry = (*cluster)->registry();
  for (int i = 0; i < 2500; ++i) {
    ASSERT_TRUE(registry.CompareAndSet({}, {{"c/" + std::to_string(i), "text"}}).ok());
  }
  const auto all = registry.ReadAll();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 2500u);
}

TEST(CephFencerTest, AFencedClientChangesNothingMore) {
  const std::string object = HexOf(RandomBytes16());
  const auto fenced = OpenTestCluster(object);
  const auto other = OpenTestCluster(object);
  ASSERT_TRUE(fenced.ok()) << fenced.status();
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*fenced)->registry().CompareAndSet({}, {{"n", "1"}}).ok());
  const auto addresses = (*fenced)->Addresses();
  ASSERT_THAT(addresses, Not(IsEmpty()));
  // No session of that name exists, as after a session that has ended by itself.
  const FenceTarget target = {"a", 1, HexOf(RandomBytes16()), addresses};
  for (int times = 0; times < 2; ++times) {
    const absl::Status done = (*other)->fencer().Fence(target);
    ASSERT_TRUE(done.ok()) << done;
  }
  ASSERT_TRUE((*other)->registry().CompareAndSet({{"n", "1"}}, {{"n", "2"}}).ok());
  const absl::Status late = (*fenced)->registry().CompareAndSet({}, {{"n", "3"}});
  EXPECT_TRUE(absl::IsInternal(late)) << late;
  EXPECT_EQ((*(*other)->registry().ReadAll())["n"], "2");
}

TEST(CephFencerTest, ATargetWithoutAddressesIsRefused) {
  const auto cluster = OpenTestCluster(HexOf(RandomBytes16()));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*cluster)->fencer().Fence({"a", 1, "life", {}})));
}

}  // namespace
}  // namespace h5mirror::cluster
