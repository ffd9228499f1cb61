#include <cstdlib>

#include "onion_store/testing/test_place.h"

namespace h5mirror::store {
namespace {

class Here final : public TestPlace {
 public:
  Here() {
    std::string pattern = testing::TempDir() + "/store_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~Here() override { std::filesystem::remove_all(root_); }
  Env& env() override { return Env::Posix(); }
  std::filesystem::path root() const override { return root_; }
  bool is_here() const override { return true; }

 private:
  std::filesystem::path root_;
};

}  // namespace

std::unique_ptr<TestPlace> MakeTestPlace() { return std::make_unique<Here>(); }

}  // namespace h5mirror::store
