#include "onion_store/shared/background.h"

#include <atomic>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

// Comes back after a time so short that it is over before the thread has gone to sleep.
struct Ticker final : BackgroundWorker {
  absl::Time RunBackground() override {
    ++count;
    return absl::Now() + absl::Nanoseconds(count % 3000);
  }
  std::atomic<int> count{0};
};

TEST(BackgroundTest, NoDueTimeIsSleptOver) {
  constexpr int kRuns = 20'000;
  auto ticker = std::make_shared<Ticker>();
  Background background(1);
  background.Post(ticker, absl::InfinitePast());
  absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (ticker->count < kRuns && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_GE(ticker->count, kRuns);
  background.Stop();
}

}  // namespace
}  // namespace h5mirror::store
