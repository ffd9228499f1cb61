#include "cluster/file_registry.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::HasSubstr;

TEST(FileRegistryTest, EncodedBytesAreDecoded) {
  const RegistryView view = {{"c/x y", "line\nline"}, {"s/a", "end 2\n"}};
  const auto decoded = DecodeRegistry(EncodeRegistry(view));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, view);
  EXPECT_EQ(DecodeRegistry(EncodeRegistry({}))->size(), 0u);
}

TEST(FileRegistryTest, EveryTornEndIsNoticed) {
  const std::string bytes = EncodeRegistry({{"s/a", "up"}, {"s/b", "dead"}});
  for (size_t size_bytes = 0; size_bytes < bytes.size(); ++size_bytes) {
    const auto decoded = DecodeRegistry(bytes.substr(0, size_bytes));
    EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << size_bytes << ": " << decoded.status();
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeRegistry(bytes + "x").status()));
}

TEST(FileRegistryTest, LengthsBeyondTheEndAreNoticed) {
  const auto decoded = DecodeRegistry("h5mirror registry 1\n18446744073709551615 1\na\nb\nend 1\n");
  EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << decoded.status();
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("entry 1"));
}

TEST(FileRegistryTest, AChangeThatReturnedSurvivesAPowerLoss) {
  FaultEnv env;
  auto registry = FileRegistry::Open(env, "/");
  ASSERT_TRUE(registry.ok()) << registry.status();
  std::vector<size_t> done_at;  // of text i + 1: the number of changes to the disk until then
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE((*registry)->CompareAndSet({}, {{"n", std::to_string(i)}}).ok());
    done_at.push_back(env.change_count());
  }
  for (size_t changes = 0; changes <= env.change_count(); ++changes) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const auto crashed = env.Crash(changes, seed);
      auto view = (*FileRegistry::Open(*crashed, "/"))->ReadAll();
      ASSERT_TRUE(view.ok()) << changes << ": " << view.status();
      const int found = view->contains("n") ? std::stoi((*view)["n"]) : 0;
      const auto done = std::count_if(done_at.begin(), done_at.end(),
                                      [changes](size_t at) { return at <= changes; });
      EXPECT_GE(found, done) << "after " << changes << " changes, seed " << seed;
    }
  }
}

TEST(FileRegistryTest, AFullDiskMayBeTriedAgain) {
  FaultEnv env;
  auto registry = FileRegistry::Open(env, "/");
  ASSERT_TRUE((*registry)->CompareAndSet({}, {{"n", "1"}}).ok());
  env.SetCapacity(env.used_bytes());
  const absl::Status full = (*registry)->CompareAndSet({}, {{"n", "2"}});
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_EQ((*(*registry)->ReadAll())["n"], "1");
  env.SetCapacity(UINT64_MAX);
  EXPECT_TRUE((*registry)->CompareAndSet({{"n", "1"}}, {{"n", "2"}}).ok());
}

TEST(FileRegistryTest, ADirectoryThatIsNotThereIsNamed) {
  const auto opened = FileRegistry::Open(Env::Posix(), "/nowhere/at/all");
  EXPECT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
}

}  // namespace
}  // namespace h5mirror::cluster
