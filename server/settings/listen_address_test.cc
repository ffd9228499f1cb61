#include "server/settings/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

Reach ReachOfText(std::string_view text) {
  const auto address = ParseListenAddress(text);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() ? address->reach : Reach::kNetwork;
}

TEST(ListenAddressTest, OnlyLoopbackAndUnixSocketsAreLocal) {
  EXPECT_EQ(ReachOfText("127.0.0.1:7447"), Reach::kLoopback);
  EXPECT_EQ(ReachOfText("127.9.9.9:7447"), Reach::kLoopback);
  EXPECT_EQ(ReachOfText("[::1]:7447"), Reach::kLoopback);
  EXPECT_EQ(ReachOfText("LocalHost:7447"), Reach::kLoopback);
  EXPECT_EQ(ReachOfText("unix:/run/sock"), Reach::kUnixSocket);
  EXPECT_EQ(ReachOfText("0.0.0.0:7447"), Reach::kNetwork);
  EXPECT_EQ(ReachOfText("[::]:7447"), Reach::kNetwork);
  EXPECT_EQ(ReachOfText("128.0.0.1:7447"), Reach::kNetwork);
  EXPECT_EQ(ReachOfText("node7:7447"), Reach::kNetwork);
}

TEST(ListenAddressTest, TargetIsWhatGrpcWants) {
  EXPECT_EQ(ParseListenAddress("[::1]:7447")->GrpcTarget(), "[::1]:7447");
  EXPECT_EQ(ParseListenAddress("127.0.0.1:0")->WithPort(4242), "127.0.0.1:4242");
  EXPECT_EQ(ParseListenAddress("unix:/run/a/../sock")->GrpcTarget(), "unix:/run/sock");
}

TEST(ListenAddressTest, BadAddressIsQuotedWithTheThreeForms) {
  for (const char* text : {"", "7447", "host", "host:", "host:70000", "host:-1", ":7447",
                           "::1:7447", "[::1", "[nonsense]:1", "unix:", "host:7447x"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("HOST:PORT"));
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(text));
  }
}

TEST(ListenAddressTest, SocketPathHasTheLengthThatTheKernelTakes) {
  EXPECT_TRUE(ParseListenAddress("unix:/" + std::string(106, 'x')).ok());
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(107, 'x')).ok());
}

TEST(ListenAddressTest, ListIsSplitAtCommas) {
  const auto addresses = ParseListenList("127.0.0.1:1, unix:/a");
  ASSERT_TRUE(addresses.ok());
  ASSERT_EQ(addresses->size(), 2u);
  EXPECT_EQ((*addresses)[1].path, "/a");
  EXPECT_FALSE(ParseListenList("127.0.0.1:1,").ok());
}

bool CollideAsTexts(std::string_view one, std::string_view other) {
  const bool collide = Collide(*ParseListenAddress(one), *ParseListenAddress(other));
  EXPECT_EQ(Collide(*ParseListenAddress(other), *ParseListenAddress(one)), collide);
  return collide;
}

TEST(ListenAddressTest, TheSamePlaceCollides) {
  EXPECT_TRUE(CollideAsTexts("127.0.0.1:9", "127.0.0.1:9"));
  EXPECT_TRUE(CollideAsTexts("localhost:9", "127.0.0.1:9"));
  EXPECT_TRUE(CollideAsTexts("LocalHost:9", "[::1]:9"));
  EXPECT_TRUE(CollideAsTexts("[::ffff:127.0.0.1]:9", "127.0.0.1:9"));
  EXPECT_TRUE(CollideAsTexts("[0:0::1]:9", "[::1]:9"));
  EXPECT_TRUE(CollideAsTexts("Node7:9", "node7:9"));
  EXPECT_TRUE(CollideAsTexts("unix:/run/a/../sock", "unix:/run/sock"));
}

TEST(ListenAddressTest, AllAddressesCollideWithEach) {
  EXPECT_TRUE(CollideAsTexts("0.0.0.0:9", "127.0.0.1:9"));
  EXPECT_TRUE(CollideAsTexts("0.0.0.0:9", "[::1]:9"));
  EXPECT_TRUE(CollideAsTexts("[::]:9", "0.0.0.0:9"));
  EXPECT_TRUE(CollideAsTexts("[::]:9", "192.0.2.7:9"));
  EXPECT_TRUE(CollideAsTexts("[::]:9", "node7:9"));
}

TEST(ListenAddressTest, OtherPlacesDoNotCollide) {
  EXPECT_FALSE(CollideAsTexts("127.0.0.1:9", "127.0.0.1:10"));
  EXPECT_FALSE(CollideAsTexts("127.0.0.1:9", "127.0.0.2:9"));
  EXPECT_FALSE(CollideAsTexts("127.0.0.1:9", "[::1]:9"));
  EXPECT_FALSE(CollideAsTexts("0.0.0.0:0", "0.0.0.0:0"));
  EXPECT_FALSE(CollideAsTexts("node7:9", "node8:9"));
  EXPECT_FALSE(CollideAsTexts("unix:/run/sock", "unix:/run/other"));
  EXPECT_FALSE(CollideAsTexts("unix:/run/sock", "127.0.0.1:9"));
}

}  // namespace
}  // namespace h5mirror::server
