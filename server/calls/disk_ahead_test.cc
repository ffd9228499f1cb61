#include "server/calls/disk_ahead.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kMib = 1 << 20;

struct Source {
  void StartReading(Extent extent) { begun.push_back(extent); }
  std::vector<Extent> begun;
};

TEST(DiskAheadTest, ARangeOfOneMessageIsOnlyRead) {
  Source source;
  DiskAhead().Keep(source, 100, 65536, 65636);
  EXPECT_THAT(source.begun, IsEmpty());
}

TEST(DiskAheadTest, TheNextMessagesAreAskedForByAMibAtATime) {
  Source source;
  DiskAhead disk;
  for (uint64_t at = 0; at < 4 * kMib; at += kMib / 2) disk.Keep(source, at, kMib / 2, 4 * kMib);
  EXPECT_THAT(source.begun,
              ElementsAre(Extent{0, 2 * kMib}, Extent{2 * kMib, kMib}, Extent{3 * kMib, kMib}));
}

TEST(DiskAheadTest, AMessageThatIsLargerIsAskedForAsAWhole) {
  Source source;
  DiskAhead disk;
  disk.Keep(source, 0, 3 * kMib, 8 * kMib);
  disk.Keep(source, 3 * kMib, 3 * kMib, 8 * kMib);
  EXPECT_THAT(source.begun, ElementsAre(Extent{0, 3 * kMib}, Extent{3 * kMib, 3 * kMib}));
}

TEST(DiskAheadTest, AHoleIsLeftOut) {
  Source source;
  DiskAhead disk;
  disk.Keep(source, 0, kMib, 2 * kMib);
  disk.Keep(source, 6 * kMib, kMib, 8 * kMib);
  EXPECT_THAT(source.begun, ElementsAre(Extent{0, 2 * kMib}, Extent{6 * kMib, 2 * kMib}));
}

}  // namespace
}  // namespace h5mirror::server
