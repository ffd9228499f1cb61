#include "server/door/refusal_log.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kNow = absl::Hours(1);
constexpr absl::Duration kMs = absl::Milliseconds(1);

TEST(RefusalLog, APeerGetsALineASecondAndACount) {
  RefusalLog log;
  EXPECT_EQ(log.Admit("ipv4:10.0.0.7:51234", kNow), 0u);
  for (int i = 1; i < 1000; ++i) {
    EXPECT_EQ(log.Admit(StrCat("ipv4:10.0.0.7:", 1000 + i), kNow + i * kMs), std::nullopt);
  }
  EXPECT_EQ(log.Admit("ipv4:10.0.0.8:51234", kNow + 5 * kMs), 0u) << "another peer";
  EXPECT_EQ(log.Admit("ipv4:10.0.0.7:51234", kNow + 1000 * kMs), 999u);
  EXPECT_EQ(log.Admit("ipv4:10.0.0.7:51234", kNow + 2000 * kMs), 0u);
}

TEST(RefusalLog, APeerIsAHostNotItsAddresses) {
  RefusalLog log;
  EXPECT_EQ(log.Admit("ipv6:[2001:db8:1:2::1]:5", kNow), 0u);
  EXPECT_EQ(log.Admit("ipv6:%5B2001:db8:1:2:ffff::9%5D:6", kNow), std::nullopt);
  EXPECT_EQ(log.Admit("ipv6:[2001:db8:1:3::1]:5", kNow), 0u);
  EXPECT_EQ(log.Admit("unix:/run/h5mirror.sock", kNow), 0u);
  EXPECT_EQ(log.Admit("unix:", kNow), std::nullopt);
  EXPECT_EQ(log.Admit("", kNow), 0u);
  EXPECT_EQ(log.Admit("", kNow), std::nullopt);
}

TEST(RefusalLog, ManyPeersShareALineAndNoneIsLost) {
  RefusalLog log(8);
  const auto peer = [](int i) { return StrCat("ipv4:10.0.", i / 250, ".", i % 250, ":5"); };
  uint64_t lines = 0, told = 0;
  const auto come = [&](int i, absl::Duration now) {
    const auto left_out = log.Admit(peer(i), now);
    if (!left_out) return;
    ++lines;
    told += *left_out + 1;
  };
  for (int i = 0; i < 2000; ++i) come(i, kNow + i / 4 * kMs);
  EXPECT_EQ(lines, 9u);  // and not one for each
  for (int i = 2000; i < 4000; ++i) come(i, kNow + absl::Seconds(2) + (i - 2000) / 4 * kMs);
  EXPECT_LE(lines, 18u);
  // The last ones are told with the next line.
  come(0, kNow + absl::Seconds(10));
  for (int i = 0; i < 9; ++i) come(5000 + i, kNow + absl::Seconds(20));
  EXPECT_EQ(told, 4010u);
}

}  // namespace
}  // namespace h5mirror::server
