#include "onion_store/file/state/saved_pages.h"

#include <memory>
#include <string>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

class SavedPagesTest : public testing::Test {
 protected:
  SavedPagesTest()
      : context_(std::make_shared<StoreContext>(env_, StoreOptions(), *env_.OpenTree("/"))),
        files_(context_, "x.h5") {
    files_.Identify({1}, 512);
    EXPECT_TRUE(files_.MakeDirectories().ok());
    row_.pages_segment = 1;
  }
  // Puts a file of `size_bytes` at the place of segment `number`.
  void Put(uint64_t number, size_t size_bytes) {
    const std::string name = pages_.Segments(row_)->SegmentName(number);
    auto file = context_->tree->Open(name, OpenKind::kCreateFresh, 0600);
    ASSERT_TRUE(WriteAt(**file, 0, std::string(size_bytes, 'x')).ok());
  }

  FaultEnv env_;
  std::shared_ptr<StoreContext> context_;
  HistoryFiles files_;
  SavedPages pages_{files_};
  FileRow row_;
};

TEST_F(SavedPagesTest, TheyGoOnWhereTheRowSays) {
  row_.pages_segment = 3;
  row_.pages_end_bytes = 4096;
  EXPECT_EQ(pages_.Segments(row_)->segment(), 3);
  EXPECT_EQ(pages_.Segments(row_)->end_bytes(), 4096);
  row_.pages_segment = 4;
  EXPECT_EQ(pages_.Segments(row_)->segment(), 3) << "from then on they know their end themselves";
}

TEST_F(SavedPagesTest, OnlySealedSegmentsAreCounted) {
  Put(1, 100);
  Put(2, 10);
  EXPECT_EQ(pages_.SealedBytes(row_), 0);
  row_.pages_segment = 2;
  EXPECT_EQ(pages_.SealedBytes(row_), 100);
  row_.pages_segment = 4;
  EXPECT_EQ(pages_.SealedBytes(row_), 110) << "3 is not there";
}

TEST_F(SavedPagesTest, ARemovedSegmentIsCountedUntilAllAreCountedAnew) {
  Put(1, 100);
  Put(2, 10);
  row_.pages_segment = 3;
  EXPECT_EQ(pages_.SealedBytes(row_), 110);
  ASSERT_TRUE(context_->tree->Remove(pages_.Segments(row_)->SegmentName(1)).ok());
  EXPECT_EQ(pages_.SealedBytes(row_), 110);
  pages_.CountAnew();
  EXPECT_EQ(pages_.SealedBytes(row_), 10);
}

TEST_F(SavedPagesTest, OnePruneAtATime) {
  EXPECT_TRUE(pages_.BeginPrune());
  EXPECT_FALSE(pages_.BeginPrune());
  pages_.EndPrune();
  EXPECT_TRUE(pages_.BeginPrune());
}

TEST_F(SavedPagesTest, ALayerWithRevertsHoldsTheSegments) {
  EXPECT_FALSE(pages_.HasReverts());
  auto pin = pages_.revert_pin();
  EXPECT_TRUE(pages_.HasReverts());
  pin.reset();
  EXPECT_FALSE(pages_.HasReverts());
}

}  // namespace
}  // namespace h5mirror::store
