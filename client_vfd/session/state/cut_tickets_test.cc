#include "client_vfd/session/state/cut_tickets.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Phase = CutTickets::Phase;

TEST(CutTicketsTest, ACutGoesFromWaitingToDurable) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kWaiting);
  tickets.Sent(cut, 7);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kSent);
  tickets.OnVisible(6);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kSent) << "another one's";
  tickets.OnVisible(7);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kVisible);
  tickets.OnDurable(8);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kDurable);
  EXPECT_EQ(tickets.durable_seq(), 8u);
}

TEST(CutTicketsTest, EachAckWantsItsPhase) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  EXPECT_FALSE(tickets.Acked(cut, H5M_ACK_NONE));
  tickets.Sent(cut, 1);
  EXPECT_TRUE(tickets.Acked(cut, H5M_ACK_NONE));
  EXPECT_FALSE(tickets.Acked(cut, H5M_ACK_APPLIED));
  tickets.OnVisible(1);
  EXPECT_TRUE(tickets.Acked(cut, H5M_ACK_APPLIED));
  EXPECT_FALSE(tickets.Acked(cut, H5M_ACK_DURABLE));
  tickets.OnDurable(1);
  EXPECT_TRUE(tickets.Acked(cut, H5M_ACK_DURABLE));
}

TEST(CutTicketsTest, WhatIsDurableIsVisibleToo) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  tickets.Sent(cut, 1);
  tickets.OnDurable(1);
  EXPECT_TRUE(tickets.Acked(cut, H5M_ACK_APPLIED));
}

TEST(CutTicketsTest, AnswersNeverGoBack) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  tickets.Sent(cut, 5);
  tickets.OnDurable(5);
  tickets.OnDurable(3);
  tickets.OnVisible(2);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kDurable);
}

TEST(CutTicketsTest, ALostCutMayBeAcknowledgedLater) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  tickets.Sent(cut, 1);
  tickets.LoseAll();
  EXPECT_TRUE(tickets.IsLost(cut));
  EXPECT_FALSE(tickets.IsLost(tickets.Next())) << "closed after the loss";
  tickets.OnDurable(1);  // As the resume says.
  EXPECT_TRUE(tickets.Acked(cut, H5M_ACK_DURABLE));
}

TEST(CutTicketsTest, ACutThatWasNotSentAfterAllWaits) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  tickets.Sent(cut, 1);
  tickets.NotSent(cut);
  tickets.OnDurable(1);
  EXPECT_EQ(tickets.PhaseOf(cut), Phase::kWaiting);
}

TEST(CutTicketsTest, AnOpenFileHasNoFinalCut) {
  CutTickets tickets;
  const uint64_t cut = tickets.Next();
  tickets.Sent(cut, 1);
  tickets.OnDurable(1);
  EXPECT_FALSE(tickets.sealed());
  EXPECT_FALSE(tickets.IsFinal(cut));
  EXPECT_FALSE(tickets.IsFinalAcked(H5M_ACK_DURABLE));
  EXPECT_EQ(tickets.FinalSeq(), std::nullopt);
}

TEST(CutTicketsTest, TheNextCutTakesALostFinalOnesPlace) {
  CutTickets tickets;
  tickets.Seal();
  const uint64_t first = tickets.Next();
  EXPECT_TRUE(tickets.IsFinal(first));
  tickets.Sent(first, 1);
  EXPECT_EQ(tickets.FinalSeq(), 1u);
  EXPECT_TRUE(tickets.IsFinalTaken());
  tickets.LoseAll();
  EXPECT_TRUE(tickets.IsFinalLost());
  EXPECT_FALSE(tickets.IsFinalTaken());
  const uint64_t second = tickets.Next();
  EXPECT_FALSE(tickets.IsFinal(first));
  EXPECT_TRUE(tickets.IsFinal(second));
  EXPECT_FALSE(tickets.IsFinalLost());
  EXPECT_FALSE(tickets.IsFinalTaken()) << "not sent yet";
  EXPECT_EQ(tickets.FinalSeq(), std::nullopt);
}

TEST(CutTicketsTest, ABarrierThatWasSentIsOwedAnAnswer) {
  CutTickets tickets;
  EXPECT_FALSE(tickets.IsOwed());
  tickets.Sent(tickets.Next(), 1);
  EXPECT_TRUE(tickets.IsOwed());
  tickets.OnVisible(1);
  EXPECT_FALSE(tickets.IsOwed());
  tickets.Sent(tickets.Next(), 2);
  tickets.OnDurable(2);
  EXPECT_FALSE(tickets.IsOwed()) << "durable is more";
  tickets.Sent(tickets.Next(), 3);
  tickets.LoseAll();
  EXPECT_FALSE(tickets.IsOwed());
}

TEST(CutTicketsTest, OldTicketsAreForgotten) {
  CutTickets tickets;
  for (uint64_t seq = 1; seq <= 100; ++seq) tickets.Sent(tickets.Next(), seq);
  tickets.OnDurable(100);
  tickets.Forget();
  EXPECT_EQ(tickets.PhaseOf(35), Phase::kWaiting);
  EXPECT_EQ(tickets.PhaseOf(36), Phase::kDurable);
  tickets.Seal();
  tickets.Sent(tickets.Next(), 101);
  tickets.Forget();
  EXPECT_EQ(tickets.PhaseOf(100), Phase::kWaiting);
  EXPECT_EQ(tickets.FinalSeq(), 101u);
}

}  // namespace
}  // namespace h5mirror::vfd
