// Shares of a limit, and turns of a pool.
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/calls/fair_limit.h"
#include "server/calls/fair_pool.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;

// As many as it gets.
int TakeAll(FairLimit& limit, const std::string& principal) {
  int count = 0;
  while (limit.Take(principal, 1)) ++count;
  return count;
}

TEST(FairLimitTest, OneAloneHasItsShare) {
  for (const int percent : {50, 75, 90, 100}) {
    FairLimit limit(1000, percent);
    EXPECT_EQ(TakeAll(limit, "a"), percent * 10);
  }
}

TEST(FairLimitTest, WhoComesLaterGetsSome) {
  FairLimit limit(1024, 50);
  for (const int expected : {512, 256, 128, 64, 32, 16, 8, 4, 2, 1}) {
    EXPECT_EQ(TakeAll(limit, "principal " + std::to_string(expected)), expected);
  }
}

TEST(FairLimitTest, WhatIsGivenBackGoesToThoseThatHaveLess) {
  FairLimit limit(100, 50);
  EXPECT_EQ(TakeAll(limit, "a"), 50);
  EXPECT_EQ(TakeAll(limit, "b"), 25);
  for (int i = 0; i < 20; ++i) limit.GiveBack("a", 1);
  // 45 are left: b goes on until it has as many as are left then.
  EXPECT_EQ(TakeAll(limit, "b"), 10);
  EXPECT_EQ(TakeAll(limit, "a"), 3);
}

TEST(FairLimitTest, TheLastOneIsNotGivenTwice) {
  FairLimit limit(1, 50);
  EXPECT_TRUE(limit.Take("a", 1));
  EXPECT_FALSE(limit.Take("b", 1));
  limit.GiveBack("a", 1);
  EXPECT_TRUE(limit.Take("b", 1));
}

TEST(FairLimitTest, NoCostOverflows) {
  FairLimit limit(UINT64_MAX, 50);
  EXPECT_TRUE(limit.Take("a", UINT64_MAX - 1));
  EXPECT_FALSE(limit.Take("b", UINT64_MAX));
  EXPECT_TRUE(limit.Take("b", 1));
}

TEST(FairPoolTest, EachPrincipalHasATaskInTurn) {
  absl::Mutex mutex;
  std::vector<int> order;
  absl::Notification go;
  absl::BlockingCounter left(5);
  {
    FairPool pool(1, "fair pool");
    pool.Schedule("a", [&] { go.WaitForNotification(); });
    const auto task = [&](int number) {
      return [&, number] {
        absl::MutexLock lock(&mutex);
        order.push_back(number);
        left.DecrementCount();
      };
    };
    for (const int number : {1, 2, 3, 4}) pool.Schedule("a", task(number));
    pool.Schedule("b", task(10));
    EXPECT_TRUE(pool.HasWaiting());
    go.Notify();
    left.Wait();
  }
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(order, ElementsAre(10, 1, 2, 3, 4));
}

TEST(FairPoolTest, OnePrincipalLeavesOthersAThread) {
  absl::Notification end, has_come;
  {
    FairPool pool(4, "fair pool");
    for (int i = 0; i < 20; ++i) {
      pool.Schedule("a", [&] { end.WaitForNotification(); });
    }
    pool.Schedule("b", [&] { has_come.Notify(); });
    EXPECT_TRUE(has_come.WaitForNotificationWithTimeout(absl::Seconds(60)));
    end.Notify();
  }
}

}  // namespace
}  // namespace h5mirror::server
