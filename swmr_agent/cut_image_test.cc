#include "swmr_agent/cut_image.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kSize = 20 * kBlockBytes + 1234;

class CutImageTest : public testing::Test {
 protected:
  std::shared_ptr<CutImage> Whole(FakeRanges& ranges) {
    return std::make_shared<CutImage>(pool_, ranges.bytes.size(), ranges.Reader());
  }
  static std::string Read(CutImage& image, uint64_t offset, uint64_t length) {
    std::string read;
    const auto take = [&](uint64_t at, std::string_view data) {
      EXPECT_EQ(at, offset + read.size());
      read.append(data);
      return absl::OkStatus();
    };
    EXPECT_TRUE(image.Read(offset, length, take).ok());
    return read;
  }

  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>(64 << 20);
  FakeRanges old_{RandomBytes(kSize, 1)};
};

TEST_F(CutImageTest, WhatIsReadTwiceIsFetchedOnceInWholeBlocks) {
  const auto image = Whole(old_);
  EXPECT_EQ(Read(*image, 100, 70'000), old_.bytes.substr(100, 70'000));
  EXPECT_EQ(Read(*image, 5000, 100'000), old_.bytes.substr(5000, 100'000));
  EXPECT_EQ(Read(*image, 20 * kBlockBytes, kBlockBytes), old_.bytes.substr(20 * kBlockBytes));
  EXPECT_THAT(old_.asked, ElementsAre(Extent{0, 2 * kBlockBytes}, Extent{20 * kBlockBytes, 1234}));
}

TEST_F(CutImageTest, ManyReadersAtOnceFetchOnce) {
  const auto image = Whole(old_);
  std::vector<std::thread> readers;
  for (int i = 0; i < 16; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(Read(*image, 0, kSize), old_.bytes); });
  }
  for (std::thread& reader : readers) reader.join();
  uint64_t fetched = 0;
  for (const Extent& extent : old_.asked) fetched += extent.length;
  EXPECT_EQ(fetched, kSize);
}

TEST_F(CutImageTest, AFailedFetchIsTheReadersAndMayBeRepeated) {
  const auto image = Whole(old_);
  old_.failure = absl::OutOfRangeError("snapshot expired");
  const auto drop = [](uint64_t, std::string_view) { return absl::OkStatus(); };
  EXPECT_EQ(image->Read(0, 10, drop), old_.failure);
  old_.failure = absl::OkStatus();
  EXPECT_EQ(Read(*image, 0, 10), old_.bytes.substr(0, 10));
}

TEST_F(CutImageTest, TheNextCutFetchesOnlyWhatChanged) {
  const auto image = Whole(old_);
  Read(*image, 0, kSize);
  FakeRanges next(old_.bytes);
  next.bytes.replace(3 * kBlockBytes + 17, 5, "hello");
  const auto after = image->Next(kSize, next.Reader(), {{{3 * kBlockBytes + 17, 5}}});
  EXPECT_EQ(Read(*after, 0, kSize), next.bytes);
  EXPECT_THAT(next.asked, ElementsAre(Extent{3 * kBlockBytes, kBlockBytes}));
  EXPECT_EQ(Read(*image, 0, kSize), old_.bytes) << "the cut before stays";
}

TEST_F(CutImageTest, ChangedMetadataThatCameNeedsNoFetch) {
  const auto image = Whole(old_);
  Read(*image, 0, kSize);
  FakeRanges next(old_.bytes);
  const uint64_t page = 5 * kBlockBytes + 2 * kPageBytes;
  next.bytes.replace(page, kPageBytes, std::string(kPageBytes, 'm'));
  const auto after = image->Next(kSize, next.Reader(), {{{page + 8, 100}}});
  after->Learn(page, std::string(kPageBytes, 'm'));
  EXPECT_EQ(Read(*after, 0, kSize), next.bytes);
  EXPECT_THAT(next.asked, IsEmpty());
  EXPECT_EQ(Read(*image, 0, kSize), old_.bytes);
}

TEST_F(CutImageTest, WhatFollowsTheOldEndIsNew) {
  const auto image = Whole(old_);
  Read(*image, 0, kSize);
  FakeRanges longer(old_.bytes + RandomBytes(2 * kBlockBytes, 2));
  const auto after = image->Next(longer.bytes.size(), longer.Reader(), {});
  EXPECT_EQ(Read(*after, 0, longer.bytes.size()), longer.bytes);
  EXPECT_THAT(longer.asked, ElementsAre(Extent{20 * kBlockBytes, 2 * kBlockBytes + 1234}));
}

TEST_F(CutImageTest, AShorterCutEndsEarlierAndGrowsAgainWithNewBytes) {
  const auto image = Whole(old_);
  Read(*image, 0, kSize);
  const uint64_t size = 2 * kBlockBytes + 100;
  FakeRanges shorter(old_.bytes.substr(0, size));
  const auto after = image->Next(size, shorter.Reader(), {});
  EXPECT_EQ(Read(*after, 0, kSize), shorter.bytes);
  FakeRanges longer(shorter.bytes + RandomBytes(3 * kBlockBytes, 3));
  const auto last = after->Next(longer.bytes.size(), longer.Reader(), {});
  EXPECT_EQ(Read(*last, 0, kSize), longer.bytes);
}

TEST_F(CutImageTest, AFileThatIsReadThroughItKeepsNoMoreThanThePoolHolds) {
  const auto pool = std::make_shared<BlockPool>(64 * kBlockBytes);
  const uint64_t size = 8192 * kBlockBytes;
  const auto zeros = [](uint64_t, uint64_t, rpc::RangeSink, rpc::MetadataAhead*) {
    return absl::OkStatus();
  };
  CutImage image(pool, size, zeros);
  uint64_t read = 0;
  const auto count = [&](uint64_t, std::string_view data) {
    read += data.size();
    EXPECT_LE(image.block_count(), 1024);
    return absl::OkStatus();
  };
  EXPECT_TRUE(image.Read(0, size, count).ok());
  EXPECT_EQ(read, size);
}

TEST_F(CutImageTest, MetadataAheadIsFetchedAtOnceForAll) {
  old_.metadata = {4, 7, 9};
  const auto image = Whole(old_);
  for (const uint64_t index : old_.metadata) {
    image->Learn(index * kBlockBytes, old_.bytes.substr(index * kBlockBytes, kPageBytes));
  }
  for (int reader = 0; reader < 3; ++reader) {
    std::vector<uint64_t> came;
    const auto take = [&](uint64_t offset, std::string_view block) {
      EXPECT_EQ(block, std::string_view(old_.bytes).substr(offset, kBlockBytes));
      came.push_back(offset / kBlockBytes);
      return absl::OkStatus();
    };
    rpc::MetadataAhead ahead{0, 2 * kBlockBytes, take};
    ASSERT_TRUE(image->ReadAhead({7 * kBlockBytes, kBlockBytes}, ahead).ok());
    EXPECT_THAT(came, ElementsAre(4, 9));
    EXPECT_EQ(ahead.next, 0);
  }
  EXPECT_THAT(old_.asked, ElementsAre(Extent{4 * kBlockBytes, kBlockBytes}));
}

TEST_F(CutImageTest, MetadataAheadSaysWhereItGoesOn) {
  old_.metadata = {1, 2, 3};
  const auto image = Whole(old_);
  for (const uint64_t index : old_.metadata) {
    image->Learn(index * kBlockBytes, old_.bytes.substr(index * kBlockBytes, kBlockBytes));
  }
  const auto drop = [](uint64_t, std::string_view) { return absl::OkStatus(); };
  rpc::MetadataAhead ahead{0, kBlockBytes, drop};
  ASSERT_TRUE(image->ReadAhead({0, kBlockBytes}, ahead).ok());
  EXPECT_EQ(ahead.next, 2 * kBlockBytes);
  EXPECT_THAT(old_.asked, IsEmpty()) << "whole blocks came with the subscription";
}

}  // namespace
}  // namespace h5mirror::agent
