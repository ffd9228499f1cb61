// The contract of a registry, for the forms that need no Ceph. That of the form in RADOS:
// tests/ceph/registry_rados_test.cc.
#include "cluster/registry.h"

#include <stdlib.h>

#include <filesystem>

#include "cluster/file_registry.h"
#include "cluster/testing/memory_registry.h"
#include "cluster/testing/registry_contract.h"

namespace h5mirror::cluster {
namespace {

// One of several clients of a registry in memory.
class MemoryClient final : public Registry {
 public:
  explicit MemoryClient(MemoryRegistry& registry) : registry_(registry) {}
  absl::StatusOr<RegistryView> ReadAll() override { return registry_.ReadAll(); }
  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override {
    return registry_.Read(names);
  }
  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override {
    return registry_.CompareAndSet(expected, changes);
  }

 private:
  MemoryRegistry& registry_;
};

class MemoryPlace final : public RegistryPlace {
 public:
  std::unique_ptr<Registry> Open() override { return std::make_unique<MemoryClient>(registry_); }

 private:
  MemoryRegistry registry_;
};

class FilePlace final : public RegistryPlace {
 public:
  FilePlace() {
    std::string pattern = ::testing::TempDir() + "/registry.XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~FilePlace() override { std::filesystem::remove_all(directory_); }
  std::unique_ptr<Registry> Open() override {
    auto opened = FileRegistry::Open(Env::Posix(), directory_);
    if (!opened.ok()) ADD_FAILURE() << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }

 private:
  std::filesystem::path directory_;
};

INSTANTIATE_TEST_SUITE_P(
    Forms, RegistryContractTest,
    ::testing::Values(RegistryCase{"memory", [] { return std::make_unique<MemoryPlace>(); }},
                      RegistryCase{"file", [] { return std::make_unique<FilePlace>(); }}),
    RegistryCaseName);

}  // namespace
}  // namespace h5mirror::cluster
