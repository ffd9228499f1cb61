#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "cluster/claims.h"
#include "cluster/node.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

struct Server {
  Server(Registry& registry, Clock& clock, const std::string& id)
      : node(registry, fencer, host, clock, Timing(),
             {id, StrCat("host-", id, ":5"), StrCat(id, "-1"), {"address"}}, {}) {}

  FakeFencer fencer;
  FakeHost host;
  Node node;
};

class NodeUnservedTest : public ::testing::Test {
 protected:
  NodeUnservedTest() { EXPECT_TRUE(CreateCell(registry_, "x").ok()); }
  CellRecord Cell() { return DecodeView(*registry_.ReadAll())->cells["x"]; }
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
};

TEST_F(NodeUnservedTest, ACellThatCannotBeOpenedCounts) {
  a_.host.SetResult(absl::NotFoundError("x: no such directory"));
  Run(2, {&a_});
  EXPECT_EQ(Cell().state, CellState::kFree);
  Run(1, {&a_});
  EXPECT_EQ(a_.node.counts().cells_unserved, 1u);

  a_.host.SetResult(absl::OkStatus());
  Run(12, {&a_});  // It leaves the cell to others for 10 s.
  EXPECT_EQ(Cell().state, CellState::kServed);
  EXPECT_EQ(a_.node.counts().cells_unserved, 0u);
  EXPECT_EQ(a_.node.counts().cells_owned, 1u);
}

TEST_F(NodeUnservedTest, ACellOfALostServerCounts) {
  Server b(registry_, clock_, "b");
  Run(3, {&a_, &b});
  const bool is_of_a = Cell().owner == "a";
  Server& other = is_of_a ? b : a_;
  Run(1, {&a_, &b});
  EXPECT_EQ(other.node.counts().cells_unserved, 0u);
  other.host.Hold();  // It cannot open the cell meanwhile.
  Run(10, {&other});
  EXPECT_EQ(other.node.counts().cells_unserved, 1u);
}

}  // namespace
}  // namespace h5mirror::cluster
