#include "onion_store/jobs/version_drop.h"

#include <memory>
#include <numeric>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

constexpr VersionNumber kVersions = 600;
constexpr uint32_t kPage = 512;

class VersionDropTest : public testing::Test {
 protected:
  VersionDropTest() : tree_(*env_.OpenTree("/")), vfs_(*tree_) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    FileRow row;
    row.page_size_bytes = kPage;
    row.generation = 1;
    row.durable_cut = kVersions;
    row.cut_reserved = 1000;
    std::vector<VersionRow> versions(kVersions);
    for (int64_t i = 0; i < kVersions; ++i) {
      VersionInfo& info = versions[static_cast<size_t>(i)].info;
      info.version = info.cut = i + 1;
      info.generation = 1;
      info.size_bytes = kPage;
    }
    auto made = VersionIndex::Create(vfs_, *tree_, "d", row, versions, GenerationRow{1, 1, 0});
    EXPECT_TRUE(made.ok()) << made.status();
    index_ = *std::move(made);
    std::vector<PageRun> runs(kVersions);  // each version has a page that the next one changed
    for (int64_t i = 0; i < kVersions; ++i) runs[static_cast<size_t>(i)].version = i + 1;
    EXPECT_TRUE(index_->AddPages(row, runs).ok());
  }
  VersionDrop Drop(VersionNumber newest) {
    std::vector<VersionNumber> versions(static_cast<size_t>(newest));
    std::iota(versions.begin(), versions.end(), 1);
    return VersionDrop(*index_, dropped_, kPage, std::move(versions));
  }
  int64_t VersionsThere() { return *index_->CountUpTo(kVersions); }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SqliteVfs vfs_;
  std::unique_ptr<VersionIndex> index_;
  DroppedVersions dropped_{"x.h5"};
};

TEST_F(VersionDropTest, DropsSomeVersionsThenMovesTheirRowsAndSoOn) {
  VersionDrop drop = Drop(kVersions - 1);
  EXPECT_TRUE(*drop.Step()) << "no earlier drop left a row";
  EXPECT_EQ(VersionsThere(), kVersions);
  EXPECT_TRUE(*drop.Step());
  EXPECT_EQ(VersionsThere(), kVersions - 256);
  EXPECT_EQ(drop.versions_done(), 0) << "their rows are there";
  EXPECT_EQ(dropped_.epoch(), 1);
  for (bool more = true; more;) more = *drop.Step();
  EXPECT_EQ(VersionsThere(), 1);
  EXPECT_EQ(drop.versions_done(), kVersions - 1);
  EXPECT_EQ(dropped_.epoch(), 3);
  PagesCursor cursor;
  std::vector<RunOfGeneration> runs;
  ASSERT_TRUE(index_->ScanPages(1000, &cursor, &runs).ok());
  EXPECT_EQ(runs.size(), 1) << "that of the version that stays";
}

TEST_F(VersionDropTest, MovesRowsThatAnEarlierDropLeft) {
  const VersionNumber dropped[] = {1, 2, 3};
  ASSERT_TRUE(index_->DropVersions(dropped).ok());
  VersionDrop drop = Drop(0);
  for (bool more = true; more;) more = *drop.Step();
  PagesCursor cursor;
  std::vector<RunOfGeneration> runs;
  ASSERT_TRUE(index_->ScanPages(1000, &cursor, &runs).ok());
  EXPECT_EQ(runs.size(), kVersions - 3);
}

TEST_F(VersionDropTest, AfterAFullDiskTheSameVersionsAreDropped) {
  VersionDrop drop = Drop(kVersions - 1);
  ASSERT_TRUE(*drop.Step());
  env_.SetCapacity(env_.used_bytes());
  const absl::Status full = drop.Step().status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(VersionsThere(), kVersions) << "nothing changed";
  env_.SetCapacity(UINT64_MAX);
  for (bool more = true; more;) more = *drop.Step();
  EXPECT_EQ(VersionsThere(), 1);
}

}  // namespace
}  // namespace h5mirror::store
