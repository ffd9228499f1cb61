// What one writer may take of its account, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "onion_store/testing/test_store.h"
#include "server/quotas/space_quotas.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr char kName[] = "runs/a.h5";

class WriterSpaceTest : public testing::Test {
 protected:
  WriterSpaceTest()
      : store_(store::OpenStore(env_, "/")),
        quotas_({{"runs", 10 * kMiB, 0, 3, "/etc/c.toml:3"}}, *store_) {
    quotas_.counter.Round();
  }
  void Measured(const std::string& name, uint64_t head_mib) {
    quotas_.ledger.BeginMeasure(name);
    quotas_.ledger.Measured(name, SpaceSizes{head_mib * kMiB, 0});
  }
  static absl::Status Write(WriterSpace& writer, uint64_t offset_mib, uint64_t length_mib) {
    const Extent extent{offset_mib * kMiB, length_mib * kMiB};
    return writer.Write({&extent, 1});
  }

  FaultEnv env_;
  std::unique_ptr<store::Store> store_;
  SpaceQuotas quotas_;
};

TEST_F(WriterSpaceTest, BytesBehindTheEndCountOnce) {
  WriterSpace writer(&quotas_);
  ASSERT_TRUE(writer.Open(kName, 0, true).ok());
  writer.Begin(0);
  EXPECT_TRUE(Write(writer, 0, 6).ok());
  EXPECT_TRUE(Write(writer, 2, 4).ok()) << "written again";
  EXPECT_TRUE(Write(writer, 4, 6).ok()) << "four of them are new";
  EXPECT_TRUE(absl::IsResourceExhausted(Write(writer, 10, 1)));
  writer.Truncate(8 * kMiB);
  Measured(kName, 8);
  EXPECT_TRUE(Write(writer, 8, 2).ok());
  EXPECT_FALSE(Write(writer, 10, 1).ok());
}

TEST_F(WriterSpaceTest, HolesAreNotFilledInAFullAccount) {
  Measured("runs/b.h5", 4);
  Measured(kName, 1);  // Of 100.
  WriterSpace writer(&quotas_);
  ASSERT_TRUE(writer.Open(kName, 100 * kMiB, true).ok());
  writer.Begin(100 * kMiB);
  EXPECT_TRUE(Write(writer, 0, 64).ok()) << "nobody knows yet";
  Measured(kName, 65);
  const absl::Status refused = Write(writer, 64, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(ToStd(refused.message()), HasSubstr("35 MiB more"));
  Measured(kName, 100);
  EXPECT_TRUE(Write(writer, 64, 1).ok()) << "it has no holes";
}

TEST_F(WriterSpaceTest, ANewGenerationCountsWhereItIsLargerThanTheOldOne) {
  Measured("runs/b.h5", 3);
  Measured(kName, 6);
  WriterSpace writer(&quotas_);
  ASSERT_TRUE(writer.Open(kName, 8 * kMiB, true).ok());
  writer.BeginGeneration();
  EXPECT_TRUE(Write(writer, 0, 6).ok());
  EXPECT_EQ(quotas_.ledger.HeadOf(kName), 6 * kMiB);
  EXPECT_TRUE(Write(writer, 6, 1).ok());
  EXPECT_FALSE(Write(writer, 7, 1).ok());
}

TEST_F(WriterSpaceTest, ANewFileThatWasTooLargeIsNotSentAgainUntilThereIsRoom) {
  Measured("runs/b.h5", 5);
  {
    WriterSpace writer(&quotas_);
    ASSERT_TRUE(writer.Open(kName, 20 * kMiB, true).ok());
    writer.Begin(0);
    ASSERT_TRUE(Write(writer, 0, 4).ok());
    ASSERT_FALSE(Write(writer, 4, 4).ok());
    writer.End();
  }
  quotas_.counter.Round();  // It never had a cut, so there is no such file.
  EXPECT_EQ(quotas_.ledger.AccountOf(kName), std::nullopt);
  const absl::Status again = WriterSpace(&quotas_).Open(kName, 20 * kMiB, true);
  EXPECT_TRUE(absl::IsResourceExhausted(again)) << again;
  EXPECT_THAT(ToStd(again.message()), HasSubstr("20 MiB more"));
  Measured("runs/b.h5", 1);
  EXPECT_FALSE(WriterSpace(&quotas_).Open(kName, 20 * kMiB, true).ok());
  EXPECT_TRUE(WriterSpace(&quotas_).Open(kName, 8 * kMiB, true).ok());
}

TEST_F(WriterSpaceTest, AFileThatIsGoneIsNoNewOne) {
  for (const char* name : {"runs/1", "runs/2", "runs/3"}) Measured(name, 1);
  EXPECT_FALSE(WriterSpace(&quotas_).Open(kName, 1, true).ok());
  EXPECT_TRUE(WriterSpace(&quotas_).Open(kName, 1, false).ok()) << "it only goes on with one";
}

TEST_F(WriterSpaceTest, AMovedOrUndeletedFileCountsAtOnce) {
  for (const char* name : {"runs/1", "runs/2", "x/3"}) Measured(name, 2);
  quotas_.Moved("x/3", "runs/3");
  EXPECT_EQ(quotas_.ledger.AccountOf("runs/3")->files, 3u);
  EXPECT_EQ(quotas_.ledger.AccountOf("runs/3")->sizes.head_bytes, 6 * kMiB);
  EXPECT_TRUE(WriterSpace(&quotas_).Open("runs/3", 1, true).ok()) << "it is there";
  quotas_.Moved("runs/3", "x/3");
  store::RemovedFile removed;
  removed.head_bytes = 7 * kMiB;
  EXPECT_FALSE(quotas_.MayUndelete(removed, "runs/4").ok());
  removed.head_bytes = 6 * kMiB;
  EXPECT_TRUE(quotas_.MayUndelete(removed, "runs/4").ok());
  quotas_.Undeleted(removed, "runs/4");
  EXPECT_FALSE(quotas_.MayUndelete(removed, "runs/5").ok());
}

TEST_F(WriterSpaceTest, AReloadOfTheSameTablesKeepsWhatIsCounted) {
  Measured(kName, 10);
  quotas_.ledger.SetRules({{"runs", 10 * kMiB, 0, 3, "/etc/c.toml:3"}});
  EXPECT_TRUE(quotas_.ledger.is_counted());
  EXPECT_FALSE(quotas_.ledger.Grow(kName, 1, 0).ok());
  quotas_.ledger.SetRules({{"runs", 11 * kMiB, 0, 3, "/etc/c.toml:3"}});
  EXPECT_FALSE(quotas_.ledger.is_counted());
}

TEST_F(WriterSpaceTest, ARollbackOfAFileWithoutHolesCountsItsSize) {
  Measured(kName, 4);
  EXPECT_TRUE(quotas_.MayRollBack(kName, 10 * kMiB, 4 * kMiB).ok());
  EXPECT_FALSE(quotas_.MayRollBack(kName, 11 * kMiB, 4 * kMiB).ok());
  EXPECT_TRUE(quotas_.MayRollBack(kName, 1000 * kMiB, 1000 * kMiB).ok()) << "mostly holes";
  Measured(kName, 10);
  EXPECT_FALSE(quotas_.MayRollBack(kName, 1000 * kMiB, 1000 * kMiB).ok()) << "and no room";
}

}  // namespace
}  // namespace h5mirror::server
