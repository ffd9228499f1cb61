// How long servers leave a dead one to the server that gave it up.
#include <string>

#include "absl/time/time.h"
#include "base/testing/fake_clock.h"
#include "cluster/claims.h"
#include "cluster/node.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "cluster/wishes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Server {
  Server(Registry& registry, Clock& clock, const std::string& id)
      : node(registry, fencer, host, clock, Timing(), {id, id + ":5", id + "-1", {}}, {}) {}
  void Turn() {
    node.Beat();
    node.Step();
  }

  FakeFencer fencer;
  FakeHost host;
  Node node;
};

class NodeFenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RunBoth(1);
    RunAll(2);
    b_.node.Evict(View(), "a", Node::Eviction::kForced);
  }
  ClusterView View() { return *ReadCluster(registry_); }
  ServerState StateOfA() { return View().servers["a"].state; }
  // c looks first, and hears of each change a beat later.
  void RunBoth(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      c_.Turn();
      b_.Turn();
    }
  }
  void RunAll(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      RunBoth(1);
      a_.Turn();
    }
  }

  FakeClock clock_;
  MemoryRegistry registry_;
  Server a_{registry_, clock_, "a"};
  Server b_{registry_, clock_, "b"};
  Server c_{registry_, clock_, "c"};
};

TEST_F(NodeFenceTest, AnEvictedServerIsFencedByOneServer) {
  RunBoth(10);
  EXPECT_EQ(StateOfA(), ServerState::kFenced);
  EXPECT_THAT(b_.fencer.calls(), ElementsAre("a-1"));
  EXPECT_THAT(c_.fencer.calls(), IsEmpty());
}

TEST_F(NodeFenceTest, WhereTheOneThatEvictedItEndsAnotherFencesIt) {
  RunBoth(1);
  ASSERT_EQ(StateOfA(), ServerState::kDead);
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(1));
    c_.Turn();
  }
  EXPECT_EQ(StateOfA(), ServerState::kFenced);
  EXPECT_THAT(c_.fencer.calls(), ::testing::Contains("a-1"));
}

}  // namespace
}  // namespace h5mirror::cluster
