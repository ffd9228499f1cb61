#include "client_vfd/plugin/metadata_buffer/buffer_put.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakeFile : public LocalBytes {
 public:
  bool ReadLocal(uint64_t offset, size_t size, char* out) override {
    ++reads;
    bytes.copy(out, size, offset);
    return true;
  }
  bool WriteLocal(uint64_t offset, size_t size, const char* from) override {
    if (writes_left == 0) return false;
    --writes_left;
    if (bytes.size() < offset + size) bytes.resize(offset + size, '\0');
    bytes.replace(offset, size, from, size);
    writes.push_back({offset, size});
    return true;
  }
  uint64_t LocalSizeBytes() const override { return bytes.size(); }
  uint64_t BlankFrom() const override { return std::max<uint64_t>(bytes.size(), blank_from_min); }

  std::string bytes;
  std::vector<Extent> writes;
  uint64_t blank_from_min = 0;
  int reads = 0;
  int writes_left = 1'000'000;
};

class BufferPutTest : public testing::Test {
 protected:
  bool Put(EqualBytes equal = EqualBytes::kSkip, uint64_t from = 0, uint64_t to = 1 << 30) {
    return PutBuffered(from, to, equal, buffered_, file_, buffers_);
  }

  BufferedBytes buffered_;
  FakeFile file_;
  PutBuffers buffers_;
};

TEST_F(BufferPutTest, WhatLiesSideBySideIsOneWriteAndAllIsInOrder) {
  file_.bytes = std::string(30, '.');
  buffered_.Buffer(20, "cc");
  buffered_.Buffer(2, "bb");
  buffered_.Buffer(0, "aa");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes, ElementsAre(Extent{0, 4}, Extent{20, 2}));
  EXPECT_EQ(file_.bytes.substr(0, 5), "aabb.");
  EXPECT_TRUE(buffered_.empty());
}

TEST_F(BufferPutTest, WhereTheFileHasNothingSmallGapsAreOneWriteToo) {
  file_.bytes = "......";
  buffered_.Buffer(0, "aa");
  buffered_.Buffer(4, "bbbb");
  buffered_.Buffer(20, "cc");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes, ElementsAre(Extent{0, 2}, Extent{4, 18}));
  EXPECT_EQ(file_.bytes, "aa..bbbb" + std::string(12, '\0') + "cc");
}

TEST_F(BufferPutTest, WhereSomebodyElseMayHaveWrittenNothingIsFilled) {
  file_.blank_from_min = 7;
  buffered_.Buffer(0, "aa");
  buffered_.Buffer(4, "b");
  buffered_.Buffer(6, "c");
  buffered_.Buffer(8, "d");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes, ElementsAre(Extent{0, 2}, Extent{4, 1}, Extent{6, 3}));
}

TEST_F(BufferPutTest, AMebibyteIsTheLongestWrite) {
  buffered_.Buffer(0, std::string(PutBuffers::kBytes - 1, 'x'));
  buffered_.Buffer(PutBuffers::kBytes - 1, "yz");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes,
              ElementsAre(Extent{0, PutBuffers::kBytes}, Extent{PutBuffers::kBytes, 1}));
}

TEST_F(BufferPutTest, WhatTheFileHasAlreadyIsNotWritten) {
  file_.bytes = "superblock";
  buffered_.Buffer(0, "superblock");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes, IsEmpty());
  EXPECT_TRUE(buffered_.empty());
}

TEST_F(BufferPutTest, OnlyFromTheFirstToTheLastByteThatDiffers) {
  file_.bytes = "abcdefgh";
  buffered_.Buffer(0, "abXdYfgh");
  EXPECT_TRUE(Put());
  EXPECT_THAT(file_.writes, ElementsAre(Extent{2, 3}));
  EXPECT_EQ(file_.bytes, "abXdYfgh");
}

TEST_F(BufferPutTest, ComparingEndsWhereItIsOfNoUse) {
  file_.bytes = std::string(1000, 'a');
  for (uint64_t at = 0; at < 500; at += 10) buffered_.Buffer(at, "bb");
  buffered_.Buffer(900, "aa");
  EXPECT_TRUE(Put());
  EXPECT_LT(file_.reads, 50);
  EXPECT_EQ(file_.writes.size(), 51u);
}

TEST_F(BufferPutTest, ComparingGoesOnWhereMostIsThereAlready) {
  file_.bytes = std::string(1000, 'a');
  for (uint64_t at = 0; at < 900; at += 10) buffered_.Buffer(at, at % 100 == 0 ? "bb" : "aa");
  EXPECT_TRUE(Put());
  EXPECT_EQ(file_.writes.size(), 9u);
}

TEST_F(BufferPutTest, ZerosBeyondTheEndAreWritten) {
  file_.bytes = "ab";
  buffered_.Buffer(0, std::string("ab\0\0", 4));
  EXPECT_TRUE(Put());
  EXPECT_EQ(file_.bytes.size(), 4u);
}

TEST_F(BufferPutTest, WithoutComparingEqualBytesAreWrittenToo) {
  file_.bytes = "ab";
  buffered_.Buffer(0, "ab");
  EXPECT_TRUE(Put(EqualBytes::kWrite));
  EXPECT_THAT(file_.writes, ElementsAre(Extent{0, 2}));
}

TEST_F(BufferPutTest, OnlyWhatWasAskedFor) {
  buffered_.Buffer(0, "abcdefgh");
  EXPECT_TRUE(Put(EqualBytes::kWrite, 2, 5));
  EXPECT_THAT(file_.writes, ElementsAre(Extent{2, 3}));
  EXPECT_TRUE(buffered_.Covers({0, 2}));
  EXPECT_TRUE(buffered_.Covers({5, 3}));
  EXPECT_FALSE(buffered_.Intersects({2, 3}));
}

TEST_F(BufferPutTest, WhatFailsIsHeldOnAndCanBePutLater) {
  file_.bytes = std::string(30, '.');
  buffered_.Buffer(0, "aa");
  buffered_.Buffer(10, "bb");
  buffered_.Buffer(20, "cc");
  file_.writes_left = 1;
  EXPECT_FALSE(Put());
  EXPECT_FALSE(buffered_.Intersects({0, 2}));
  EXPECT_TRUE(buffered_.Covers({10, 2}) && buffered_.Covers({20, 2}));
  file_.writes_left = 2;
  EXPECT_TRUE(Put());
  EXPECT_TRUE(buffered_.empty());
  EXPECT_EQ(file_.bytes.substr(20), "cc........");
}

TEST_F(BufferPutTest, AFileWithRandomHeldAndPlainWritesIsThatOfPlainWritesAlone) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  FakeFile plain;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t offset = below(2000);
    // Few letters, so that bytes are often equal.
    const std::string bytes(1 + below(60), static_cast<char>('a' + below(3)));
    const bool is_raw = below(4) == 0;
    plain.WriteLocal(offset, bytes.size(), bytes.data());
    if (is_raw) {
      buffered_.Drop({offset, bytes.size()});
      file_.WriteLocal(offset, bytes.size(), bytes.data());
    } else {
      buffered_.Buffer(offset, bytes);
    }
    if (below(50) == 0) {
      ASSERT_TRUE(Put(EqualBytes::kWrite, below(2000)));
    }
    if (below(50) != 0) continue;
    ASSERT_TRUE(Put());
    ASSERT_EQ(file_.bytes, plain.bytes) << "step " << step;
  }
  EXPECT_LT(file_.writes.size(), plain.writes.size());
}

}  // namespace
}  // namespace h5mirror::vfd
