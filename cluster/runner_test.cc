#include "cluster/runner.h"

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "cluster/claims.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

// Far beyond what any machine needs.
constexpr absl::Duration kLong = absl::Minutes(2);

Timing Fast() {
  Timing timing;
  timing.beat_every = absl::Milliseconds(1);
  timing.valid_for = kLong;
  return timing;
}

// Tells of the first open and of the end.
class RunnerTest : public ::testing::Test, public CellHost {
 public:
  void Open(const std::string& /*cell*/, uint64_t /*epoch*/, Recovery /*recovery*/,
            Done done) override {
    done(absl::OkStatus());
    opened_.Notify();
  }
  void Close(const std::string& /*cell*/, uint64_t /*epoch*/, Done done) override {
    done(absl::OkStatus());
  }

 protected:
  // Waits, with turns of the node's threads in between.
  template <typename Condition>
  void Await(const Condition& condition) {
    const absl::Time deadline = absl::Now() + kLong;
    while (!condition() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_TRUE(condition());
  }

  SystemClock clock_;
  MemoryRegistry memory_;
  FailingRegistry registry_{memory_};
  FakeFencer fencer_;
  absl::Notification opened_, gone_;
  absl::Status why_ = absl::UnknownError("not gone");
  Node node_{registry_,
             fencer_,
             *this,
             clock_,
             Fast(),
             {"a", "host-a:5", "a-1", {"address"}},
             {[this](const absl::Status& why) {
                why_ = why;
                gone_.Notify();
              },
              nullptr}};
};

TEST_F(RunnerTest, ANodeServesAndDrains) {
  ASSERT_TRUE(CreateCell(memory_, "x").ok());
  Runner runner(node_, clock_, Fast());
  ASSERT_TRUE(opened_.WaitForNotificationWithTimeout(kLong));
  Await([this] { return node_.guard().BeforeAck("x", 1).ok(); });
  EXPECT_FALSE(runner.AwaitGone(absl::ZeroDuration()));
  node_.Drain();
  EXPECT_TRUE(runner.AwaitGone(kLong));
  ASSERT_TRUE(gone_.WaitForNotificationWithTimeout(kLong));
  EXPECT_TRUE(why_.ok()) << why_;
}

// Its next step would be an hour later.
TEST_F(RunnerTest, ACellThatWasOpenedIsServedBeforeTheNextBeat) {
  Timing slow = Fast();
  slow.beat_every = absl::Hours(1);
  slow.valid_for = absl::Hours(4);
  FakeHost host;
  host.Hold();
  Node node{registry_, fencer_, host, clock_, slow, {"b", "host-b:5", "b-1", {"address"}}, {}};
  ASSERT_TRUE(CreateCell(memory_, "x").ok());
  node.Step();
  node.Beat();
  Runner runner(node, clock_, slow);
  Await([&host] { return !host.calls().empty(); });
  EXPECT_FALSE(node.guard().BeforeAck("x", 1).ok());
  host.Release(absl::OkStatus());
  Await([&node] { return node.guard().BeforeAck("x", 1).ok(); });
}

// Its next step, and its next beat, would be an hour later.
TEST_F(RunnerTest, ADrainWaitsForNoBeat) {
  Timing slow = Fast();
  slow.beat_every = absl::Hours(1);
  slow.valid_for = absl::Hours(4);
  FakeHost host;
  Node node{registry_, fencer_, host, clock_, slow, {"b", "host-b:5", "b-1", {"address"}}, {}};
  ASSERT_TRUE(CreateCell(memory_, "x").ok());
  node.Step();
  node.Beat();
  Runner runner(node, clock_, slow);
  Await([&node] { return node.guard().BeforeAck("x", 1).ok(); });
  node.Drain();
  EXPECT_TRUE(runner.AwaitGone(kLong));
}

TEST_F(RunnerTest, BothThreadsEndWithTheNode) {
  Runner runner(node_, clock_, Fast());
  Await([this] { return node_.phase() == NodePhase::kOwning; });
  registry_.FailAll(absl::InternalError("fenced"));
  EXPECT_TRUE(runner.AwaitGone(kLong));
  EXPECT_TRUE(absl::IsInternal(why_)) << why_;
}

TEST_F(RunnerTest, AStoppedRunnerLeavesTheNodeAsItIs) {
  {
    Runner runner(node_, clock_, Fast());
    Await([this] { return node_.phase() == NodePhase::kOwning; });
    runner.Stop();
    const int changes = registry_.change_count();
    EXPECT_FALSE(runner.AwaitGone(absl::ZeroDuration()));
    EXPECT_EQ(registry_.change_count(), changes);
  }
  EXPECT_EQ(node_.phase(), NodePhase::kOwning);
  EXPECT_FALSE(gone_.HasBeenNotified());
}

}  // namespace
}  // namespace h5mirror::cluster
