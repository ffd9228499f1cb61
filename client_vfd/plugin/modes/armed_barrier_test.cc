#include "client_vfd/plugin/modes/armed_barrier.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(ArmedBarrierTest, AFlushThatNobodyArmedIsATickWithoutAComment) {
  Config config;
  config.comment = "configured";
  config.ack_tick = Ack::kNone;
  ArmedBarrier barrier;
  const ArmedBarrier::Request request = barrier.Begin(config);
  EXPECT_EQ(request.kind, H5M_TICK);
  EXPECT_EQ(request.ack, H5M_ACK_NONE);
  EXPECT_EQ(request.comment, "");
}

TEST(ArmedBarrierTest, ATickThatWaitsForDurabilityAsksForIt) {
  Config config;
  config.ack_tick = Ack::kDurable;
  EXPECT_EQ(ArmedBarrier().Begin(config).kind, H5M_SYNC);
  config.ack_tick = Ack::kNone;
  config.flush = FlushKind::kSync;
  const ArmedBarrier::Request request = ArmedBarrier().Begin(config);
  EXPECT_EQ(request.kind, H5M_SYNC);
  EXPECT_EQ(request.ack, H5M_ACK_DURABLE);
}

TEST(ArmedBarrierTest, ACommitHasItsOwnCommentOrTheConfiguredOne) {
  Config config;
  config.comment = "configured";
  config.ack_commit = Ack::kApplied;
  ArmedBarrier barrier;
  barrier.Arm(H5M_COMMIT, "own");
  EXPECT_EQ(barrier.Begin(config).comment, "own");
  barrier.Arm(H5M_COMMIT, "");
  const ArmedBarrier::Request request = barrier.Begin(config);
  EXPECT_EQ(request.comment, "configured");
  EXPECT_EQ(request.ack, H5M_ACK_APPLIED);
}

TEST(ArmedBarrierTest, ATickOfAChangeWaitsForNothingWhateverIsConfigured) {
  Config config;
  config.ack_tick = Ack::kDurable;
  config.flush = FlushKind::kSync;
  ArmedBarrier barrier;
  barrier.Arm(H5M_TICK_IF_CHANGED, "");
  const ArmedBarrier::Request request = barrier.Begin(config);
  EXPECT_EQ(request.kind, H5M_TICK_IF_CHANGED);
  EXPECT_EQ(request.ack, H5M_ACK_NONE);
  barrier.Finish();
  EXPECT_EQ(barrier.Begin(config).kind, H5M_SYNC) << "the program's own flush";
}

TEST(ArmedBarrierTest, TheResultIsThatOfTheFlushSinceItWasArmed) {
  const Config config;
  ArmedBarrier barrier;
  barrier.Begin(config);
  barrier.SetResult(0);
  barrier.Arm(H5M_COMMIT, "own");
  EXPECT_EQ(barrier.Finish(), 1) << "no flush came";
  EXPECT_EQ(barrier.Begin(config).kind, H5M_TICK) << "it is armed no more";
  EXPECT_EQ(barrier.Finish(), 0);
}

}  // namespace
}  // namespace h5mirror::vfd
