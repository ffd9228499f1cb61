// The promises of every Env to its callers, as tests. env_contract.cc has them; each program that
// instantiates them for an Env of its own compiles it in.
#ifndef H5MIRROR_BASE_TESTING_ENV_CONTRACT_H_
#define H5MIRROR_BASE_TESTING_ENV_CONTRACT_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/env.h"
#include "gtest/gtest.h"

namespace h5mirror {

// An empty directory of one Env, for one test.
class EnvPlace {
 public:
  virtual ~EnvPlace() = default;
  virtual Env& env() = 0;
  virtual std::filesystem::path root() = 0;
  // False: this place does not count its space, and each answer is kUnavailable.
  virtual bool CountsSpace() const { return true; }
  // Makes a symbolic link in the root. False: this Env has none.
  virtual bool MakeSymlink(const std::string& target, const std::string& name) = 0;
};

struct EnvCase {
  std::string name;  // letters: a part of each test's name
  std::function<std::unique_ptr<EnvPlace>()> make;
};

class EnvContractTest : public ::testing::TestWithParam<EnvCase> {
 protected:
  void SetUp() override;

  std::unique_ptr<EnvFile> Make(const std::string& name, const std::string& bytes);
  std::string Read(EnvFile& file);
  std::string ReadFile(const std::string& name);

  std::unique_ptr<EnvPlace> place_;
  std::unique_ptr<EnvTree> tree_;
};

inline std::string EnvCaseName(const ::testing::TestParamInfo<EnvCase>& info) {
  return info.param.name;
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_ENV_CONTRACT_H_
