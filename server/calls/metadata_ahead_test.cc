#include "server/calls/metadata_ahead.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kBlock = kMetadataBlockBytes;
constexpr uint64_t kSize = 100 * kBlock + 10;

// Metadata in the blocks 0, 1, 10, 11, 12 and the last one, and beyond the file's end.
class MetadataAheadTest : public testing::Test {
 protected:
  MetadataAheadTest() {
    map_.Add(std::vector<Extent>{{0, 1},
                                 {kBlock + 9000, 1},
                                 {10 * kBlock + 70, 3 * kBlock - 100},
                                 {100 * kBlock, 10},
                                 {200 * kBlock, 1}});
  }
  MetadataBlocks Find(uint64_t from, uint64_t length, Extent read = {}) {
    return FindMetadataBlocks(map_, kSize, from, length, read);
  }

  store::MetadataMap map_;
};

TEST_F(MetadataAheadTest, FindsWholeBlocks) {
  const MetadataBlocks all = Find(0, kSize);
  EXPECT_THAT(all.runs, ElementsAre(Extent{0, 2 * kBlock}, Extent{10 * kBlock, 3 * kBlock},
                                    Extent{100 * kBlock, 10}));
  EXPECT_EQ(all.next, 0);
}

TEST_F(MetadataAheadTest, GoesOnWhereTheLastOneEnded) {
  const MetadataBlocks first = Find(0, 3 * kBlock);
  EXPECT_THAT(first.runs, ElementsAre(Extent{0, 2 * kBlock}, Extent{10 * kBlock, kBlock}));
  EXPECT_EQ(first.next, 11 * kBlock);
  const MetadataBlocks rest = Find(first.next, kSize);
  EXPECT_THAT(rest.runs, ElementsAre(Extent{11 * kBlock, 2 * kBlock}, Extent{100 * kBlock, 10}));
  EXPECT_EQ(rest.next, 0);
}

TEST_F(MetadataAheadTest, LeavesOutWhatWasRead) {
  EXPECT_THAT(
      Find(0, kSize, {kBlock, 11 * kBlock}).runs,
      ElementsAre(Extent{0, kBlock}, Extent{12 * kBlock, kBlock}, Extent{100 * kBlock, 10}));
}

TEST_F(MetadataAheadTest, FindsNothingBeyondTheEnd) {
  EXPECT_THAT(Find(101 * kBlock, kSize).runs, IsEmpty());
  EXPECT_THAT(Find(UINT64_MAX, kSize).runs, IsEmpty());
  EXPECT_THAT(FindMetadataBlocks(map_, 0, 0, kBlock, {}).runs, IsEmpty());
}

TEST_F(MetadataAheadTest, OneCallHasABound) {
  map_.Add(std::vector<Extent>{{0, 2 * kMetadataBytesMax}});
  const MetadataBlocks found =
      FindMetadataBlocks(map_, 2 * kMetadataBytesMax, 0, UINT64_MAX, Extent{});
  EXPECT_THAT(found.runs, ElementsAre(Extent{0, kMetadataBytesMax}));
  EXPECT_EQ(found.next, kMetadataBytesMax);
}

TEST_F(MetadataAheadTest, FindsPages) {
  const auto find = [&](uint64_t from, uint64_t length, Extent read = {}) {
    return FindMetadataPages(map_, kSize, from, length, read);
  };
  const Extent first{0, 8192}, second{kBlock + 8192, 8192}, last{100 * kBlock, 10};
  const Extent third{10 * kBlock, 3 * kBlock + 4096};
  const MetadataBlocks all = find(0, kSize);
  EXPECT_THAT(all.runs, ElementsAre(first, second, third, last));
  EXPECT_EQ(all.next, 0);
  const MetadataBlocks some = find(100, 6 * 4096 + 1);
  EXPECT_THAT(some.runs, ElementsAre(first, second, Extent{10 * kBlock, 2 * 4096}));
  EXPECT_EQ(some.next, 10 * kBlock + 2 * 4096);
  EXPECT_THAT(find(some.next, kSize).runs,
              ElementsAre(Extent{10 * kBlock + 2 * 4096, 3 * kBlock - 4096}, last));
  EXPECT_THAT(find(0, kSize, {kBlock, 10 * kBlock}).runs,
              ElementsAre(first, Extent{11 * kBlock, 2 * kBlock + 4096}, last));
  EXPECT_THAT(find(2 * kBlock, kSize, {11 * kBlock, kBlock}).runs,
              ElementsAre(Extent{10 * kBlock, kBlock}, Extent{12 * kBlock, kBlock + 4096}, last));
  EXPECT_THAT(find(UINT64_MAX, kSize).runs, IsEmpty());
}

}  // namespace
}  // namespace h5mirror::server
