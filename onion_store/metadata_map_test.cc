#include "onion_store/metadata_map.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kPage = MetadataMap::kPageBytes;
constexpr Extent kAll{0, uint64_t{1} << 62};

void Add(MetadataMap& map, Extent extent) { map.Add({&extent, 1}); }

TEST(MetadataMapTest, HoldsWholePages) {
  MetadataMap map;
  Add(map, {100, 10});
  Add(map, {3 * kPage - 1, 2});
  EXPECT_THAT(map.Within(kAll), ElementsAre(Extent{0, kPage}, Extent{2 * kPage, 2 * kPage}));
  EXPECT_EQ(map.byte_count(), 3 * kPage);
  EXPECT_EQ(map.NextAfter(1), (Extent{1, kPage - 1}));
  EXPECT_EQ(map.NextAfter(4 * kPage), std::nullopt);
}

TEST(MetadataMapTest, LeavesOutWhatIsNoRange) {
  MetadataMap map;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const Extent& extent :
       {Extent{5, 0}, Extent{kMax, 1}, Extent{0, kMax}, Extent{kMax, kMax}}) {
    Add(map, extent);
  }
  EXPECT_THAT(map.Within(kAll), IsEmpty());
}

TEST(MetadataMapTest, GivesItsBytesWhereItHasChanged) {
  MetadataMap map;
  EXPECT_EQ(map.TakeChanged(), std::nullopt);
  Add(map, {0, 1});
  Add(map, {9 * kPage, 1});
  const auto bytes = map.TakeChanged();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(map.TakeChanged(), std::nullopt);
  Add(map, {7, 7});
  EXPECT_EQ(map.TakeChanged(), std::nullopt) << "that page is known";

  MetadataMap again;
  again.Load(*bytes);
  EXPECT_EQ(again.Within(kAll), map.Within(kAll));
  EXPECT_EQ(again.TakeChanged(), std::nullopt);
  map.Clear();
  EXPECT_TRUE(map.TakeChanged().has_value());
}

TEST(MetadataMapTest, IgnoresDamagedBytes) {
  MetadataMap map;
  Add(map, {0, 1});
  const std::string bytes = *map.TakeChanged();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    MetadataMap loaded;
    loaded.Load(damaged);
    EXPECT_THAT(loaded.Within(kAll), IsEmpty()) << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    MetadataMap loaded;
    loaded.Load(bytes.substr(0, size));
    EXPECT_THAT(loaded.Within(kAll), IsEmpty()) << size;
  }
}

}  // namespace
}  // namespace h5mirror::store
