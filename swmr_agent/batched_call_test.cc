#include "swmr_agent/batched_call.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace h5mirror::agent {
namespace {

TEST(BatchedCallTest, EachAloneAsksAnew) {
  BatchedCall<int> call;
  int asked = 0;
  const auto ask = [&]() -> absl::StatusOr<int> { return ++asked; };
  EXPECT_EQ(*call.Ask(ask), 1);
  EXPECT_EQ(*call.Ask(ask), 2);
}

TEST(BatchedCallTest, AnErrorIsOfThatCallOnly) {
  BatchedCall<int> call;
  EXPECT_EQ(call.Ask([]() -> absl::StatusOr<int> { return absl::UnavailableError("away"); })
                .status()
                .message(),
            "away");
  EXPECT_EQ(*call.Ask([]() -> absl::StatusOr<int> { return 7; }), 7);
}

TEST(BatchedCallTest, WhoComesMeanwhileGetsALaterAnswer) {
  BatchedCall<int> call;
  std::atomic<int> asked = 0;
  absl::Notification begun, go_on;
  std::thread first([&] {
    EXPECT_EQ(*call.Ask([&]() -> absl::StatusOr<int> {
      const int number = ++asked;
      begun.Notify();
      go_on.WaitForNotification();
      return number;
    }),
              1);
  });
  begun.WaitForNotification();
  std::atomic<int> come = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 10; ++i) {
    others.emplace_back([&] {
      ++come;
      EXPECT_GE(*call.Ask([&]() -> absl::StatusOr<int> { return ++asked; }), 2)
          << "the call that was under way may know of less";
    });
  }
  while (come < 10) std::this_thread::yield();
  go_on.Notify();
  first.join();
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace h5mirror::agent
