#include "server/cluster/ack_queue.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_ownership.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AckQueueTest : public ::testing::Test {
 protected:
  void Put(int number, const std::string& cell = "x") {
    queue_.Put(cell, 3, [this, number](const absl::Status& status) {
      absl::MutexLock lock(&mutex_);
      (status.ok() ? acked_ : refused_).push_back(number);
      last_ = status;
    });
  }
  void AwaitAnswers(size_t count) {
    const auto has = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return acked_.size() + refused_.size() >= count;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&has));
  }

  absl::Mutex mutex_;
  std::vector<int> acked_;
  std::vector<int> refused_;
  absl::Status last_;
  FakeOwnership ownership_;
  AckQueue queue_{ownership_};
};

TEST_F(AckQueueTest, AnswersComeInOrder) {
  for (int i = 0; i < 100; ++i) Put(i);
  AwaitAnswers(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(acked_[static_cast<size_t>(i)], i);
  EXPECT_GE(ownership_.asked(), 1);
}

TEST_F(AckQueueTest, WhileTheRegistryIsAwayAnswersWait) {
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("away"));
  Put(1);
  ownership_.AwaitAsked(3);
  Put(2);
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_THAT(acked_, IsEmpty());
    EXPECT_THAT(refused_, IsEmpty());
  }
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  AwaitAnswers(2);
  EXPECT_THAT(acked_, ElementsAre(1, 2));
}

TEST_F(AckQueueTest, AllCellsShareARead) {
  ownership_.Hold(true);
  Put(1);
  ownership_.AwaitAsked(1);
  for (int i = 2; i <= 9; ++i) Put(i, i % 2 == 0 ? "y" : "z");
  ownership_.Hold(false);
  AwaitAnswers(9);
  EXPECT_EQ(ownership_.asked(), 2);
  EXPECT_EQ(acked_.size(), 9u);
}

// The read says nothing against the other cells.
TEST_F(AckQueueTest, ACellThatIsGoneHoldsNoOther) {
  ownership_.Hold(true);
  ownership_.SetGuard(absl::OkStatus(), absl::FailedPreconditionError("another epoch"));
  Put(1);
  ownership_.AwaitAsked(1);
  Put(2, "y");
  Put(3, "z");
  ownership_.Hold(false);
  AwaitAnswers(3);
  EXPECT_THAT(refused_, ElementsAre(1, 2));
  EXPECT_THAT(acked_, ElementsAre(3));
}

TEST_F(AckQueueTest, AServerThatWasGivenUpAcksNothing) {
  for (const absl::Status& guard :
       {absl::InternalError("given up"), absl::FailedPreconditionError("another epoch")}) {
    ownership_.SetGuard(absl::OkStatus(), guard);
    Put(1);
    AwaitAnswers(refused_.size() + 1);
    EXPECT_TRUE(absl::IsUnavailable(last_)) << last_;
  }
  EXPECT_THAT(acked_, IsEmpty());
}

TEST_F(AckQueueTest, AStopAsksOnceMore) {
  ownership_.SetGuard(absl::OkStatus(), absl::UnavailableError("away"));
  Put(1);
  ownership_.AwaitAsked(1);
  queue_.Stop();
  EXPECT_THAT(refused_, ElementsAre(1));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  Put(2);
  EXPECT_THAT(acked_, ElementsAre(2)) << "by the caller";
}

}  // namespace
}  // namespace h5mirror::server
