#include "client_vfd/session/state/stream_parts.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Server = StreamParts::Server;

TEST(StreamPartsTest, NothingJoinsBeforeTheServerAllowsIt) {
  StreamParts parts;
  EXPECT_FALSE(parts.Next());
  parts.OnOpened(7, false, Server::kConfigured);
  EXPECT_FALSE(parts.Next());
  parts.OnOpened(7, true, Server::kConfigured);
  EXPECT_EQ(parts.Next(), (StreamParts::Place{7, 0}));
}

TEST(StreamPartsTest, NothingJoinsAtAServerThatOtherProcessesDoNotKnow) {
  StreamParts parts;
  parts.OnOpened(7, true, Server::kElsewhere);
  EXPECT_FALSE(parts.takes());
  EXPECT_FALSE(parts.Next());
  EXPECT_FALSE(parts.Add({7, 0}, 10));
  parts.Begin();
  parts.OnOpened(8, true, Server::kConfigured);
  EXPECT_EQ(parts.Next(), (StreamParts::Place{8, 0}));
}

TEST(StreamPartsTest, ABarrierTellsTheBytesOfItsPartsOnce) {
  StreamParts parts;
  parts.OnOpened(7, true, Server::kConfigured);
  EXPECT_TRUE(parts.Add({7, 0}, 100));
  EXPECT_TRUE(parts.Add({7, 0}, 20));
  EXPECT_EQ(parts.TakeForBarrier(), 120u);
  parts.OnVisible();
  EXPECT_EQ(parts.TakeForBarrier(), 0u);
}

TEST(StreamPartsTest, WhileABarrierIsNotAnsweredThereIsNoPlace) {
  StreamParts parts;
  parts.OnOpened(7, true, Server::kConfigured);
  parts.TakeForBarrier();
  EXPECT_FALSE(parts.Next());
  EXPECT_FALSE(parts.Add({7, 1}, 10));
  parts.OnVisible();
  EXPECT_EQ(parts.Next(), (StreamParts::Place{7, 1}));
}

TEST(StreamPartsTest, APartOfAnEarlierCutOrStreamIsNotCounted) {
  StreamParts parts;
  parts.OnOpened(7, true, Server::kConfigured);
  parts.TakeForBarrier();
  parts.OnVisible();
  EXPECT_FALSE(parts.Add({7, 0}, 10)) << "that cut is made";
  parts.Begin();
  EXPECT_FALSE(parts.Add({7, 1}, 10)) << "the stream is gone";
  parts.OnOpened(8, true, Server::kConfigured);
  EXPECT_FALSE(parts.Add({7, 0}, 10));
  EXPECT_TRUE(parts.Add({8, 0}, 10));
  parts.Begin();
  parts.OnOpened(9, true, Server::kConfigured);
  EXPECT_EQ(parts.TakeForBarrier(), 0u) << "what came to the stream before is sent again";
}

TEST(StreamPartsTest, APartThatFailedSpoilsTheCutUntilItsBarrierOrTheStreamsEnd) {
  StreamParts parts;
  parts.OnOpened(7, true, Server::kConfigured);
  parts.Spoil({6, 0});
  EXPECT_FALSE(parts.is_spoiled()) << "that was another stream";
  parts.Spoil({7, 0});
  EXPECT_TRUE(parts.is_spoiled());
  parts.TakeForBarrier();
  EXPECT_FALSE(parts.is_spoiled());
  parts.OnVisible();
  parts.Spoil({7, 1});
  parts.Begin();
  EXPECT_FALSE(parts.is_spoiled());
}

}  // namespace
}  // namespace h5mirror::vfd
