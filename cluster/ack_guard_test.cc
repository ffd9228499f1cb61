#include "cluster/ack_guard.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/testing/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::HasSubstr;

class AckGuardTest : public ::testing::Test {
 protected:
  // Sends a beat, which succeeds after `takes`.
  void Beat(absl::Duration takes = absl::ZeroDuration()) {
    const absl::Duration sent_at = clock_.Monotonic();
    clock_.Advance(takes);
    guard_.Renew(sent_at);
  }

  FakeClock clock_;
  absl::Status answer_;
  int asked_ = 0;
  AckGuard guard_{clock_, absl::Seconds(4), [this] {
                    ++asked_;
                    return answer_;
                  }};
};

TEST_F(AckGuardTest, NothingPassesBeforeTheFirstBeat) {
  guard_.Add("x", 3);
  const absl::Status checked = guard_.Check("x", 3);
  EXPECT_TRUE(absl::IsUnavailable(checked)) << checked;
  EXPECT_FALSE(guard_.is_open());
}

TEST_F(AckGuardTest, OnlyTheOwnEpochOfACellPasses) {
  Beat();
  guard_.Add("x", 3);
  EXPECT_TRUE(guard_.Check("x", 3).ok());
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{2}, uint64_t{4}}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(guard_.Check("x", epoch))) << epoch;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(guard_.Check("x/y", 3)));
  guard_.Drop("x");
  EXPECT_TRUE(absl::IsFailedPrecondition(guard_.Check("x", 3)));
}

TEST_F(AckGuardTest, TimeCountsFromBeforeTheBeatWasSent) {
  guard_.Add("x", 3);
  Beat(absl::Seconds(3));
  clock_.Advance(absl::Milliseconds(999));
  EXPECT_TRUE(guard_.Check("x", 3).ok());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(guard_.Check("x", 3)));
}

TEST_F(AckGuardTest, ABeatThatTookTooLongOpensNothing) {
  guard_.Add("x", 3);
  Beat(absl::Seconds(5));
  const absl::Status checked = guard_.Check("x", 3);
  EXPECT_TRUE(absl::IsUnavailable(checked));
  EXPECT_THAT(std::string(checked.message()), HasSubstr("5 s"));
}

TEST_F(AckGuardTest, ALaterBeatOpensAgainAndAnOlderOneTakesNothingAway) {
  guard_.Add("x", 3);
  Beat();
  clock_.Advance(absl::Minutes(1));
  EXPECT_FALSE(guard_.is_open());
  Beat();
  EXPECT_TRUE(guard_.Check("x", 3).ok());
  guard_.Renew(clock_.Monotonic() - absl::Seconds(30));
  EXPECT_TRUE(guard_.Check("x", 3).ok());
}

TEST_F(AckGuardTest, ClosedIsForGoodAndTheFirstReasonStays) {
  guard_.Add("x", 3);
  Beat();
  guard_.Close(absl::AbortedError("declared dead"));
  guard_.Close(absl::AbortedError("another reason"));
  Beat();
  const absl::Status checked = guard_.Check("x", 3);
  EXPECT_TRUE(absl::IsInternal(checked)) << checked;
  EXPECT_THAT(std::string(checked.message()), HasSubstr("declared dead"));
}

TEST_F(AckGuardTest, AnAckAsksTheRegistryFirst) {
  guard_.Add("x", 3);
  Beat();
  EXPECT_TRUE(guard_.BeforeAck("x", 3).ok());
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(guard_.BeforeAck("x", 3).ok());
  EXPECT_EQ(asked_, 2) << "what was read before is no answer";
  EXPECT_TRUE(absl::IsFailedPrecondition(guard_.BeforeAck("x", 2)));
  answer_ = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(guard_.BeforeAck("x", 3)));
}

TEST_F(AckGuardTest, AReadAsksNobody) {
  guard_.Add("x", 3);
  Beat();
  EXPECT_TRUE(guard_.Check("x", 3).ok());
  EXPECT_EQ(asked_, 0);
}

// Time that passes during the question counts, as do cells that go.
TEST(AckGuardThreadsTest, TheCheckFollowsTheAnswer) {
  FakeClock clock;
  AckGuard guard(clock, absl::Seconds(4), [&] {
    clock.Advance(absl::Seconds(4));
    return absl::OkStatus();
  });
  guard.Add("x", 1);
  guard.Renew(clock.Monotonic());
  EXPECT_TRUE(absl::IsUnavailable(guard.BeforeAck("x", 1)));
}

// One read is held. Callers that come meanwhile do not take its answer, and share the next.
TEST(AckGuardThreadsTest, CallersThatComeDuringAReadShareTheNextOne) {
  constexpr int kCallers = 8;
  FakeClock clock;
  std::atomic<int> asked{0};
  absl::Notification is_held, goes_on;
  AckGuard guard(clock, absl::Seconds(4), [&] {
    if (++asked > 1) return absl::UnavailableError("the later answer");
    is_held.Notify();
    goes_on.WaitForNotification();
    return absl::OkStatus();
  });
  guard.Add("x", 1);
  guard.Renew(clock.Monotonic());

  absl::Status first;
  std::thread leader([&] { first = guard.BeforeAck("x", 1); });
  is_held.WaitForNotification();
  std::vector<absl::Status> answers(kCallers);
  std::vector<std::thread> threads;
  for (absl::Status& answer : answers) {
    threads.emplace_back([&guard, &answer] { answer = guard.BeforeAck("x", 1); });
  }
  goes_on.Notify();
  leader.join();
  for (std::thread& thread : threads) thread.join();

  EXPECT_TRUE(first.ok()) << first;
  for (const absl::Status& answer : answers) {
    EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
  }
  EXPECT_GE(asked, 2);
  EXPECT_LE(asked, 1 + kCallers);
}

}  // namespace
}  // namespace h5mirror::cluster
