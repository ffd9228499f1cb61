#include "client_vfd/session/state/outside_cut.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Phase = OutsideCut::Phase;

// A change that was found, and whose cut is on its way.
class OutsideCutTest : public testing::Test {
 protected:
  OutsideCutTest() {
    cut_.Find();
    const uint64_t ticket = tickets_.Next();
    cut_.Send(ticket, 100);
    tickets_.Sent(ticket, 1);
  }

  std::string CommentOf(const std::string& comment) {
    return cut_.CommentOf(CutKind::kCommit, comment, tickets_);
  }

  CutTickets tickets_;
  OutsideCut cut_;
};

TEST(OutsideCutPhaseTest, TimesAloneAreNoChange) {
  OutsideCut cut;
  EXPECT_EQ(cut.phase(), Phase::kNone);
  cut.Find();
  EXPECT_EQ(cut.phase(), Phase::kFound);
  cut.FindNothing();
  EXPECT_EQ(cut.phase(), Phase::kNone);
}

TEST_F(OutsideCutTest, AProgramWaitsForItAndGoesOn) {
  EXPECT_EQ(cut_.phase(), Phase::kOnItsWay);
  EXPECT_EQ(cut_.bytes(), 100u);
  cut_.Settle();
  EXPECT_EQ(cut_.phase(), Phase::kNone);
}

TEST_F(OutsideCutTest, WhileItIsOnItsWayOtherCutsAreTheirOwn) {
  EXPECT_EQ(CommentOf("night shift"), "night shift");
}

TEST_F(OutsideCutTest, OnceLostItIsPartOfTheNextVersion) {
  tickets_.LoseAll();
  EXPECT_EQ(CommentOf("night shift"), "night shift (with an outside change)");
  EXPECT_EQ(CommentOf(""), "with an outside change");
  EXPECT_EQ(cut_.CommentOf(CutKind::kTick, "", tickets_), "") << "which becomes no version";
}

TEST_F(OutsideCutTest, AVersionThatHoldsItEndsThat) {
  tickets_.LoseAll();
  tickets_.Sent(tickets_.Next(), 2);
  tickets_.OnDurable(2);
  cut_.OnDurable(tickets_);
  EXPECT_EQ(CommentOf("night shift"), "night shift");
}

TEST_F(OutsideCutTest, ADurableOneIsNeverLost) {
  tickets_.OnDurable(1);
  cut_.OnDurable(tickets_);
  tickets_.LoseAll();
  EXPECT_EQ(CommentOf("night shift"), "night shift");
}

TEST_F(OutsideCutTest, OneThatTheServerHasIsForgotten) {
  cut_.Forget();
  tickets_.LoseAll();
  EXPECT_EQ(CommentOf("night shift"), "night shift");
}

}  // namespace
}  // namespace h5mirror::vfd
