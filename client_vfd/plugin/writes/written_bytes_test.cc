#include "client_vfd/plugin/writes/written_bytes.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(WrittenBytesTest, ARunEndsWhereTheNextKindBegins) {
  WrittenBytes written;
  EXPECT_EQ(written.RunFrom(0, 9).end, 9u);
  written.Add(10, 5);
  EXPECT_FALSE(written.RunFrom(0, 100).is_written);
  EXPECT_EQ(written.RunFrom(0, 100).end, 10u);
  EXPECT_TRUE(written.RunFrom(12, 100).is_written);
  EXPECT_EQ(written.RunFrom(12, 100).end, 15u);
  EXPECT_EQ(written.RunFrom(12, 13).end, 13u);
  EXPECT_FALSE(written.RunFrom(15, 100).is_written);
  EXPECT_EQ(written.RunFrom(15, 100).end, 100u);
}

TEST(WrittenBytesTest, NothingIsNothing) {
  WrittenBytes written;
  written.Add(10, 0);
  EXPECT_TRUE(written.empty());
}

TEST(WrittenBytesTest, AgreesWithOneFlagForEachByte) {
  constexpr size_t kBytes = 200;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int life = 0; life < 200; ++life) {
    WrittenBytes written;
    std::vector<bool> flags(kBytes);
    for (int step = 0; step < 40; ++step) {
      const size_t at = random() % kBytes;
      if (random() % 8 == 0) {
        written.TruncateTo(at);
        std::fill(flags.begin() + static_cast<ptrdiff_t>(at), flags.end(), false);
      } else {
        const size_t length = random() % std::min<size_t>(30, kBytes - at);
        written.Add(at, length);
        std::fill_n(flags.begin() + static_cast<ptrdiff_t>(at), length, true);
      }
      for (uint64_t offset = 0; offset < kBytes;) {
        const WrittenBytes::Run run = written.RunFrom(offset, kBytes);
        ASSERT_GT(run.end, offset);
        for (uint64_t byte = offset; byte < run.end; ++byte) {
          ASSERT_EQ(run.is_written, flags[byte]) << "byte " << byte;
        }
        ASSERT_TRUE(run.end == kBytes || flags[run.end] != run.is_written) << "not the whole run";
        offset = run.end;
      }
    }
  }
}

}  // namespace
}  // namespace h5mirror::vfd
