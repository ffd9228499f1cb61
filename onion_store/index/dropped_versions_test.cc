#include "onion_store/index/dropped_versions.h"

#include <memory>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr VersionNumber kFirst[] = {1};

class DroppedVersionsTest : public testing::Test {
 protected:
  DroppedVersionsTest() : tree_(*env_.OpenTree("/")), vfs_(*tree_) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    FileRow row;
    row.page_size_bytes = 512;
    row.generation = 1;
    row.durable_cut = 2;
    row.cut_reserved = 1000;
    VersionRow versions[2];
    for (int i = 0; i < 2; ++i) {
      versions[i].info.version = versions[i].info.cut = i + 1;
      versions[i].info.generation = 1;
    }
    auto made = VersionIndex::Create(vfs_, *tree_, "d", row, versions, GenerationRow{1, 1, 0});
    EXPECT_TRUE(made.ok()) << made.status();
    index_ = *std::move(made);
  }
  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SqliteVfs vfs_;
  std::unique_ptr<VersionIndex> index_;
  DroppedVersions dropped_{"x.h5"};
};

TEST_F(DroppedVersionsTest, AReaderNoticesThatItsVersionWent) {
  const uint64_t epoch = dropped_.epoch();
  ASSERT_TRUE(index_->DropVersions(kFirst).ok());
  dropped_.Advance();
  const absl::Status gone = dropped_.CheckNotDropped(*index_, 1, epoch);
  EXPECT_TRUE(absl::IsOutOfRange(gone));
  EXPECT_THAT(gone.ToString(), HasSubstr("x.h5@1 was pruned"));
  EXPECT_TRUE(dropped_.CheckNotDropped(*index_, 2, epoch).ok()) << "that one stays";
}

TEST_F(DroppedVersionsTest, TheIndexIsAskedOnlyAfterAPrune) {
  const uint64_t epoch = dropped_.epoch();
  ASSERT_TRUE(index_->DropVersions(kFirst).ok());
  EXPECT_TRUE(dropped_.CheckNotDropped(*index_, 1, epoch).ok()) << "its rows were not moved yet";
}

}  // namespace
}  // namespace h5mirror::store
