// A drain whose answer gets lost, and that is taken back. Seed 4614 of tests/cluster_sim found a
// server that drained for ever.
#include <memory>

#include "absl/time/time.h"
#include "base/testing/fake_clock.h"
#include "cluster/claims.h"
#include "cluster/node.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "cluster/wishes.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

struct Server {
  Server(Registry& all, Clock& clock, const std::string& id)
      : registry(all),
        node(registry, fencer, host, clock, Timing(), {id, id + ":5", id + "-1", {}}, {}) {}

  FailingRegistry registry;
  FakeFencer fencer;
  FakeHost host;
  Node node;
};

class NodeDrainTest : public ::testing::Test {
 protected:
  void SetUp() override { RunBoth(2); }
  void RunBoth(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      for (Server* const server : {&a_, &b_}) {
        server->node.Beat();
        server->node.Step();
      }
    }
  }
  ServerState StateOfA() { return ReadCluster(registry_)->servers["a"].state; }

  FakeClock clock_;
  MemoryRegistry registry_;
  Server a_{registry_, clock_, "a"};
  Server b_{registry_, clock_, "b"};
};

TEST_F(NodeDrainTest, TakenBackBeforeItsAnswerHasComeItIsOver) {
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  a_.registry.LoseNextAnswer();
  a_.node.Step();
  ASSERT_EQ(StateOfA(), ServerState::kDraining);
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kNone).ok());
  RunBoth(2);
  EXPECT_EQ(StateOfA(), ServerState::kUp);
  EXPECT_EQ(a_.node.counts().drains, 0u) << "nothing was handed over";
}

TEST_F(NodeDrainTest, ALostAnswerStopsNoDrain) {
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  a_.registry.LoseNextAnswer();
  RunBoth(2);
  EXPECT_EQ(StateOfA(), ServerState::kDraining);
  EXPECT_EQ(a_.node.counts().drains, 1u);
}

}  // namespace
}  // namespace h5mirror::cluster
