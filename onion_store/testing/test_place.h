// The place of a store test's files: on this machine, or the place that its program is linked for.
#ifndef H5MIRROR_ONION_STORE_TESTING_TEST_PLACE_H_
#define H5MIRROR_ONION_STORE_TESTING_TEST_PLACE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/env.h"
#include "gtest/gtest.h"

namespace h5mirror::store {

// An empty directory of one Env, removed with this object. The calls below use its files like a
// program that is no store.
class TestPlace {
 public:
  virtual ~TestPlace() = default;
  virtual Env& env() = 0;
  virtual std::filesystem::path root() const = 0;
  // False: in CephFS, which knows no holes, and makes no links for us.
  virtual bool is_here() const = 0;

  std::string Read(std::string_view name) {
    auto file = Tree()->Open(name, OpenKind::kRead, 0);
    if (!file.ok()) return "";
    std::string bytes(*(*file)->Size(), '\0');
    EXPECT_TRUE(ReadOrZeros(**file, 0, absl::MakeSpan(bytes)).ok()) << name;
    return bytes;
  }
  // Makes the file if there is none.
  void Write(std::string_view name, uint64_t offset, std::string_view bytes) {
    auto file = Tree()->Open(name, OpenKind::kCreate, 0600);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(WriteAt(**file, offset, bytes).ok()) << name;
    ASSERT_TRUE((*file)->Sync().ok()) << name;
  }
  void Put(std::string_view name, std::string_view bytes) {
    ASSERT_TRUE(Tree()->Open(name, OpenKind::kCreateFresh, 0600).ok());
    Write(name, 0, bytes);
  }
  void Remove(std::string_view name) { EXPECT_TRUE(Tree()->Remove(name).ok()) << name; }
  bool Exists(std::string_view name) { return *Tree()->Exists(name); }
  uint64_t SizeOf(std::string_view name) { return Tree()->Stat(name)->size_bytes; }

 private:
  std::unique_ptr<EnvTree> Tree() { return *env().OpenTree(root()); }
};

// The program's: test_place_here.cc, or tests/ceph/test_place_ceph.cc. Never null; if it cannot be
// made, the test fails.
std::unique_ptr<TestPlace> MakeTestPlace();

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_TEST_PLACE_H_
