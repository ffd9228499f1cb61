// Table `archived` of the index.
#include <memory>
#include <string>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ArchivedTest : public testing::Test {
 protected:
  ArchivedTest() : tree_(*env_.OpenTree("/")), vfs_(*tree_) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    row_.file_id = FileId{7};
    row_.page_size_bytes = 512;
    row_.generation = row_.durable_cut = 1;
    row_.cut_reserved = 1000;
    VersionRow first;
    first.info.version = first.info.cut = first.info.generation = 1;
    index_ = *VersionIndex::Create(vfs_, *tree_, "d", row_, {&first, 1}, GenerationRow{1, 1, 50});
  }
  void Reopen() {
    index_.reset();
    auto opened = VersionIndex::Open(vfs_, *tree_, "d");
    ASSERT_TRUE(opened.ok()) << opened.status();
    index_ = *std::move(opened);
  }
  int64_t Format() {
    // The number is in the header of the database once its log is empty.
    EXPECT_TRUE(index_->Checkpoint().ok());
    std::string bytes(4, '\0');
    EXPECT_TRUE(
        (*tree_->Open("d/index", OpenKind::kRead, 0))->ReadAt(60, absl::MakeSpan(bytes)).ok());
    return bytes[3];
  }
  void AddRow(uint64_t page, VersionNumber version, uint64_t segment) {
    const PageRun run{0, page, version, segment, 0};
    ASSERT_TRUE(index_->AddPages(row_, {&run, 1}).ok());
  }

  const ArchivedSegment one_{1,          "files/07/pages-000001-ab", 64, 4711,
                             0xfedcba98, ArchiveState::kPutting};
  const ArchivedSegment two_{2, "files/07/pages-000002-cd", 64, 1, 0, ArchiveState::kArchived};
  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SqliteVfs vfs_;
  FileRow row_;
  std::unique_ptr<VersionIndex> index_;
};

TEST_F(ArchivedTest, AnIndexWithoutARowIsAsBefore) {
  EXPECT_THAT(*index_->ListArchived(), IsEmpty());
  EXPECT_EQ(*index_->FindArchived(1), std::nullopt);
  EXPECT_THAT(*index_->ArchivedSince(0, 1), IsEmpty());
  EXPECT_EQ(Format(), 1);
}

TEST_F(ArchivedTest, RowsAreKeptAndRaiseTheFormat) {
  ASSERT_TRUE(index_->PutArchived(two_).ok());
  ASSERT_TRUE(index_->PutArchived(one_).ok());
  EXPECT_EQ(Format(), 4);
  Reopen();
  EXPECT_THAT(*index_->ListArchived(), ElementsAre(one_, two_));
  EXPECT_EQ(*index_->FindArchived(2), two_);
  EXPECT_EQ(*index_->FindArchived(3), std::nullopt);
}

TEST_F(ArchivedTest, StatesChangeTogetherAndRowsGo) {
  ASSERT_TRUE(index_->PutArchived(one_).ok());
  ASSERT_TRUE(index_->PutArchived(two_).ok());
  const uint64_t both[] = {1, 2};
  ASSERT_TRUE(index_->SetArchiveState(both, ArchiveState::kDeleting).ok());
  EXPECT_EQ((*index_->FindArchived(1))->state, ArchiveState::kDeleting);
  EXPECT_EQ((*index_->FindArchived(2))->state, ArchiveState::kDeleting);
  ASSERT_TRUE(index_->DropArchived(one_).ok());
  EXPECT_EQ(index_->ListArchived()->size(), 1u);
}

// Two jobs may know one dead object. The first deletes its row, and the segment gets another row.
TEST_F(ArchivedTest, TheRowOfASegmentThatWasArchivedAnewStays) {
  ArchivedSegment anew = one_;
  anew.object = "files/07/pages-000001-ef";
  ASSERT_TRUE(index_->PutArchived(anew).ok());
  ASSERT_TRUE(index_->DropArchived(one_).ok());
  EXPECT_EQ(*index_->FindArchived(1), anew);
  ASSERT_TRUE(index_->DropArchived(anew).ok());
  EXPECT_EQ(*index_->FindArchived(1), std::nullopt);
}

TEST_F(ArchivedTest, TheSegmentsThatAVersionNeedsAreThoseOfItsRowsAndLaterOnes) {
  ASSERT_TRUE(index_->PutArchived(one_).ok());
  ASSERT_TRUE(index_->PutArchived(two_).ok());
  AddRow(0, 1, 1);
  AddRow(1, 3, 2);
  AddRow(2, 3, 2);
  AddRow(3, 4, 3);  // on the disk
  AddRow(4, 5, PageRun::kZeros);
  EXPECT_THAT(*index_->ArchivedSince(1, 1), ElementsAre(1, 2));
  EXPECT_THAT(*index_->ArchivedSince(0, 2), ElementsAre(2));
  EXPECT_THAT(*index_->ArchivedSince(1, 4), IsEmpty());
  EXPECT_THAT(*index_->ArchivedSince(2, 1), IsEmpty());
}

TEST_F(ArchivedTest, ARowThatCannotBeIsDataLoss) {
  ArchivedSegment wrong = one_;
  wrong.object = "../elsewhere";
  ASSERT_TRUE(index_->PutArchived(wrong).ok());
  const absl::Status found = index_->FindArchived(1).status();
  EXPECT_TRUE(absl::IsDataLoss(found)) << found;
  EXPECT_THAT(found.message(), HasSubstr("segment 1"));
  wrong = one_;
  wrong.length = INT64_MAX;
  ASSERT_TRUE(index_->PutArchived(wrong).ok());
  EXPECT_TRUE(absl::IsDataLoss(index_->ListArchived().status()));
}

}  // namespace
}  // namespace h5mirror::store
