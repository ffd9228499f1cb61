#include "onion_store/shared/background.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kThreadsMax = 5;

// Becomes due again so soon that the thread has not gone to sleep yet.
struct Ticker final : BackgroundWorker {
  BackgroundTimes RunBackground(BackgroundPool) override {
    ++count;
    return {.durable = absl::Now() + absl::Nanoseconds(count % 3000)};
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

// Does `run` once for each post.
struct Caller final : BackgroundWorker {
  explicit Caller(std::function<BackgroundTimes(BackgroundPool)> run_in) : run(std::move(run_in)) {}
  BackgroundTimes RunBackground(BackgroundPool pool) override { return run(pool); }
  const std::function<BackgroundTimes(BackgroundPool)> run;
};

// Like a cut that has become durable, and must be applied at once.
TEST(BackgroundTest, WorkThatARunLeavesForTheOtherPoolIsWaitedFor) {
  constexpr int kRounds = 2000;
  for (const int threads : {1, 2}) {
    Background background(threads);
    for (int round = 0; round < kRounds; ++round) {
      auto is_applied = std::make_shared<std::atomic<bool>>(false);
      auto worker = std::make_shared<Caller>([is_applied](BackgroundPool pool) {
        if (pool == BackgroundPool::kDurable) return BackgroundTimes{.apply = absl::Now()};
        *is_applied = true;
        return BackgroundTimes();
      });
      background.Post(worker, absl::InfinitePast());
      ASSERT_TRUE(background.WaitIdle(absl::Now(), kPatience));
      ASSERT_TRUE(*is_applied) << "round " << round << " with " << threads << " threads";
    }
  }
}

class HangingTest : public testing::TestWithParam<BackgroundPool> {
 protected:
  ~HangingTest() override { EndHanging(); }
  void EndHanging() {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
  }
  // Posts `count` workers that hang, and waits until they do.
  void Hang(int count, BackgroundPool pool) {
    const int before = hanging_;
    for (int i = 0; i < count; ++i) {
      workers_.push_back(std::make_shared<Caller>([this](BackgroundPool) {
        ++hanging_;
        go_on_.WaitForNotification();
        return BackgroundTimes();
      }));
      background_.Post(workers_.back(), absl::InfinitePast(), pool);
    }
    const absl::Time deadline = absl::Now() + kPatience;
    while (hanging_ < before + count && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(hanging_, before + count);
  }
  // Whether another worker of `pool` gets a thread.
  bool Runs(BackgroundPool pool) {
    auto done = std::make_shared<absl::Notification>();
    background_.Post(std::make_shared<Caller>([done](BackgroundPool) {
                       done->Notify();
                       return BackgroundTimes();
                     }),
                     absl::InfinitePast(), pool);
    return done->WaitForNotificationWithTimeout(kPatience);
  }

  std::atomic<int> hanging_{0};
  absl::Notification go_on_;
  std::vector<std::shared_ptr<Caller>> workers_;
  Background background_{2, Env::Posix(), kThreadsMax, kThreadsMax};
};

TEST_P(HangingTest, AWorkerThatHangsHoldsUpNobody) {
  Hang(2, BackgroundPool::kApply);
  Hang(2, BackgroundPool::kDurable);
  EXPECT_TRUE(Runs(GetParam()));
  EXPECT_TRUE(Runs(GetParam()));
}

TEST_P(HangingTest, ThereAreNoMoreThreadsThanTheMaximum) {
  Hang(kThreadsMax, GetParam());
  std::atomic<bool> has_run{false};
  background_.Post(std::make_shared<Caller>([&has_run](BackgroundPool) {
                     has_run = true;
                     return BackgroundTimes();
                   }),
                   absl::InfinitePast(), GetParam());
  EXPECT_FALSE(background_.WaitIdle(absl::Now(), 2 * Background::kHangs));
  EXPECT_FALSE(has_run);
  EndHanging();
  EXPECT_TRUE(background_.WaitIdle(absl::Now(), kPatience));
  EXPECT_TRUE(has_run);
}

TEST(BackgroundTest, WhereWorkersWaitForANetworkNoneCounts) {
  constexpr int kWorkers = 8;
  std::atomic<int> run_count{0};
  absl::Notification all_run;
  Background background(2, Env::Posix(), kWorkers, kWorkers, absl::ZeroDuration());
  for (int i = 0; i < kWorkers; ++i) {
    background.Post(std::make_shared<Caller>([&](BackgroundPool) {
                      if (++run_count == kWorkers) all_run.Notify();
                      all_run.WaitForNotificationWithTimeout(kPatience);
                      return BackgroundTimes();
                    }),
                    absl::InfinitePast());
  }
  EXPECT_TRUE(all_run.WaitForNotificationWithTimeout(kPatience));
}

INSTANTIATE_TEST_SUITE_P(, HangingTest,
                         testing::Values(BackgroundPool::kDurable, BackgroundPool::kApply),
                         [](const auto& info) {
                           return info.param == BackgroundPool::kApply ? "Apply" : "Durable";
                         });

TEST(BackgroundTest, AWorkerNeverRunsInBothPoolsAtOnce) {
  constexpr int kRuns = 2000;
  std::atomic<int> inside{0}, durable_runs{0}, apply_runs{0};
  std::atomic<bool> was_two{false};
  Background background(2);
  auto worker = std::make_shared<Caller>([&](BackgroundPool pool) {
    if (++inside > 1) was_two = true;
    ++(pool == BackgroundPool::kDurable ? durable_runs : apply_runs);
    --inside;
    const bool ends = durable_runs >= kRuns && apply_runs >= kRuns;
    return ends ? BackgroundTimes() : BackgroundTimes{absl::Now(), absl::Now()};
  });
  background.Post(worker, absl::InfinitePast());
  EXPECT_TRUE(background.WaitIdle(absl::InfiniteFuture(), kPatience));
  EXPECT_FALSE(was_two);
  EXPECT_GE(durable_runs, kRuns);
  EXPECT_GE(apply_runs, kRuns);
  background.Stop();
}

// A worker that is posted again before its thread is done, like a file that is flushed without a
// pause.
TEST(BackgroundTest, AnApplyComesToItsTurnBesideWorkThatNeverEnds) {
  std::atomic<bool> is_applied{false};
  Background background(2);
  std::shared_ptr<Caller> worker;
  worker = std::make_shared<Caller>([&](BackgroundPool pool) {
    if (pool == BackgroundPool::kApply) {
      is_applied = true;
      return BackgroundTimes();
    }
    return is_applied ? BackgroundTimes() : BackgroundTimes{absl::InfinitePast(), absl::Now()};
  });
  background.Post(worker, absl::InfinitePast());
  EXPECT_TRUE(background.WaitIdle(absl::InfiniteFuture(), kPatience));
  EXPECT_TRUE(is_applied);
  background.Stop();
}

// One thread, or none, does the work of both pools.
TEST(BackgroundTest, OneThreadServesBothPools) {
  for (const int threads : {0, 1}) {
    std::vector<BackgroundPool> runs;
    Background background(threads);
    background.Post(std::make_shared<Caller>([&runs](BackgroundPool pool) {
                      runs.push_back(pool);
                      return pool == BackgroundPool::kDurable
                                 ? BackgroundTimes{.apply = absl::InfinitePast()}
                                 : BackgroundTimes();
                    }),
                    absl::InfinitePast());
    EXPECT_TRUE(background.WaitIdle(absl::InfiniteFuture(), kPatience));
    background.Stop();
    EXPECT_EQ(runs, (std::vector{BackgroundPool::kDurable, BackgroundPool::kApply}));
  }
}

}  // namespace
}  // namespace h5mirror::store
