// Tests of the promises that every form of the registry must keep: registry_contract.cc, compiled
// into each program that instantiates them.
#ifndef H5MIRROR_CLUSTER_TESTING_REGISTRY_CONTRACT_H_
#define H5MIRROR_CLUSTER_TESTING_REGISTRY_CONTRACT_H_

#include <functional>
#include <memory>
#include <string>

#include "cluster/registry.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {

// An empty registry, for one test.
class RegistryPlace {
 public:
  virtual ~RegistryPlace() = default;
  // One client of it, as another process would have it. Null: a test failure says why.
  virtual std::unique_ptr<Registry> Open() = 0;
};

struct RegistryCase {
  std::string name;  // letters: a part of each test's name
  std::function<std::unique_ptr<RegistryPlace>()> make;
};

class RegistryContractTest : public ::testing::TestWithParam<RegistryCase> {
 protected:
  void SetUp() override;
  // Sets one name, whatever it was, and expects success.
  void Set(const std::string& name, const std::string& text);

  std::unique_ptr<RegistryPlace> place_;
  std::unique_ptr<Registry> registry_;
};

inline std::string RegistryCaseName(const ::testing::TestParamInfo<RegistryCase>& info) {
  return info.param.name;
}

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TESTING_REGISTRY_CONTRACT_H_
