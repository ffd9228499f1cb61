#include "cluster/node.h"

#include <algorithm>

#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "cluster/claims.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/fake_fencer.h"
#include "cluster/testing/fake_host.h"
#include "cluster/testing/memory_registry.h"
#include "cluster/wishes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server of the test's cluster.
class Server {
 public:
  Server(Registry& registry, Clock& clock, const std::string& id, const std::string& session)
      : registry_(registry),
        node_(registry_, fencer_, host_, clock, Timing(),
              {id, StrCat("host-", id, ":5"), session, {StrCat("address of ", session)}},
              {.on_gone = [this](const absl::Status& why) { gone_.push_back(why); },
               .on_note = nullptr,
               .on_event = [this](const NodeEvent& event) { events_.push_back(event); },
               .on_exit_wanted = [this] { ++exits_wanted_; }}) {}

  int CountOf(NodeEvent::Kind kind) const {
    return static_cast<int>(
        std::count_if(events_.begin(), events_.end(),
                      [kind](const NodeEvent& event) { return event.kind == kind; }));
  }

  // As the two threads would.
  void Turn() {
    node_.Beat();
    node_.Step();
  }

  FailingRegistry registry_;
  FakeFencer fencer_;
  FakeHost host_;
  std::vector<absl::Status> gone_;
  std::vector<NodeEvent> events_;
  int exits_wanted_ = 0;
  Node node_;
};

class NodeTest : public ::testing::Test {
 protected:
  ClusterView View() { return *DecodeView(*registry_.ReadAll()); }
  CellRecord Cell(const std::string& cell) { return View().cells[cell]; }
  ServerState StateOf(const std::string& id) { return View().servers[id].state; }
  std::unique_ptr<Server> Make(const std::string& id, const std::string& session) {
    return std::make_unique<Server>(registry_, clock_, id, session);
  }
  // `seconds` pass for these servers; others stand still.
  void Run(int seconds, const std::vector<Server*>& servers) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      for (Server* const server : servers) server->Turn();
    }
  }
  // A server that has joined and owns the cell "x" at epoch 1.
  std::unique_ptr<Server> MakeOwner() {
    EXPECT_TRUE(CreateCell(registry_, "x").ok());
    auto server = Make("a", "a-1");
    Run(2, {server.get()});
    EXPECT_EQ(Cell("x").owner, "a");
    EXPECT_TRUE(server->node_.guard().Check("x", 1).ok());
    return server;
  }

  FakeClock clock_;
  MemoryRegistry registry_;
};

TEST_F(NodeTest, AServerJoinsAndServesWhatIsFree) {
  EXPECT_TRUE(CreateCell(registry_, "x").ok());
  auto a = Make("a", "a-1");
  EXPECT_EQ(a->node_.phase(), NodePhase::kStarting);
  a->Turn();
  EXPECT_EQ(a->node_.phase(), NodePhase::kJoined);
  EXPECT_EQ(a->node_.Find("x", 0).kind, RouteKind::kWait);
  Run(1, {a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kOwning);
  EXPECT_THAT(a->host_.calls(), ElementsAre("open x@1 clean"));
  EXPECT_EQ(Cell("x").state, CellState::kServed);
  const Route route = a->node_.Find("x", 0);
  EXPECT_EQ(route.kind, RouteKind::kServe);
  EXPECT_TRUE(a->node_.guard().Check("x", route.epoch).ok());
  EXPECT_TRUE(a->node_.guard().BeforeAck("x", route.epoch).ok());
}

TEST_F(NodeTest, NothingIsAnsweredUntilTheStoreIsOpen) {
  EXPECT_TRUE(CreateCell(registry_, "x").ok());
  auto a = Make("a", "a-1");
  a->host_.Hold();
  Run(5, {a.get()});
  EXPECT_EQ(Cell("x").state, CellState::kOpening);
  EXPECT_TRUE(absl::IsFailedPrecondition(a->node_.guard().Check("x", 1)));
  EXPECT_THAT(a->host_.calls(), ElementsAre("open x@1 clean")) << "once";
  EXPECT_THAT(a->host_.served(), IsEmpty());
  a->host_.Release(absl::OkStatus());
  EXPECT_THAT(a->host_.served(), IsEmpty()) << "its guard does not pass answers yet";
  Run(5, {a.get()});
  EXPECT_TRUE(a->node_.guard().Check("x", 1).ok());
  EXPECT_THAT(a->host_.served(), ElementsAre("x@1")) << "once";
}

TEST_F(NodeTest, ASilentOwnerIsGivenUpFencedAndFollowed) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(7, {b.get()});
  EXPECT_THAT(b->fencer_.calls(), ElementsAre("a-1"));
  EXPECT_EQ(StateOf("a"), ServerState::kFenced);
  EXPECT_THAT(b->host_.calls(), ElementsAre("open x@2 recovers"));
  EXPECT_TRUE(b->node_.guard().Check("x", 2).ok());

  // It wakes up.
  EXPECT_TRUE(absl::IsUnavailable(a->node_.guard().Check("x", 1))) << "by its clock";
  EXPECT_TRUE(absl::IsInternal(a->node_.guard().BeforeAck("x", 1)));
  a->Turn();
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  ASSERT_EQ(a->gone_.size(), 1u);
  EXPECT_TRUE(absl::IsInternal(a->gone_[0]));
  a->Turn();
  EXPECT_EQ(a->gone_.size(), 1u) << "told once";
}

TEST_F(NodeTest, NothingIsTakenBeforeTheOwnerIsFenced) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  b->fencer_.SetResult(absl::UnavailableError("no MDS"));
  Run(30, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kDead);
  EXPECT_EQ(Cell("x").owner, "a");
  EXPECT_THAT(b->host_.calls(), IsEmpty());
  b->fencer_.SetResult(absl::OkStatus());
  Run(1, {b.get()});
  EXPECT_EQ(Cell("x").owner, "b");
}

TEST_F(NodeTest, AFencerThatIsFencedItselfEnds) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  b->fencer_.SetResult(absl::InternalError("ESHUTDOWN"));
  Run(10, {b.get()});
  EXPECT_EQ(b->node_.phase(), NodePhase::kGone);
  EXPECT_EQ(StateOf("a"), ServerState::kDead);
}

// The fencer died between dead and fenced. The next one repeats all of it.
TEST_F(NodeTest, AnotherServerEndsWhatAFencerHasBegun) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  b->fencer_.SetResult(absl::UnavailableError("it hangs"));
  Run(8, {b.get()});
  ASSERT_EQ(StateOf("a"), ServerState::kDead);
  auto c = Make("c", "c-1");
  Run(3, {c.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kDead) << "it leaves it to the other one for a while";
  Run(5, {c.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kFenced);
  EXPECT_THAT(c->fencer_.calls(), ::testing::Contains("a-1"));
}

TEST_F(NodeTest, ABeatAtTheLastMomentSavesTheOwner) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(6, {b.get()});
  ASSERT_EQ(StateOf("a"), ServerState::kUp);
  bool has_beaten = false;
  b->registry_.BeforeNextChange([&] {
    // Between b's look and its change; the first change of a turn is b's own beat.
    b->registry_.BeforeNextChange([&] {
      a->node_.Beat();
      has_beaten = true;
    });
  });
  Run(1, {b.get()});
  EXPECT_TRUE(has_beaten);
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  EXPECT_THAT(b->fencer_.calls(), IsEmpty());
}

TEST_F(NodeTest, WhereTheRegistryIsAwayNobodyIsGivenUp) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(3, {a.get(), b.get()});
  for (Server* const server : {a.get(), b.get()}) {
    server->registry_.FailAll(absl::UnavailableError("away"));
  }
  Run(60, {a.get(), b.get()});
  EXPECT_TRUE(absl::IsUnavailable(a->node_.guard().Check("x", 1)));
  for (Server* const server : {a.get(), b.get()}) server->registry_.FailAll(absl::OkStatus());
  // The owner is the last one to come back.
  Run(4, {b.get()});
  Run(5, {a.get(), b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  EXPECT_TRUE(a->node_.guard().Check("x", 1).ok());
  EXPECT_THAT(a->gone_, IsEmpty());
}

TEST_F(NodeTest, ADrainGivesCellsAwayInOrder) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  a->node_.Drain();
  Run(1, {a.get()});
  EXPECT_THAT(a->host_.calls(), ElementsAre("open x@1 clean", "close x@1"));
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  ASSERT_EQ(a->gone_.size(), 1u);
  EXPECT_TRUE(a->gone_[0].ok()) << a->gone_[0];
  EXPECT_EQ(StateOf("a"), ServerState::kGone);
  EXPECT_EQ(Cell("x").state, CellState::kFree);
  Run(1, {b.get()});
  EXPECT_THAT(b->host_.calls(), ElementsAre("open x@2 clean"));
  EXPECT_THAT(b->fencer_.calls(), IsEmpty());
}

TEST_F(NodeTest, ADrainWaitsForItsStores) {
  auto a = MakeOwner();
  a->host_.Hold();
  a->node_.Drain();
  Run(20, {a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kDraining);
  EXPECT_EQ(Cell("x").state, CellState::kDraining);
  EXPECT_EQ(StateOf("a"), ServerState::kDraining);
  EXPECT_TRUE(absl::IsFailedPrecondition(a->node_.guard().Check("x", 1)));
  a->host_.Release(absl::OkStatus());
  Run(1, {a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
}

TEST_F(NodeTest, AStoreThatCannotBeClosedEndsItsServer) {
  auto a = MakeOwner();
  a->host_.SetResult(absl::InternalError("EIO"));
  a->node_.Drain();
  Run(1, {a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  ASSERT_EQ(a->gone_.size(), 1u);
  EXPECT_THAT(std::string(a->gone_[0].message()), HasSubstr("EIO"));
  EXPECT_EQ(Cell("x").state, CellState::kDraining) << "it is to be fenced";
}

TEST_F(NodeTest, AServerThatDiesWhileItDrainsIsFollowed) {
  auto a = MakeOwner();
  a->host_.Hold();
  a->node_.Drain();
  Run(2, {a.get()});
  auto b = Make("b", "b-1");
  Run(8, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kFenced);
  EXPECT_THAT(b->host_.calls(), ElementsAre("open x@2 recovers"));
}

TEST_F(NodeTest, ADrainBeforeTheJoinEndsAtOnce) {
  auto a = Make("a", "a-1");
  a->node_.Drain();
  a->Turn();
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  EXPECT_THAT(View().servers, IsEmpty());
}

TEST_F(NodeTest, TheNextLifeFencesTheOneBefore) {
  auto a = MakeOwner();
  auto again = Make("a", "a-2");
  Run(5, {again.get()});
  EXPECT_EQ(again->node_.phase(), NodePhase::kStarting);
  EXPECT_THAT(again->fencer_.calls(), IsEmpty());
  Run(4, {again.get()});
  EXPECT_THAT(again->fencer_.calls(), ElementsAre("a-1"));
  EXPECT_EQ(View().servers["a"].epoch, 2u);
  EXPECT_THAT(again->host_.calls(), ElementsAre("open x@2 recovers"));
  a->Turn();
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
}

TEST_F(NodeTest, TwoServersWithOneIdAreTold) {
  auto a = MakeOwner();
  auto rival = Make("a", "a-2");
  Run(15, {a.get(), rival.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kOwning);
  EXPECT_EQ(rival->node_.phase(), NodePhase::kGone);
  ASSERT_EQ(rival->gone_.size(), 1u);
  EXPECT_THAT(std::string(rival->gone_[0].message()), HasSubstr("another server runs"));
}

TEST_F(NodeTest, ACellThatCannotBeOpenedGoesToAnother) {
  EXPECT_TRUE(CreateCell(registry_, "x").ok());
  auto a = Make("a", "a-1");
  a->host_.SetResult(absl::DataLossError("the index is torn"));
  Run(2, {a.get()});
  EXPECT_EQ(Cell("x").state, CellState::kFree);
  EXPECT_FALSE(Cell("x").is_clean);
  EXPECT_EQ(a->node_.phase(), NodePhase::kOwning);
  auto b = Make("b", "b-1");
  Run(6, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").owner, "b");
  EXPECT_EQ(Cell("x").state, CellState::kServed);
}

TEST_F(NodeTest, AnOpenThatLeavesAnUnknownStateEndsTheServer) {
  EXPECT_TRUE(CreateCell(registry_, "x").ok());
  auto a = Make("a", "a-1");
  a->host_.SetResult(absl::InternalError("EIO"));
  Run(2, {a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  EXPECT_EQ(Cell("x").state, CellState::kOpening);
}

// Each change of the registry's in turn, over a takeover and a drain.
TEST_F(NodeTest, AnyLostAnswerIsSettled) {
  for (int lost = 1; lost <= 32; ++lost) {
    MemoryRegistry registry;
    ASSERT_TRUE(CreateCell(registry, "x").ok());
    Server dead(registry, clock_, "a", "a-1");
    Run(2, {&dead});
    Server b(registry, clock_, "b", "b-1");
    b.registry_.LoseAnswerOf(lost);
    for (int second = 0; second < 40; ++second) {
      if (second == 20) b.node_.Drain();
      Run(1, {&b});
      if (second == 19) {
        EXPECT_TRUE(b.node_.guard().BeforeAck("x", 2).ok()) << "lost answer " << lost;
      }
    }
    ASSERT_EQ(b.gone_.size(), 1u) << "lost answer " << lost;
    EXPECT_TRUE(b.gone_[0].ok()) << "lost answer " << lost << ": " << b.gone_[0];
    const auto view = DecodeView(*registry.ReadAll());
    EXPECT_EQ(view->FindCell("x")->epoch, 2u) << "lost answer " << lost;
    EXPECT_TRUE(view->FindCell("x")->is_clean) << "lost answer " << lost;
  }
}

TEST_F(NodeTest, ACallerThatHasHeardMoreMakesItRead) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  EXPECT_EQ(b->node_.Find("x", 0).kind, RouteKind::kRedirect);
  EXPECT_EQ(b->node_.Find("x", 1).kind, RouteKind::kWait) << "its owner is known to the caller";
  CellRecord taken = Cell("x");
  taken.owner_epoch = 1;
  taken.owner = "b";
  taken.epoch = 2;
  ++taken.seq;
  ASSERT_TRUE(registry_.CompareAndSet({}, {{"c/x", Encode(taken)}}).ok());
  EXPECT_EQ(a->node_.Find("x", 1).kind, RouteKind::kServe) << "it has not looked";
  const Route route = a->node_.Find("x", 2);
  EXPECT_EQ(route.kind, RouteKind::kWait);
  EXPECT_EQ(a->node_.Find("x", 1).kind, RouteKind::kRedirect);
  EXPECT_EQ(a->node_.Find("nowhere", 0).kind, RouteKind::kNoCell);
  a->registry_.FailAll(absl::UnavailableError("away"));
  EXPECT_EQ(a->node_.Find("x", 9).kind, RouteKind::kWait);
}

// ---- What an operator wants ----

TEST_F(NodeTest, ACellMovesToTheServerThatWasNamed) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  auto c = Make("c", "c-1");
  const std::vector<Server*> all = {a.get(), b.get(), c.get()};
  Run(2, all);
  for (Server* const to : {c.get(), b.get()}) {
    const std::string id = to == b.get() ? "b" : "c";
    ASSERT_TRUE(AskToMove(registry_, "x", id).ok());
    Run(3, all);
    EXPECT_EQ(Cell("x").owner, id);
    EXPECT_EQ(Cell("x").state, CellState::kServed);
    EXPECT_TRUE(to->node_.guard().Check("x", Cell("x").epoch).ok());
  }
  EXPECT_THAT(a->host_.calls(), ElementsAre("open x@1 clean", "close x@1"));
  EXPECT_THAT(c->host_.calls(), ElementsAre("open x@2 clean", "close x@2"));
  EXPECT_EQ(a->CountOf(NodeEvent::Kind::kHandedOver), 1);
  EXPECT_EQ(a->node_.counts().handovers, 1u);
  EXPECT_EQ(a->node_.counts().cells_owned, 0u);
  Run(30, all);
  EXPECT_EQ(Cell("x").owner, "b") << "it stays there";
}

TEST_F(NodeTest, ACellWhoseTargetDoesNotComeIsTakenByAnother) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  ASSERT_TRUE(AskToMove(registry_, "x", "b").ok());
  b->registry_.FailAll(absl::UnavailableError("away"));
  Run(3, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").state, CellState::kFree);
  Run(20, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").owner, "a");
  EXPECT_EQ(Cell("x").state, CellState::kServed);
}

TEST_F(NodeTest, ACellWhoseSessionsDoNotEndIsServedOn) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  a->host_.SetRetireResult(absl::UnavailableError("3 sessions have not ended"));
  ASSERT_TRUE(AskToMove(registry_, "x", "b").ok());
  Run(3, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").state, CellState::kServed);
  EXPECT_TRUE(a->node_.guard().BeforeAck("x", 1).ok());
  EXPECT_THAT(a->gone_, IsEmpty());
  Run(33, {a.get(), b.get()});
  EXPECT_THAT(a->host_.calls(),
              ElementsAre("open x@1 clean", "retire x@1", "retire x@1", "retire x@1"))
      << "after 10 s, and 20 s more";
  a->host_.SetRetireResult(absl::OkStatus());
  Run(42, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").owner, "b");
}

TEST_F(NodeTest, AMoveWhoseTargetStartsAgainIsOver) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  a->host_.SetRetireResult(absl::UnavailableError("3 sessions have not ended"));
  ASSERT_TRUE(AskToMove(registry_, "x", "b").ok());
  Run(2, {a.get(), b.get()});
  b->node_.Drain();
  Run(2, {a.get(), b.get()});
  ASSERT_EQ(StateOf("b"), ServerState::kGone);
  auto again = Make("b", "b-2");
  a->host_.SetRetireResult(absl::OkStatus());
  Run(60, {a.get(), again.get()});
  EXPECT_EQ(Cell("x").owner, "a");
  EXPECT_EQ(Cell("x").epoch, 1u);
}

TEST_F(NodeTest, ADrainedServerRunsOnWithoutCells) {
  ASSERT_TRUE(CreateCell(registry_, "y").ok());
  auto a = MakeOwner();
  EXPECT_EQ(Cell("y").owner, "a");
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  Run(8, {a.get(), b.get()});
  EXPECT_THAT(a->host_.calls(),
              ElementsAre("open x@1 clean", "open y@1 clean", "close x@1", "close y@1"))
      << "one after the other";
  EXPECT_EQ(StateOf("a"), ServerState::kDraining);
  EXPECT_EQ(Cell("x").owner, "b");
  EXPECT_EQ(Cell("y").owner, "b");
  EXPECT_THAT(a->gone_, IsEmpty());
  EXPECT_EQ(a->node_.phase(), NodePhase::kDraining);
  EXPECT_EQ(a->CountOf(NodeEvent::Kind::kDrained), 1);
  EXPECT_EQ(a->node_.counts().drains, 1u);
  EXPECT_EQ(a->exits_wanted_, 0);

  Run(30, {a.get(), b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kDraining) << "its beats go on";
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kNone).ok());
  Run(2, {a.get(), b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  ASSERT_TRUE(AskToMove(registry_, "x", "a").ok());
  Run(4, {a.get(), b.get()});
  EXPECT_EQ(Cell("x").owner, "a");
}

TEST_F(NodeTest, ADrainedServerKeepsWhatNobodyCouldTake) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  b->node_.End(absl::InternalError("lost"));
  Run(1, {a.get()});
  // It is found to be lost.
  Run(10, {a.get()});
  EXPECT_EQ(StateOf("b"), ServerState::kFenced);
  EXPECT_EQ(Cell("x").owner, "a");
  EXPECT_EQ(Cell("x").state, CellState::kServed);
  EXPECT_TRUE(a->node_.guard().Check("x", Cell("x").epoch).ok());
  EXPECT_EQ(StateOf("a"), ServerState::kDraining);
  // It gives the cell away as soon as another one could take it.
  auto c = Make("c", "c-1");
  Run(5, {a.get(), c.get()});
  EXPECT_EQ(Cell("x").owner, "c");
  EXPECT_EQ(Cell("x").state, CellState::kServed);
}

TEST_F(NodeTest, AServerThatIsToEndIsToldOnce) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kExit).ok());
  Run(5, {a.get(), b.get()});
  EXPECT_EQ(a->exits_wanted_, 1);
  a->node_.Drain();
  Run(3, {a.get(), b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kGone);
  EXPECT_EQ(Cell("x").owner, "b");
}

TEST_F(NodeTest, AnEvictedServerIsFencedThoughItBeats) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  EXPECT_LE(b->node_.BeatAges(View())["a"], absl::Seconds(1));
  b->node_.Evict(View(), "a", Node::Eviction::kForced);
  b->node_.Evict(View(), "nobody", Node::Eviction::kForced);
  Run(5, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kDead) << "it may answer reads yet";
  Run(1, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kFenced);
  EXPECT_THAT(b->fencer_.calls(), ElementsAre("a-1")) << "once";
  EXPECT_EQ(b->CountOf(NodeEvent::Kind::kEvicted), 1);
  EXPECT_EQ(b->node_.counts().evictions, 1u);
  EXPECT_EQ(b->CountOf(NodeEvent::Kind::kFenced), 1);
  Run(3, {b.get(), a.get()});
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  EXPECT_EQ(Cell("x").owner, "b");
  EXPECT_THAT(b->host_.calls(), ElementsAre("open x@2 recovers"));
  EXPECT_EQ(b->CountOf(NodeEvent::Kind::kTakenOver), 1);
  EXPECT_EQ(b->node_.counts().takeovers, 1u);
  EXPECT_EQ(b->node_.counts().fenced, 1u);
  EXPECT_LE(b->node_.counts().takeover_time, absl::Seconds(9));
}

TEST_F(NodeTest, AnEvictionWithoutForceSparesAServerThatBeats) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  // b's looks are late, and a's beats go on meanwhile.
  for (int i = 0; i < 60; ++i) {
    clock_.Advance(absl::Seconds(1));
    a->Turn();
    b->node_.Beat();
  }
  EXPECT_EQ(b->node_.BeatAges(View()).count("a"), 0u) << "not known";
  b->node_.Evict(View(), "a", Node::Eviction::kIfSilent);
  Run(10, {a.get(), b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  EXPECT_THAT(b->fencer_.calls(), IsEmpty());
}

TEST_F(NodeTest, AnEvictionWithoutForceWaitsForSomeOwnBeats) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  Run(2, {b.get()});
  EXPECT_GE(b->node_.BeatAges(View())["a"], absl::Seconds(2));
  b->node_.Evict(View(), "a", Node::Eviction::kIfSilent);
  Run(1, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  Run(1, {b.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kDead);
  EXPECT_EQ(b->CountOf(NodeEvent::Kind::kEvicted), 1);
}

TEST_F(NodeTest, AnEvictionIsForTheLifeThatWasSeen) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  Run(2, {a.get(), b.get()});
  const ClusterView seen = View();
  a->node_.Drain();
  Run(2, {a.get(), b.get()});
  ASSERT_EQ(StateOf("a"), ServerState::kGone);
  auto again = Make("a", "a-2");
  Run(1, {again.get()});
  ASSERT_EQ(View().servers["a"].epoch, 2u);
  b->node_.Evict(seen, "a", Node::Eviction::kForced);
  Run(5, {b.get(), again.get()});
  EXPECT_EQ(StateOf("a"), ServerState::kUp);
  EXPECT_THAT(b->fencer_.calls(), IsEmpty());
}

TEST_F(NodeTest, ATakeoverThatSucceedsAtTheSecondTryIsOne) {
  auto a = MakeOwner();
  auto b = Make("b", "b-1");
  b->host_.SetResult(absl::FailedPreconditionError("the lock is held"));
  Run(8, {b.get()});
  EXPECT_EQ(b->node_.counts().takeovers, 0u);
  b->host_.SetResult(absl::OkStatus());
  Run(20, {b.get()});
  EXPECT_EQ(Cell("x").state, CellState::kServed);
  EXPECT_EQ(b->node_.counts().takeovers, 1u);
  EXPECT_GE(b->node_.counts().takeover_time, absl::Seconds(10)) << "from the loss on";
}

TEST_F(NodeTest, TheServersOwnReasonEndsIt) {
  auto a = MakeOwner();
  a->node_.End(absl::InternalError("the disk fails"));
  EXPECT_EQ(a->node_.phase(), NodePhase::kGone);
  EXPECT_TRUE(absl::IsInternal(a->node_.guard().Check("x", 1)));
  const int changes = a->registry_.change_count();
  Run(3, {a.get()});
  EXPECT_EQ(a->registry_.change_count(), changes) << "no beat follows";
}

}  // namespace
}  // namespace h5mirror::cluster
