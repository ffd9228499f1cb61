#include <memory>
#include <vector>

#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "cluster/claims.h"
#include "cluster/node.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

struct Server {
  Server(Registry& registry, Clock& clock, const std::string& id)
      : registry(registry),
        node(this->registry, fencer, host, clock, Timing(),
             {id, StrCat("host-", id, ":5"), StrCat(id, "-1"), {"address"}}, {}) {}

  FailingRegistry registry;
  FakeFencer fencer;
  FakeHost host;
  Node node;
};

class NodeLooksTest : public ::testing::Test {
 protected:
  NodeLooksTest() {
    EXPECT_TRUE(CreateCell(registry_, "x").ok());
    Run(2, {&a_});  // It has the cell.
    Run(2, {&a_, &b_, &c_});
  }
  // `seconds` pass for these servers; others stand still.
  void Run(int seconds, const std::vector<Server*>& servers) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      for (Server* const server : servers) {
        server->node.Beat();
        server->node.Step();
      }
    }
  }

  FakeClock clock_;
  MemoryRegistry registry_;
  Server a_{registry_, clock_, "a"};
  Server b_{registry_, clock_, "b"};
  Server c_{registry_, clock_, "c"};
};

TEST_F(NodeLooksTest, AServerThatMayBeSilentIsLookedAtMoreOften) {
  EXPECT_EQ(b_.node.StepEvery(), Timing().beat_every);
  Run(3, {&b_, &c_});
  EXPECT_EQ(b_.node.StepEvery(), Timing().beat_every / 5);
  Run(1, {&a_, &b_, &c_});
  EXPECT_EQ(b_.node.StepEvery(), Timing().beat_every) << "it beats again";
}

TEST_F(NodeLooksTest, WithoutARegistryThereIsNothingToHurryFor) {
  Run(3, {&b_, &c_});
  b_.registry.FailAll(absl::UnavailableError("away"));
  Run(2, {&b_});
  EXPECT_EQ(b_.node.StepEvery(), Timing().beat_every);
}

TEST_F(NodeLooksTest, ACallerLearnsOfANewServerBeforeTheNextLook) {
  a_.host.Hold();
  a_.node.Drain();
  Run(2, {&a_, &b_, &c_});
  EXPECT_EQ(c_.node.Find("x", 0).kind, RouteKind::kWait) << "it is being closed";
  a_.host.Release(absl::OkStatus());
  Run(1, {&a_});
  EXPECT_EQ(a_.node.phase(), NodePhase::kGone);
  Run(5, {&b_});
  EXPECT_EQ(c_.node.cells().Resolve("x", 0).kind, RouteKind::kWait) << "it has not looked";
  EXPECT_EQ(c_.node.Find("x", 0).owner, "b");
}

// Each of many callers that wait for a cell asks several times a second.
TEST_F(NodeLooksTest, CallersTogetherCauseFewLooks) {
  a_.host.Hold();
  a_.node.Drain();
  Run(2, {&a_, &b_, &c_});
  EXPECT_EQ(c_.node.Find("x", 0).kind, RouteKind::kWait);
  a_.host.Release(absl::OkStatus());
  Run(1, {&a_});
  EXPECT_EQ(c_.node.Find("x", 0).kind, RouteKind::kWait);
  b_.node.Beat();
  b_.node.Step();  // In the same moment.
  EXPECT_EQ(c_.node.Find("x", 0).kind, RouteKind::kWait) << "it looked in this moment";
  clock_.Advance(absl::Milliseconds(200));
  EXPECT_EQ(c_.node.Find("x", 0).owner, "b");
}

}  // namespace
}  // namespace h5mirror::cluster
