#include "client_vfd/session/state/succession.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Awaits = Succession::Awaits;
using Followed = Succession::Followed;
using Phase = Succession::Phase;

class FakePredecessor final : public Predecessor {
 public:
  bool done() const override { return is_done; }
  bool gone() const override { return is_gone; }
  bool LostFile() override { return lost_file; }
  void AwaitEnd(const LocalFacts& /*facts*/) override {}
  std::optional<Handover> HandOver(const LocalFacts& /*facts*/, Handing handing) override {
    asked = handing;
    if (!is_ripe) return std::nullopt;
    Handover handover;
    handover.base_cut = 41;
    return handover;
  }

  bool is_done = false;
  bool is_gone = false;
  bool is_ripe = false;
  bool lost_file = false;
  std::optional<Handing> asked;
};

class SuccessionTest : public ::testing::Test {
 protected:
  explicit SuccessionTest(Awaits awaits = Awaits::kHandover) : succession_(awaits) {
    succession_.Begin(before_);
  }

  Followed Follow(Handing handing = Handing::kWhenItCan) {
    return succession_.Follow(facts_, handing, &from_);
  }
  Followed FollowAtClose() { return succession_.FollowAtClose(facts_, &from_); }

  const LocalFacts facts_;
  const std::shared_ptr<FakePredecessor> before_ = std::make_shared<FakePredecessor>();
  Succession succession_;
  std::optional<Handover> from_;
};

class RemoteSuccessionTest : public SuccessionTest {
 protected:
  RemoteSuccessionTest() : SuccessionTest(Awaits::kEnd) {}
};

TEST_F(SuccessionTest, ItKnowsWhetherTheFileIsStillAsItWasOpened) {
  Succession claimed_at_once(Awaits::kHandover);
  EXPECT_EQ(claimed_at_once.Claim(), Phase::kBegins);
  claimed_at_once.OnStarted();
  EXPECT_TRUE(claimed_at_once.is_claimed());
  succession_.OnStarted();
  EXPECT_EQ(succession_.Claim(), Phase::kOpen);
}

TEST_F(SuccessionTest, WithoutAPredecessorNothingIsWaitedFor) {
  succession_.Begin(nullptr);
  EXPECT_EQ(Follow(), Followed::kWaits) << "nor does anything happen";
  EXPECT_FALSE(succession_.waits_to_claim());
  EXPECT_TRUE(succession_.may_claim());
  succession_.Claim();
  EXPECT_FALSE(succession_.may_claim());
}

TEST_F(SuccessionTest, ItWaitsForAPredecessorThatIsNotRipe) {
  EXPECT_EQ(Follow(), Followed::kWaits);
  EXPECT_EQ(before_->asked, Handing::kWhenItCan);
  EXPECT_TRUE(succession_.waits_to_claim());
}

TEST_F(SuccessionTest, AHandoverEndsTheWait) {
  before_->is_ripe = true;
  EXPECT_EQ(Follow(), Followed::kMayGoOn);
  ASSERT_TRUE(from_.has_value());
  EXPECT_EQ(from_->base_cut, 41);
  EXPECT_FALSE(succession_.has_predecessor());
}

TEST_F(SuccessionTest, APredecessorThatIsGoneHandsNothingOver) {
  before_->is_gone = before_->is_ripe = true;
  EXPECT_EQ(Follow(), Followed::kMayGoOn);
  EXPECT_FALSE(from_.has_value());
  EXPECT_EQ(before_->asked, std::nullopt);
  EXPECT_FALSE(succession_.has_predecessor());
}

TEST_F(SuccessionTest, TheEndOfAStreamIsWaitedForUnlessTheProgramEnds) {
  before_->is_done = true;
  EXPECT_EQ(Follow(), Followed::kWaits);
  EXPECT_EQ(Follow(Handing::kNow), Followed::kMayGoOn);
}

TEST_F(SuccessionTest, AtItsCloseItIsClaimedAndTheStreamIsWaitedForLater) {
  before_->is_ripe = true;
  EXPECT_EQ(FollowAtClose(), Followed::kMayGoOn);
  EXPECT_EQ(before_->asked, Handing::kAtClose);
  succession_.Claim();
  EXPECT_TRUE(succession_.has_predecessor());
  EXPECT_FALSE(succession_.waits_to_claim());
  from_.reset();
  EXPECT_EQ(Follow(), Followed::kWaits);
  EXPECT_FALSE(from_.has_value()) << "it has what there was";
  before_->is_gone = true;
  EXPECT_EQ(Follow(), Followed::kMayGoOn);
}

TEST_F(SuccessionTest, AtItsCloseARecordThatIsFinalCounts) {
  EXPECT_EQ(FollowAtClose(), Followed::kWaits) << "it is not yet what it will be";
  before_->is_done = true;
  EXPECT_EQ(FollowAtClose(), Followed::kMayGoOn);
  before_->is_done = false;
  before_->lost_file = true;
  EXPECT_EQ(FollowAtClose(), Followed::kMayGoOn);
  EXPECT_FALSE(from_.has_value());
}

TEST_F(RemoteSuccessionTest, WithoutALocalFileOnlyTheEndCounts) {
  before_->is_ripe = true;
  EXPECT_EQ(Follow(), Followed::kWaits);
  EXPECT_EQ(before_->asked, std::nullopt);
  before_->is_gone = true;
  EXPECT_EQ(Follow(), Followed::kMayGoOn);
}

}  // namespace
}  // namespace h5mirror::vfd
