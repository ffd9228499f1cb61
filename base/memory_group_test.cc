#include "base/memory_group.h"

#include <unistd.h>

#include <fstream>

#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

class MemoryGroupTest : public ::testing::Test {
 protected:
  MemoryGroupTest()
      : top_(std::filesystem::path(::testing::TempDir()) / StrCat("memory_group_test.", getpid())) {
    std::filesystem::create_directories(top_ / "system.slice" / "a.service");
    Write("cgroup", "0::/system.slice/a.service\n");
  }
  ~MemoryGroupTest() override { std::filesystem::remove_all(top_); }

  void Write(const std::string& path, const std::string& text) const {
    std::ofstream(top_ / path) << text;
  }
  std::optional<uint64_t> Limit() const { return MemoryLimitOfGroup(top_ / "cgroup", top_); }

  const std::filesystem::path top_;
};

TEST_F(MemoryGroupTest, TheLeastLimitOfAllGroupsAboveCounts) {
  EXPECT_EQ(Limit(), std::nullopt) << "none has one";
  Write("system.slice/a.service/memory.max", "max\n");
  EXPECT_EQ(Limit(), std::nullopt);
  Write("system.slice/memory.max", "1000000\n");
  EXPECT_THAT(Limit(), Optional(1'000'000));
  Write("system.slice/a.service/memory.max", "2000000\n");
  EXPECT_THAT(Limit(), Optional(1'000'000));
  Write("memory.max", "500000\n");  // As in a container: its group is the root.
  EXPECT_THAT(Limit(), Optional(500'000));
}

TEST_F(MemoryGroupTest, WhatCannotBeKnownIsNoLimit) {
  Write("memory.max", "1000\n");
  Write("cgroup", "4:memory:/a\n3:cpu:/b\n");
  EXPECT_EQ(Limit(), std::nullopt);
  EXPECT_EQ(MemoryLimitOfGroup(top_ / "none", top_), std::nullopt);
  static_cast<void>(MemoryLimitOfGroup());  // The limit of this machine, whatever it is.
}

TEST(MemoryLimitWarningTest, AProcessThatNeedsMoreThanItsGroupHasIsToldOf) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(MemoryLimitWarning("cache", 2 * kMiB, 3 * kMiB, std::nullopt), std::nullopt);
  EXPECT_EQ(MemoryLimitWarning("cache", 2 * kMiB, 3 * kMiB, 3 * kMiB), std::nullopt);
  EXPECT_THAT(MemoryLimitWarning("cache", 2 * kMiB, 3 * kMiB, 3 * kMiB - 1),
              Optional(AllOf(HasSubstr("cache = 2"), HasSubstr("raise MemoryMax="))));
}

}  // namespace
}  // namespace h5mirror
