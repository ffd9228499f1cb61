#include "swmr_agent/block_splitter.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "swmr_agent/block_pool.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BlockSplitterTest : public testing::Test {
 protected:
  static constexpr uint64_t kBegin = 2 * kBlockBytes;
  static constexpr uint64_t kEnd = 5 * kBlockBytes + 100;

  absl::Status Take(uint64_t offset, uint64_t length) {
    return splitter_.Take(offset, std::string_view(bytes_).substr(offset, length));
  }
  std::string Block(uint64_t index) const {
    return bytes_.substr(index * kBlockBytes, std::min(kBlockBytes, kEnd - index * kBlockBytes));
  }

  const std::string bytes_ = RandomBytes(kEnd, 1);
  std::vector<uint64_t> order_;
  std::map<uint64_t, std::string> blocks_;
  absl::Status failure_;
  const std::function<absl::Status(uint64_t, std::string_view)> keep_ =
      [this](uint64_t index, std::string_view bytes) {
        order_.push_back(index);
        blocks_[index] = bytes;
        return failure_;
      };
  BlockSplitter splitter_{kBegin, kEnd, keep_};
};

TEST_F(BlockSplitterTest, ABlockIsHandedOutWithItsLastByte) {
  EXPECT_TRUE(Take(kBegin, kBlockBytes - 1).ok());
  EXPECT_THAT(order_, IsEmpty());
  EXPECT_TRUE(Take(3 * kBlockBytes - 1, kBlockBytes + 1).ok());
  EXPECT_THAT(order_, ElementsAre(2, 3));
  EXPECT_TRUE(Take(4 * kBlockBytes, kEnd - 4 * kBlockBytes).ok());
  EXPECT_TRUE(splitter_.Finish().ok());
  EXPECT_THAT(order_, ElementsAre(2, 3, 4, 5));
  for (const uint64_t index : order_) EXPECT_EQ(blocks_[index], Block(index));
}

TEST_F(BlockSplitterTest, WhatIsLeftOutIsZeros) {
  EXPECT_TRUE(Take(3 * kBlockBytes + 10, 20).ok());
  EXPECT_THAT(order_, ElementsAre(2)) << "bytes behind it have come";
  EXPECT_TRUE(splitter_.Finish().ok());
  EXPECT_EQ(blocks_[2], std::string(kBlockBytes, '\0'));
  EXPECT_EQ(blocks_[3], std::string(10, '\0') + bytes_.substr(3 * kBlockBytes + 10, 20) +
                            std::string(kBlockBytes - 30, '\0'));
  EXPECT_EQ(blocks_[5], std::string(100, '\0'));
}

TEST_F(BlockSplitterTest, WhatComesAgainIsPassedBy) {
  EXPECT_TRUE(Take(kBegin, kBlockBytes + 7).ok());
  EXPECT_TRUE(Take(kBegin, 5).ok());
  EXPECT_TRUE(Take(kBegin, 2 * kBlockBytes).ok());
  EXPECT_THAT(order_, ElementsAre(2, 3));
  EXPECT_EQ(blocks_[3], Block(3));
}

TEST_F(BlockSplitterTest, BytesThatWereNotAskedForAreRefused) {
  EXPECT_EQ(Take(kBegin - 1, 2).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(splitter_.Take(kEnd, "x").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(splitter_.Take(UINT64_MAX, "xy").code(), absl::StatusCode::kInternal);
  EXPECT_THAT(order_, IsEmpty());
}

TEST_F(BlockSplitterTest, AFailureEndsIt) {
  failure_ = absl::ResourceExhaustedError("no room");
  EXPECT_EQ(Take(kBegin, 3 * kBlockBytes), failure_);
  EXPECT_THAT(order_, ElementsAre(2));
}

}  // namespace
}  // namespace h5mirror::agent
