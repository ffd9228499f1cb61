// The contract of an Env, run on the Env of the operating system and on the one in memory. For
// CephFS: tests/ceph/env_contract_ceph_test.cc.
#include <stdlib.h>

#include "base/testing/env_contract.h"
#include "base/testing/failing_env.h"
#include "base/testing/fault_env.h"

namespace h5mirror {
namespace {

class PosixPlace final : public EnvPlace {
 public:
  PosixPlace() {
    std::string pattern = ::testing::TempDir() + "/env_contract.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~PosixPlace() override { std::filesystem::remove_all(root_); }
  Env& env() override { return Env::Posix(); }
  std::filesystem::path root() override { return root_; }
  bool MakeSymlink(const std::string& target, const std::string& name) override {
    std::filesystem::create_symlink(target, root_ / name);
    return true;
  }

 private:
  std::filesystem::path root_;
};

class MemoryPlace final : public EnvPlace {
 public:
  Env& env() override { return env_; }
  std::filesystem::path root() override { return "/"; }
  bool MakeSymlink(const std::string&, const std::string&) override { return false; }

 private:
  FaultEnv env_;
};

// A FailingEnv that makes nothing fail keeps the contract of the Env that it wraps.
class FailingPlace final : public EnvPlace {
 public:
  Env& env() override { return env_; }
  std::filesystem::path root() override { return "/"; }
  bool MakeSymlink(const std::string& target, const std::string& name) override {
    return behind_.MakeSymlink(target, name);
  }

 private:
  PosixPlace behind_;
  FailingEnv env_{behind_.env(), behind_.root()};
};

INSTANTIATE_TEST_SUITE_P(
    Base, EnvContractTest,
    ::testing::Values(EnvCase{"Posix", [] { return std::make_unique<PosixPlace>(); }},
                      EnvCase{"Memory", [] { return std::make_unique<MemoryPlace>(); }},
                      EnvCase{"Failing", [] { return std::make_unique<FailingPlace>(); }}),
    EnvCaseName);

}  // namespace
}  // namespace h5mirror
