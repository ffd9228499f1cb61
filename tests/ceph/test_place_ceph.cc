#include "onion_store/testing/test_place.h"
#include "tests/ceph/ceph_place.h"

namespace h5mirror::store {
namespace {

// One mount for all tests of the program, like a server.
Env& Mounted() {
  static Env* const env = [] {
    auto mounted =
        ceph::MountCluster([](const std::string& why) { ADD_FAILURE() << "fenced: " << why; });
    EXPECT_TRUE(mounted.ok()) << mounted.status();
    return mounted->release();
  }();
  return *env;
}

class InCeph final : public TestPlace {
 public:
  InCeph() {
    auto root = ceph::MakeTestRoot(Mounted());
    EXPECT_TRUE(root.ok()) << root.status();
    root_ = *root;
  }
  Env& env() override { return Mounted(); }
  std::filesystem::path root() const override { return root_; }
  bool is_here() const override { return false; }

 private:
  std::filesystem::path root_;  // removed with the cluster
};

}  // namespace

std::unique_ptr<TestPlace> MakeTestPlace() { return std::make_unique<InCeph>(); }

}  // namespace h5mirror::store
