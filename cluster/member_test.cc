#include "cluster/member.h"

#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/memory_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::HasSubstr;

class MemberTest : public ::testing::Test {
 protected:
  ClusterView View() { return *DecodeView(*memory_.ReadAll()); }
  ServerRecord Record() { return View().servers["a"]; }
  // As another server, or an earlier life, would set the record.
  void SetRecord(const ServerRecord& record) {
    ASSERT_TRUE(memory_.CompareAndSet({}, {{"s/a", Encode(record)}}).ok());
  }
  void SetState(ServerState state) {
    ServerRecord record = Record();
    record.state = state;
    SetRecord(record);
  }
  void Join() {
    const absl::Status joined = member_.Join(View());
    ASSERT_TRUE(joined.ok()) << joined;
  }

  FakeClock clock_;
  MemoryRegistry memory_;
  FailingRegistry registry_{memory_};
  AckGuard guard_{clock_, absl::Seconds(4), [] { return absl::OkStatus(); }};
  Member member_{registry_, clock_, guard_, {"a", "h:5", "life-2", {"v2:10.0.0.1:0/5"}}};
};

TEST_F(MemberTest, TheFirstLifeHasEpochOneAndAnOpenGuard) {
  EXPECT_EQ(member_.epoch(), 0u);
  Join();
  EXPECT_EQ(member_.epoch(), 1u);
  EXPECT_EQ(Record(), (ServerRecord{1, ServerState::kUp, "h:5", "life-2", {"v2:10.0.0.1:0/5"}}));
  EXPECT_EQ(View().beats["a"], (BeatRecord{1, 1}));
  EXPECT_TRUE(guard_.is_open());
}

TEST_F(MemberTest, TheNextLifeBeginsWhenTheOneBeforeIsOver) {
  for (const ServerState state : {ServerState::kUp, ServerState::kDraining, ServerState::kDead}) {
    SetRecord({7, state, "", "life-1", {}});
    EXPECT_TRUE(absl::IsAlreadyExists(member_.Join(View())));
  }
  SetRecord({7, ServerState::kFenced, "", "life-1", {}});
  Join();
  EXPECT_EQ(member_.epoch(), 8u);
}

TEST_F(MemberTest, OfTwoThatJoinOneWins) {
  registry_.BeforeNextChange([this] { SetRecord({1, ServerState::kUp, "", "life-1", {}}); });
  EXPECT_TRUE(absl::IsUnavailable(member_.Join(View())));
  EXPECT_TRUE(absl::IsAlreadyExists(member_.Join(View())));
  EXPECT_EQ(member_.epoch(), 0u);
}

TEST_F(MemberTest, AJoinWhoseAnswerIsLostIsFound) {
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.Join(View())));
  EXPECT_FALSE(guard_.is_open());
  Join();
  EXPECT_EQ(member_.epoch(), 1u);
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_TRUE(guard_.is_open());
}

TEST_F(MemberTest, AJoinThatWasFoundTooLateIsOver) {
  registry_.LoseNextAnswer();
  member_.Join(View()).IgnoreError();
  SetState(ServerState::kDead);
  EXPECT_TRUE(absl::IsInternal(member_.Join(View())));
  EXPECT_TRUE(absl::IsInternal(member_.over()));
}

TEST_F(MemberTest, BeatsCountAndKeepTheGuardOpen) {
  EXPECT_TRUE(absl::IsUnavailable(member_.Beat())) << "it has not joined";
  Join();
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(member_.Beat().ok());
    EXPECT_TRUE(guard_.is_open());
  }
  EXPECT_EQ(View().beats["a"], (BeatRecord{1, 11}));
  EXPECT_EQ(member_.own_beats().succeeded, 10u);
  EXPECT_EQ(member_.own_beats().failed, 0u);
}

TEST_F(MemberTest, ARegistryThatIsAwayEndsNobody) {
  Join();
  registry_.FailAll(absl::UnavailableError("away"));
  for (int i = 0; i < 60; ++i) {
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(absl::IsUnavailable(member_.Beat()));
  }
  EXPECT_FALSE(guard_.is_open());
  EXPECT_EQ(member_.own_beats().failed, 60u);
  registry_.FailAll(absl::OkStatus());
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_TRUE(guard_.is_open());
}

// The registry was away, and answers when it is back.
TEST_F(MemberTest, ABeatThatTookTooLongIsNoneThatSucceeded) {
  Join();
  registry_.BeforeNextChange([this] { clock_.Advance(absl::Seconds(40)); });
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_FALSE(guard_.is_open());
  EXPECT_EQ(member_.own_beats().succeeded, 0u);
  EXPECT_EQ(member_.own_beats().failed, 1u);
}

TEST_F(MemberTest, ABeatWhoseAnswerIsLostIsFollowedByTheNext) {
  Join();
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.Beat()));
  EXPECT_EQ(View().beats["a"], (BeatRecord{1, 2}));
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_EQ(View().beats["a"], (BeatRecord{1, 3}));
}

// The change that was lost on its way comes just before the next one.
TEST_F(MemberTest, AFormerBeatThatComesLateEndsNobody) {
  Join();
  registry_.BeforeNextChange([this] {
    ASSERT_TRUE(memory_.CompareAndSet({}, {{"b/a", Encode(BeatRecord{1, 99})}}).ok());
  });
  EXPECT_TRUE(absl::IsUnavailable(member_.Beat()));
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_TRUE(member_.over().ok());
}

TEST_F(MemberTest, ARefusedBeatIsTheEnd) {
  Join();
  SetState(ServerState::kDead);
  const absl::Status beaten = member_.Beat();
  EXPECT_TRUE(absl::IsInternal(beaten)) << beaten;
  EXPECT_THAT(std::string(beaten.message()),
              HasSubstr("gone on without this server: its record in the registry is dead"));
  EXPECT_FALSE(guard_.is_open());
  SetState(ServerState::kUp);
  EXPECT_TRUE(absl::IsInternal(member_.Beat())) << "for good";
  EXPECT_EQ(View().beats["a"], (BeatRecord{1, 1}));
}

TEST_F(MemberTest, ANewLifeOfTheSameIdEndsThisOne) {
  Join();
  SetRecord({2, ServerState::kUp, "h:5", "life-3", {}});
  EXPECT_TRUE(absl::IsInternal(member_.Look(View())));
}

TEST_F(MemberTest, AClientThatIsFencedIsOver) {
  Join();
  registry_.FailAll(absl::InternalError("ESHUTDOWN"));
  EXPECT_TRUE(absl::IsInternal(member_.Beat()));
  registry_.FailAll(absl::OkStatus());
  EXPECT_TRUE(absl::IsInternal(member_.Confirm()));
}

TEST_F(MemberTest, ConfirmAsksTheRegistry) {
  EXPECT_TRUE(absl::IsUnavailable(member_.Confirm())) << "it has not joined";
  Join();
  EXPECT_TRUE(member_.Confirm().ok());
  registry_.FailAll(absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(member_.Confirm()));
  registry_.FailAll(absl::OkStatus());
  SetState(ServerState::kFenced);
  EXPECT_TRUE(absl::IsInternal(member_.Confirm()));
}

TEST_F(MemberTest, DrainingAndGoneAreSteps) {
  Join();
  EXPECT_TRUE(member_.SetState(ServerState::kDraining).ok());
  EXPECT_TRUE(member_.SetState(ServerState::kDraining).ok());
  EXPECT_EQ(Record().state, ServerState::kDraining);
  EXPECT_TRUE(member_.Beat().ok());
  EXPECT_TRUE(member_.Confirm().ok());
  EXPECT_TRUE(member_.SetState(ServerState::kGone).ok());
  EXPECT_EQ(Record().state, ServerState::kGone);
}

TEST_F(MemberTest, AStateWhoseAnswerIsLostIsSettled) {
  Join();
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.SetState(ServerState::kDraining)));
  EXPECT_TRUE(member_.SetState(ServerState::kDraining).ok());
  EXPECT_EQ(member_.OwnExpectation().text, Encode(Record()));
}

// A look at the registry that began before the change of state is no sign of others.
TEST_F(MemberTest, AnOlderLookEndsNobody) {
  Join();
  const ClusterView before = View();
  EXPECT_TRUE(member_.SetState(ServerState::kDraining).ok());
  EXPECT_TRUE(member_.Look(before).ok());
  EXPECT_EQ(member_.OwnExpectation().text, Encode(Record()));
}

TEST_F(MemberTest, ADeadServerDoesNotDrain) {
  Join();
  SetState(ServerState::kDead);
  EXPECT_TRUE(absl::IsInternal(member_.SetState(ServerState::kDraining)));
  EXPECT_EQ(Record().state, ServerState::kDead);
}

TEST_F(MemberTest, AFurtherMountIsInTheRecordBeforeItWrites) {
  EXPECT_TRUE(absl::IsUnavailable(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"})));
  Join();
  ASSERT_TRUE(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  ASSERT_TRUE(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  EXPECT_EQ(Record().mounts, std::vector<std::string>{"m-1"});
  EXPECT_EQ(Record().addresses, (std::vector<std::string>{"v2:10.0.0.1:0/5", "v2:10.0.0.1:0/6"}));
  EXPECT_TRUE(member_.Beat().ok());
  ASSERT_TRUE(member_.SetState(ServerState::kDraining).ok());
  EXPECT_EQ(Record().mounts.size(), 1u);
}

TEST_F(MemberTest, AMountWhoseAnswerIsLostDoesNotEndTheBeats) {
  Join();
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"})));
  EXPECT_EQ(Record().mounts.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(member_.Beat())) << "it learns of the record";
  EXPECT_TRUE(member_.Beat().ok());
}

TEST_F(MemberTest, ADroppedMountLeavesTheRecord) {
  Join();
  const ServerRecord joined = Record();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
    ASSERT_TRUE(member_.AddMount(StrCat("n-", i), {StrCat("v2:10.0.0.1:0/9", i)}).ok());
    ASSERT_TRUE(member_.DropMount(StrCat("n-", i), {StrCat("v2:10.0.0.1:0/9", i)}).ok());
    EXPECT_EQ(Record().mounts, std::vector<std::string>{"m-1"});
    EXPECT_EQ(Record().addresses, (std::vector<std::string>{"v2:10.0.0.1:0/5", "v2:10.0.0.1:0/6"}));
    EXPECT_TRUE(member_.Beat().ok());
  }
  ASSERT_TRUE(member_.DropMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  EXPECT_EQ(Record().mounts, joined.mounts);
  EXPECT_EQ(Record().addresses, joined.addresses);
}

// A record as it was before must not come back with a late message.
TEST_F(MemberTest, NoTextOfAServerComesTwice) {
  Join();
  const std::string joined = Encode(Record());
  ASSERT_TRUE(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  ASSERT_TRUE(member_.DropMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  EXPECT_NE(Encode(Record()), joined);
}

TEST_F(MemberTest, ALookFromBeforeADropChangesNothing) {
  Join();
  ASSERT_TRUE(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  const ClusterView before = View();
  ASSERT_TRUE(member_.DropMount("m-1", {"v2:10.0.0.1:0/6"}).ok());
  ASSERT_TRUE(member_.Look(before).ok());
  EXPECT_TRUE(member_.Beat().ok());
}

TEST_F(MemberTest, ADropThatFailedIsDoneWithTheNextMount) {
  Join();
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.AddMount("m-1", {"v2:10.0.0.1:0/6"})));
  registry_.LoseNextAnswer();
  EXPECT_TRUE(absl::IsUnavailable(member_.DropMount("m-1", {"v2:10.0.0.1:0/6"})));
  ASSERT_TRUE(member_.AddMount("m-2", {"v2:10.0.0.1:0/7"}).ok());
  EXPECT_EQ(Record().mounts, std::vector<std::string>{"m-2"});
  EXPECT_EQ(Record().addresses, (std::vector<std::string>{"v2:10.0.0.1:0/5", "v2:10.0.0.1:0/7"}));
}

TEST_F(MemberTest, AServerThatWasGivenUpMountsNothing) {
  Join();
  SetState(ServerState::kDead);
  EXPECT_TRUE(absl::IsInternal(member_.AddMount("m-1", {})));
  EXPECT_FALSE(guard_.is_open());
}

}  // namespace
}  // namespace h5mirror::cluster
