#include "server/door/connection_pacer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr absl::Duration kStart = absl::Hours(1);
constexpr absl::Duration kSpacing = ConnectionPacer::kSpacing;

TEST(ConnectionPacerTest, WithoutACutNobodyWaits) {
  ConnectionPacer pacer;
  for (int i = 0; i < 100; ++i) EXPECT_THAT(pacer.TakeTurn("192.0.2.7", kStart), Optional(kStart));
}

TEST(ConnectionPacerTest, AfterACutConnectionsComeOneByOne) {
  ConnectionPacer pacer;
  pacer.NoteCut("192.0.2.7", kStart);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_THAT(pacer.TakeTurn("192.0.2.7", kStart), Optional(kStart + i * kSpacing));
  }
  EXPECT_THAT(pacer.TakeTurn("192.0.2.8", kStart), Optional(kStart)) << "another address";
}

TEST(ConnectionPacerTest, AQueueThatIsTooLongRefuses) {
  ConnectionPacer pacer;
  pacer.NoteCut("192.0.2.7", kStart);
  const int places = static_cast<int>(ConnectionPacer::kWaitMax / kSpacing);
  for (int i = 0; i < places; ++i) ASSERT_TRUE(pacer.TakeTurn("192.0.2.7", kStart).has_value());
  EXPECT_FALSE(pacer.TakeTurn("192.0.2.7", kStart).has_value());
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", kStart + kSpacing),
              Optional(kStart + (places + 1) * kSpacing));
}

TEST(ConnectionPacerTest, AnAddressThatKeepsQuietIsFreeAgain) {
  ConnectionPacer pacer;
  pacer.NoteCut("192.0.2.7", kStart);
  const absl::Duration later = kStart + ConnectionPacer::kWatch;
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", later), Optional(later));
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", later), Optional(later));
}

TEST(ConnectionPacerTest, ConnectionsThatWaitKeepTheirTurns) {
  ConnectionPacer pacer;
  pacer.NoteCut("192.0.2.7", kStart);
  absl::Duration last;
  for (int i = 0; i < 40; ++i) last = *pacer.TakeTurn("192.0.2.7", kStart);
  const absl::Duration later = kStart + absl::Seconds(3);
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", later), Optional(last + kSpacing));
}

TEST(ConnectionPacerTest, EachCutSpacesAnew) {
  ConnectionPacer pacer;
  pacer.NoteCut("192.0.2.7", kStart);
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", kStart + kSpacing), Optional(kStart + kSpacing));
  pacer.NoteCut("192.0.2.7", kStart + kSpacing * 3 / 2);
  EXPECT_THAT(pacer.TakeTurn("192.0.2.7", kStart + 2 * kSpacing),
              Optional(kStart + kSpacing * 5 / 2));
}

TEST(ConnectionPacerTest, KnowsABoundedNumberOfAddresses) {
  ConnectionPacer pacer(4);
  for (int i = 0; i < 5; ++i) pacer.NoteCut(StrCat("192.0.2.", i), kStart);
  EXPECT_THAT(pacer.TakeTurn("192.0.2.4", kStart), Optional(kStart)) << "the fifth";
  EXPECT_THAT(pacer.TakeTurn("192.0.2.0", kStart), Optional(kStart + kSpacing));
  const absl::Duration later = kStart + absl::Minutes(1);
  pacer.NoteCut("192.0.2.4", later);
  EXPECT_THAT(pacer.TakeTurn("192.0.2.4", later), Optional(later + kSpacing));
}

}  // namespace
}  // namespace h5mirror::server
