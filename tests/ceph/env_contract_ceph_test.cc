// The contract of an Env (base/testing/env_contract.cc), for CephFS.
#include "base/testing/env_contract.h"
#include "tests/ceph/ceph_place.h"

namespace h5mirror::ceph {
namespace {

// One mount for all tests: a mount takes longer than most tests.
CephEnv* SharedEnv() {
  static CephEnv* const env = [] {
    auto mounted = MountCluster(nullptr);
    EXPECT_TRUE(mounted.ok()) << mounted.status();
    return mounted.ok() ? static_cast<CephEnv*>(mounted->release()) : nullptr;
  }();
  return env;
}

class CephPlace final : public EnvPlace {
 public:
  CephPlace(CephEnv& env, std::string root) : env_(env), root_(std::move(root)) {}
  Env& env() override { return env_; }
  std::filesystem::path root() override { return root_; }
  bool CountsSpace() const override { return false; }  // The cluster has no ceph-mgr.
  bool MakeSymlink(const std::string& target, const std::string& name) override {
    const std::string path = root_ + "/" + name;
    const int made = ceph_symlink(env_.mount().get(), target.c_str(), path.c_str());
    EXPECT_EQ(made, 0);
    return true;
  }

 private:
  CephEnv& env_;
  const std::string root_;
};

std::unique_ptr<EnvPlace> MakeCephPlace() {
  CephEnv* const env = SharedEnv();
  if (env == nullptr) return nullptr;
  auto root = MakeTestRoot(*env);
  EXPECT_TRUE(root.ok()) << root.status();
  if (!root.ok()) return nullptr;
  return std::make_unique<CephPlace>(*env, *std::move(root));
}

INSTANTIATE_TEST_SUITE_P(Ceph, EnvContractTest, ::testing::Values(EnvCase{"CephFS", MakeCephPlace}),
                         EnvCaseName);

}  // namespace
}  // namespace h5mirror::ceph
