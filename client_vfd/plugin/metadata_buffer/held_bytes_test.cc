#include "client_vfd/plugin/metadata_buffer/held_bytes.h"

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
std::string Shown(const HeldBytes& held, size_t size_bytes) {
  std::string shown(size_bytes, '.');
  held.CopyOver({0, size_bytes}, shown.data());
  return shown;
}

TEST(HeldBytesTest, TheNewestBytesCountAndWhatTheyLeaveStays) {
  HeldBytes held;
  held.Hold(2, "aaaa");
  held.Hold(8, "bb");
  held.Hold(4, "ccccc");
  EXPECT_EQ(Shown(held, 12), "..aacccccb..");
  EXPECT_EQ(held.end(), 10u);
}

TEST(HeldBytesTest, DroppingTheMiddleLeavesBothEnds) {
  HeldBytes held;
  held.Hold(0, "abcdefgh");
  held.Drop({3, 2});
  EXPECT_EQ(Shown(held, 8), "abc..fgh");
  EXPECT_TRUE(held.Covers({5, 3}));
  EXPECT_FALSE(held.Covers({2, 2}));
  EXPECT_FALSE(held.Intersects({3, 2}));
  EXPECT_TRUE(held.Intersects({3, 3}));
}

TEST(HeldBytesTest, TruncateForgetsWhatLiesBeyond) {
  HeldBytes held;
  held.Hold(0, "abcd");
  held.Hold(6, "efgh");
  held.TruncateTo(7);
  EXPECT_EQ(Shown(held, 10), "abcd..e...");
  held.TruncateTo(0);
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(held.end(), 0u);
  EXPECT_EQ(held.memory_bytes(), 0u);
}

TEST(HeldBytesTest, ACompactOneTakesWhatItHolds) {
  HeldBytes held;
  held.Hold(0, "first");
  held.Hold(100, std::string(3 << 20, 'x'));
  held.Hold(5 << 20, "last");
  held.Drop({103, 3 << 20});
  EXPECT_GT(held.memory_bytes(), 3u << 20);
  EXPECT_EQ(held.live_bytes(), 12u);
  EXPECT_EQ(held.dead_bytes(), (3u << 20) - 3);
  held.Compact();
  EXPECT_EQ(held.dead_bytes(), 0u);
  EXPECT_LT(held.memory_bytes(), 1000u);
  EXPECT_EQ(Shown(held, 110), "first" + std::string(95, '.') + "xxx" + std::string(7, '.'));
  held.Hold((5 << 20) + 4, "er");
  held.Hold(3, "TH");
  std::string shown(11, '.');
  held.CopyOver({(5 << 20) - 1, 11}, shown.data());
  EXPECT_EQ(shown, ".laster....");
  EXPECT_EQ(Shown(held, 5), "firTH");
}

TEST(HeldBytesTest, ARunTakesWhatFollowsWithoutAGapAsFarAsThereIsRoom) {
  HeldBytes held;
  held.Hold(4, "efgh");
  held.Hold(0, "abcd");  // Two extents, side by side.
  held.Hold(9, "j");
  Scratch scratch(6);
  const auto run = held.NextRun(1, 100, kNoEnd, scratch);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->offset, 1u);
  EXPECT_EQ(run->bytes, "bcdefg");
  EXPECT_EQ(held.NextRun(7, 100, kNoEnd, scratch)->bytes, "h");
  EXPECT_EQ(held.NextRun(8, 100, kNoEnd, scratch)->bytes, "j");
  EXPECT_EQ(held.NextRun(2, 5, kNoEnd, scratch)->bytes, "cde");
  EXPECT_FALSE(held.NextRun(10, 100, kNoEnd, scratch));
  EXPECT_FALSE(held.NextRun(8, 9, kNoEnd, scratch));
}

TEST(HeldBytesTest, WhatIsLongerThanABlockOfMemoryIsHeldToo) {
  HeldBytes held;
  const std::string large(5 << 20, 'x');
  held.Hold(10, large);
  held.Hold(10 + large.size(), "yz");
  held.Drop({100, 2 << 20});
  std::string out(large.size(), '.');
  held.CopyOver({12, out.size()}, out.data());
  EXPECT_EQ(out.substr(0, 88), std::string(88, 'x'));
  EXPECT_EQ(out[88], '.');
  EXPECT_EQ(out.substr(out.size() - 3), "xyz");
}

TEST(HeldBytesTest, MemoryIsThatOfTheBytesAndSomeForEachExtent) {
  HeldBytes held;
  for (uint64_t i = 0; i < 100; ++i) held.Hold(i * 1000, std::string(500, 'x'));
  EXPECT_GE(held.memory_bytes(), 100 * 500u);
  EXPECT_LE(held.memory_bytes(), 100 * 1000u);
  const uint64_t before = held.memory_bytes();
  held.Hold(7000, std::string(500, 'y'));
  EXPECT_EQ(held.memory_bytes(), before);
}

// Beside a plain vector of bytes, in which nothing means "not held".
class Model {
 public:
  explicit Model(size_t size_bytes) : bytes_(size_bytes) {}

  void Hold(uint64_t offset, std::string_view bytes) {
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
std::string ShownByRuns(const HeldBytes& held, size_t size_bytes, size_t run_bytes_max,
                        uint64_t blank_from = kNoEnd) {
  std::string shown(size_bytes, '.');
  Scratch scratch(run_bytes_max);
  uint64_t from = 0;
  while (const auto run = held.NextRun(from, size_bytes, blank_from, scratch)) {
    EXPECT_FALSE(run->bytes.empty());
    EXPECT_GE(run->offset, from);
    std::copy(run->bytes.begin(), run->bytes.end(), shown.begin() + static_cast<long>(run->offset));
    from = run->end();
  }
  return shown;
}

TEST(HeldBytesTest, BeyondTheFilesEndARunFillsSmallGaps) {
  HeldBytes held;
  held.Hold(0, "ab");
  held.Hold(4, "ef");
  held.Hold(9, "jk");
  held.Hold(11 + 4096, "near");
  held.Hold(15 + 4096 + 4097, "far");
  Scratch scratch(10'000);
  EXPECT_EQ(held.NextRun(0, 100, 3, scratch)->bytes, "ab");
  EXPECT_EQ(held.NextRun(0, 100, 2, scratch)->bytes, std::string("ab\0\0ef\0\0\0jk", 11));
  EXPECT_EQ(held.NextRun(4, 100, 6, scratch)->bytes, std::string("ef\0\0\0jk", 7));
  EXPECT_EQ(held.NextRun(4, 10, 6, scratch)->bytes, std::string("ef\0\0\0j", 6));
  EXPECT_EQ(held.NextRun(4, 9, 6, scratch)->bytes, "ef") << "no zeros at its end";
  EXPECT_EQ(held.NextRun(9, 100'000, 0, scratch)->bytes, "jk" + std::string(4096, '\0') + "near");
  Scratch small(3);
  EXPECT_EQ(held.NextRun(0, 100, 0, small)->bytes, "ab");
  EXPECT_EQ(held.NextRun(1, 100, 0, small)->bytes, "b");
}

TEST(HeldBytesTest, RandomWritesDropsAndTruncatesGiveWhatAModelGives) {
  constexpr size_t kSize = 300;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    HeldBytes held;
    Model model(kSize);
    for (int step = 0; step < 200; ++step) {
      const uint64_t offset = below(kSize - 40);
      const Extent extent{offset, below(40)};
      switch (below(8)) {
        case 0:
        case 1:
          held.Drop(extent);
          model.Drop(extent);
          break;
        case 2:
          held.Compact();
          ASSERT_EQ(held.dead_bytes(), 0u);
          if (below(4) != 0) break;
          held.TruncateTo(offset);
          model.Drop({offset, kSize});
          break;
        default: {
          const std::string bytes(extent.length, static_cast<char>('a' + below(26)));
          held.Hold(offset, bytes);
          model.Hold(offset, bytes);
        }
      }
      ASSERT_EQ(Shown(held, kSize), model.Shown()) << "round " << round << " step " << step;
      ASSERT_EQ(ShownByRuns(held, kSize, 1 + below(50)), model.Shown());
      ASSERT_EQ(held.live_bytes(), model.bytes());
      const uint64_t blank_from = below(kSize);
      std::string filled = ShownByRuns(held, kSize, 1 + below(50), blank_from);
      ASSERT_EQ(filled.find('\0') < blank_from, false);
      std::replace(filled.begin(), filled.end(), '\0', '.');
      ASSERT_EQ(filled, model.Shown());
      ASSERT_EQ(held.end(), model.end());
      ASSERT_EQ(held.Intersects(extent), model.Intersects(extent));
      ASSERT_EQ(held.Covers(extent), model.Covers(extent));
      ASSERT_EQ(held.empty(), model.end() == 0);
    }
    held.TruncateTo(0);
    ASSERT_EQ(held.memory_bytes(), 0u);
  }
}

}  // namespace
}  // namespace h5mirror::vfd
