#include "client_vfd/plugin/metadata_buffer/buffered_bytes.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();

// What is held, with '.' for each byte that is not.
std::string Shown(const BufferedBytes& buffered, size_t size_bytes) {
  std::string shown(size_bytes, '.');
  buffered.CopyOver({0, size_bytes}, shown.data());
  return shown;
}

TEST(BufferedBytesTest, TheNewestBytesCountAndWhatTheyLeaveStays) {
  BufferedBytes buffered;
  buffered.Buffer(2, "aaaa");
  buffered.Buffer(8, "bb");
  buffered.Buffer(4, "ccccc");
  EXPECT_EQ(Shown(buffered, 12), "..aacccccb..");
  EXPECT_EQ(buffered.end(), 10u);
}

TEST(BufferedBytesTest, DroppingTheMiddleLeavesBothEnds) {
  BufferedBytes buffered;
  buffered.Buffer(0, "abcdefgh");
  buffered.Drop({3, 2});
  EXPECT_EQ(Shown(buffered, 8), "abc..fgh");
  EXPECT_TRUE(buffered.Covers({5, 3}));
  EXPECT_FALSE(buffered.Covers({2, 2}));
  EXPECT_FALSE(buffered.Intersects({3, 2}));
  EXPECT_TRUE(buffered.Intersects({3, 3}));
}

TEST(BufferedBytesTest, TruncateForgetsWhatLiesBeyond) {
  BufferedBytes buffered;
  buffered.Buffer(0, "abcd");
  buffered.Buffer(6, "efgh");
  buffered.TruncateTo(7);
  EXPECT_EQ(Shown(buffered, 10), "abcd..e...");
  buffered.TruncateTo(0);
  EXPECT_TRUE(buffered.empty());
  EXPECT_EQ(buffered.end(), 0u);
  EXPECT_EQ(buffered.memory_bytes(), 0u);
}

TEST(BufferedBytesTest, ACompactOneTakesWhatItHolds) {
  BufferedBytes buffered;
  buffered.Buffer(0, "first");
  buffered.Buffer(100, std::string(3 << 20, 'x'));
  buffered.Buffer(5 << 20, "last");
  buffered.Drop({103, 3 << 20});
  EXPECT_GT(buffered.memory_bytes(), 3u << 20);
  EXPECT_EQ(buffered.live_bytes(), 12u);
  EXPECT_EQ(buffered.dead_bytes(), (3u << 20) - 3);
  buffered.Compact();
  EXPECT_EQ(buffered.dead_bytes(), 0u);
  EXPECT_LT(buffered.memory_bytes(), 1000u);
  EXPECT_EQ(Shown(buffered, 110), "first" + std::string(95, '.') + "xxx" + std::string(7, '.'));
  buffered.Buffer((5 << 20) + 4, "er");
  buffered.Buffer(3, "TH");
  std::string shown(11, '.');
  buffered.CopyOver({(5 << 20) - 1, 11}, shown.data());
  EXPECT_EQ(shown, ".laster....");
  EXPECT_EQ(Shown(buffered, 5), "firTH");
}

TEST(BufferedBytesTest, ARunTakesWhatFollowsWithoutAGapAsFarAsThereIsRoom) {
  BufferedBytes buffered;
  buffered.Buffer(4, "efgh");
  buffered.Buffer(0, "abcd");  // Two extents, side by side.
  buffered.Buffer(9, "j");
  Scratch scratch(6);
  const auto run = buffered.NextRun(1, 100, kNoEnd, scratch);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->offset, 1u);
  EXPECT_EQ(run->bytes, "bcdefg");
  EXPECT_EQ(buffered.NextRun(7, 100, kNoEnd, scratch)->bytes, "h");
  EXPECT_EQ(buffered.NextRun(8, 100, kNoEnd, scratch)->bytes, "j");
  EXPECT_EQ(buffered.NextRun(2, 5, kNoEnd, scratch)->bytes, "cde");
  EXPECT_FALSE(buffered.NextRun(10, 100, kNoEnd, scratch));
  EXPECT_FALSE(buffered.NextRun(8, 9, kNoEnd, scratch));
}

TEST(BufferedBytesTest, WhatIsLongerThanABlockOfMemoryIsHeldToo) {
  BufferedBytes buffered;
  const std::string large(5 << 20, 'x');
  buffered.Buffer(10, large);
  buffered.Buffer(10 + large.size(), "yz");
  buffered.Drop({100, 2 << 20});
  std::string out(large.size(), '.');
  buffered.CopyOver({12, out.size()}, out.data());
  EXPECT_EQ(out.substr(0, 88), std::string(88, 'x'));
  EXPECT_EQ(out[88], '.');
  EXPECT_EQ(out.substr(out.size() - 3), "xyz");
}

TEST(BufferedBytesTest, MemoryIsThatOfTheBytesAndSomeForEachExtent) {
  BufferedBytes buffered;
  for (uint64_t i = 0; i < 100; ++i) buffered.Buffer(i * 1000, std::string(500, 'x'));
  EXPECT_GE(buffered.memory_bytes(), 100 * 500u);
  EXPECT_LE(buffered.memory_bytes(), 100 * 1000u);
  const uint64_t before = buffered.memory_bytes();
  buffered.Buffer(7000, std::string(500, 'y'));
  EXPECT_EQ(buffered.memory_bytes(), before);
}

// Beside a plain vector of bytes, in which nothing means "not held".
class Model {
 public:
  explicit Model(size_t size_bytes) : bytes_(size_bytes) {}

  void Buffer(uint64_t offset, std::string_view bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<long>(offset));
  }
  void Drop(Extent extent) {
    for (uint64_t at = extent.offset; at < std::min<uint64_t>(extent.end(), bytes_.size()); ++at) {
      bytes_[at].reset();
    }
  }
  bool Intersects(Extent extent) const { return Count(extent) > 0; }
  bool Covers(Extent extent) const { return Count(extent) == extent.length; }
  std::string Shown() const {
    std::string shown;
    for (const auto& byte : bytes_) shown += byte.value_or('.');
    return shown;
  }
  uint64_t bytes() const { return Count({0, bytes_.size()}); }
  uint64_t end() const {
    const auto last = std::find_if(bytes_.rbegin(), bytes_.rend(), [](auto b) { return b; });
    return static_cast<uint64_t>(bytes_.rend() - last);
  }

 private:
  uint64_t Count(Extent extent) const {
    const auto from = bytes_.begin() + static_cast<long>(extent.offset);
    return static_cast<uint64_t>(
        std::count_if(from, from + static_cast<long>(extent.length), [](auto b) { return b; }));
  }

  std::vector<std::optional<char>> bytes_;
};

// All runs, one after the other, are what is held.
std::string ShownByRuns(const BufferedBytes& buffered, size_t size_bytes, size_t run_bytes_max,
                        uint64_t blank_from = kNoEnd) {
  std::string shown(size_bytes, '.');
  Scratch scratch(run_bytes_max);
  uint64_t from = 0;
  while (const auto run = buffered.NextRun(from, size_bytes, blank_from, scratch)) {
    EXPECT_FALSE(run->bytes.empty());
    EXPECT_GE(run->offset, from);
    std::copy(run->bytes.begin(), run->bytes.end(), shown.begin() + static_cast<long>(run->offset));
    from = run->end();
  }
  return shown;
}

TEST(BufferedBytesTest, BeyondTheFilesEndARunFillsSmallGaps) {
  BufferedBytes buffered;
  buffered.Buffer(0, "ab");
  buffered.Buffer(4, "ef");
  buffered.Buffer(9, "jk");
  buffered.Buffer(11 + 4096, "near");
  buffered.Buffer(15 + 4096 + 4097, "far");
  Scratch scratch(10'000);
  EXPECT_EQ(buffered.NextRun(0, 100, 3, scratch)->bytes, "ab");
  EXPECT_EQ(buffered.NextRun(0, 100, 2, scratch)->bytes, std::string("ab\0\0ef\0\0\0jk", 11));
  EXPECT_EQ(buffered.NextRun(4, 100, 6, scratch)->bytes, std::string("ef\0\0\0jk", 7));
  EXPECT_EQ(buffered.NextRun(4, 10, 6, scratch)->bytes, std::string("ef\0\0\0j", 6));
  EXPECT_EQ(buffered.NextRun(4, 9, 6, scratch)->bytes, "ef") << "no zeros at its end";
  EXPECT_EQ(buffered.NextRun(9, 100'000, 0, scratch)->bytes,
            "jk" + std::string(4096, '\0') + "near");
  Scratch small(3);
  EXPECT_EQ(buffered.NextRun(0, 100, 0, small)->bytes, "ab");
  EXPECT_EQ(buffered.NextRun(1, 100, 0, small)->bytes, "b");
}

TEST(BufferedBytesTest, RandomWritesDropsAndTruncatesGiveWhatAModelGives) {
  constexpr size_t kSize = 300;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    BufferedBytes buffered;
    Model model(kSize);
    for (int step = 0; step < 200; ++step) {
      const uint64_t offset = below(kSize - 40);
      const Extent extent{offset, below(40)};
      switch (below(8)) {
        case 0:
        case 1:
          buffered.Drop(extent);
          model.Drop(extent);
          break;
        case 2:
          buffered.Compact();
          ASSERT_EQ(buffered.dead_bytes(), 0u);
          if (below(4) != 0) break;
          buffered.TruncateTo(offset);
          model.Drop({offset, kSize});
          break;
        default: {
          const std::string bytes(extent.length, static_cast<char>('a' + below(26)));
          buffered.Buffer(offset, bytes);
          model.Buffer(offset, bytes);
        }
      }
      ASSERT_EQ(Shown(buffered, kSize), model.Shown()) << "round " << round << " step " << step;
      ASSERT_EQ(ShownByRuns(buffered, kSize, 1 + below(50)), model.Shown());
      ASSERT_EQ(buffered.live_bytes(), model.bytes());
      const uint64_t blank_from = below(kSize);
      std::string filled = ShownByRuns(buffered, kSize, 1 + below(50), blank_from);
      ASSERT_EQ(filled.find('\0') < blank_from, false);
      std::replace(filled.begin(), filled.end(), '\0', '.');
      ASSERT_EQ(filled, model.Shown());
      ASSERT_EQ(buffered.end(), model.end());
      ASSERT_EQ(buffered.Intersects(extent), model.Intersects(extent));
      ASSERT_EQ(buffered.Covers(extent), model.Covers(extent));
      ASSERT_EQ(buffered.empty(), model.end() == 0);
    }
    buffered.TruncateTo(0);
    ASSERT_EQ(buffered.memory_bytes(), 0u);
  }
}

}  // namespace
}  // namespace h5mirror::vfd
