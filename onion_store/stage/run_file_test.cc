#include "onion_store/stage/run_file.h"

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

// More than two blocks of 170 entries.
constexpr uint64_t kEntries = 400;

// Entry i holds [100 i, 100 i + 60).
RunFile::Source Entries(uint64_t count) {
  return [count, i = uint64_t{0}]() mutable -> absl::StatusOr<std::optional<StagedEntry>> {
    if (i == count) return std::nullopt;
    StagedEntry entry{100 * i, 100 * i + 60, MakeLocation(3, 1000 * i)};
    ++i;
    return entry;
  };
}

class RunFileTest : public testing::Test {
 protected:
  RunFileTest() : tree_(*env_.OpenTree("/")) { EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok()); }
  std::shared_ptr<const RunFile> Write(uint64_t count) {
    auto run = RunFile::Write(*tree_, "d", Entries(count));
    EXPECT_TRUE(run.ok()) << run.status();
    return *run;
  }
  // The offsets of the entries that touch `range`.
  static std::vector<uint64_t> Found(const RunFile& run, Extent range) {
    std::vector<uint64_t> offsets;
    auto found = run.Find(range);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const StagedEntry& entry : *found) offsets.push_back(entry.offset);
    return offsets;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
};

TEST_F(RunFileTest, FindsWhatTouchesARangeAndNothingElse) {
  auto run = Write(kEntries);
  EXPECT_THAT(Found(*run, {0, 1}), testing::ElementsAre(0));
  EXPECT_THAT(Found(*run, {60, 40}), testing::IsEmpty()) << "a gap";
  EXPECT_THAT(Found(*run, {59, 42}), testing::ElementsAre(0, 100)) << "not clipped";
  EXPECT_THAT(Found(*run, {100 * kEntries, 1000}), testing::IsEmpty());
}

TEST_F(RunFileTest, ARangeMayCrossBlocks) {
  auto run = Write(kEntries);
  EXPECT_THAT(Found(*run, {16900, 101}), testing::ElementsAre(16900, 17000)) << "170 a block";
  EXPECT_EQ(Found(*run, {0, UINT64_MAX}).size(), kEntries);
}

TEST_F(RunFileTest, TheNextEntryIsTheFirstThatEndsLater) {
  auto run = Write(kEntries);
  auto next = [&](uint64_t offset) { return *run->NextAfter(offset); };
  EXPECT_EQ(next(0)->offset, 0u);
  EXPECT_EQ(next(59)->offset, 0u);
  EXPECT_EQ(next(60)->offset, 100u);
  EXPECT_EQ(next(16960)->offset, 17000u) << "in the next block";
  EXPECT_EQ(next(17059)->location, MakeLocation(3, 170'000));
  EXPECT_FALSE(next(100 * kEntries).has_value());
}

TEST_F(RunFileTest, AnEmptyRunHoldsNothing) {
  auto run = Write(0);
  EXPECT_THAT(Found(*run, {0, UINT64_MAX}), testing::IsEmpty());
  EXPECT_FALSE((*run->NextAfter(0)).has_value());
}

TEST_F(RunFileTest, LeavesNoNameBehind) {
  auto run = Write(kEntries);
  EXPECT_TRUE(tree_->List("d")->empty());
  EXPECT_EQ(Found(*run, {500, 1}).size(), 1u) << "and is read all the same";
}

TEST_F(RunFileTest, AFullDiskAndASourceThatFailsAreErrors) {
  env_.SetCapacity(100);
  EXPECT_TRUE(absl::IsResourceExhausted(RunFile::Write(*tree_, "d", Entries(10)).status()));
  RunFile::Source broken = []() -> absl::StatusOr<std::optional<StagedEntry>> {
    return absl::InternalError("broken");
  };
  EXPECT_EQ(RunFile::Write(*tree_, "d", broken).status().message(), "broken");
}

}  // namespace
}  // namespace h5mirror::store
