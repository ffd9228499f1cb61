#include "onion_store/shared/work_lock.h"

#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

void AwaitWanted(const WorkLock& lock) {
  while (!lock.is_wanted()) absl::SleepFor(absl::Milliseconds(1));
}

TEST(WorkLockTest, OneThreadHasIt) {
  WorkLock lock;
  int inside = 0, entered = 0;
  const auto enter = [&] {
    for (int i = 0; i < 1000; ++i) {
      WorkTurn turn(&lock);
      EXPECT_EQ(++inside, 1);
      ++entered;
      --inside;
    }
  };
  std::thread one(enter), other(enter);
  one.join();
  other.join();
  EXPECT_EQ(entered, 2000);
  EXPECT_FALSE(lock.is_wanted());
}

TEST(WorkLockTest, ItsHolderSeesThatAnotherWaitsInTurn) {
  WorkLock lock;
  auto held = std::make_unique<absl::MutexLock>(&lock);
  EXPECT_FALSE(lock.is_wanted());
  std::thread waiting([&] {
    WorkTurn turn(&lock);
    EXPECT_FALSE(lock.is_wanted()) << "it has its turn";
  });
  AwaitWanted(lock);
  held = nullptr;
  waiting.join();
  EXPECT_FALSE(lock.is_wanted());
}

TEST(WorkLockTest, AThreadThatComesAgainAndAgainLetsOthersIn) {
  WorkLock lock;
  bool is_in = false;
  auto held = std::make_unique<WorkTurn>(&lock);
  std::thread waiting([&] {
    WorkTurn turn(&lock);
    is_in = true;
  });
  AwaitWanted(lock);
  held = nullptr;
  // At the first try the thread may not have the turn yet; once it has a turn, it keeps it.
  for (bool done = false; !done;) {
    WorkTurn again(&lock);
    done = is_in;
  }
  waiting.join();
}

TEST(WorkLockTest, AThreadThatTakesTheLockAtOnceHasNoTurn) {
  WorkLock lock;
  auto held = std::make_unique<WorkTurn>(&lock);
  std::thread waiting([&] { absl::MutexLock at_once(&lock); });
  EXPECT_FALSE(lock.is_wanted());
  held = nullptr;
  waiting.join();
}

}  // namespace
}  // namespace h5mirror::store
