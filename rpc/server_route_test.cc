#include "rpc/server_route.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/elsewhere.h"

namespace h5mirror::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
const absl::Status kAway = absl::UnavailableError("Connection refused");

ClientOptions Configured() {
  ClientOptions server;
  server.server = "front:7447";
  server.target = "dns:///front:7447";
  return server;
}

ClientOptions Three() {
  ClientOptions cluster;
  cluster.server = "a:1|b:2|c:3";
  cluster.target = "dns:///a:1";
  cluster.others = {{"dns:///b:2", false}, {"dns:///c:3", false}};
  return cluster;
}

absl::Status At(const std::string& address, const std::string& cell = "") {
  return ElsewhereError({address, cell, 1});
}

TEST(ServerRouteTest, AClientGoesWhereItIsSent) {
  ServerRoute route;
  EXPECT_EQ(route.Apply(Configured()).target, "dns:///front:7447");
  ASSERT_TRUE(route.Follow(Configured(), "node-b:7447"));
  EXPECT_EQ(route.Apply(Configured()).target, "dns:///node-b:7447");
  EXPECT_FALSE(route.Follow(Configured(), "node-c:no port"));
  route.OnLost(Configured());
  EXPECT_EQ(route.Apply(Configured()).target, "dns:///front:7447");
}

TEST(ServerRouteTest, RedirectsInARowEnd) {
  ServerRoute route;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(route.Follow(Configured(), "node-b:7447"));
  EXPECT_FALSE(route.Follow(Configured(), "node-b:7447"));
  route.OnAnswer();
  EXPECT_TRUE(route.Follow(Configured(), "node-b:7447"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(route.Follow(Configured(), "node-b:7447"));
  EXPECT_FALSE(route.Follow(Configured(), "node-b:7447"));
  route.OnLost(Configured());
  EXPECT_TRUE(route.Follow(Configured(), "node-b:7447")) << "the count is over, too";
}

TEST(ServerRouteTest, ACredentialGoesNowhereAsPlainText) {
  ClientOptions with_token = Configured();
  with_token.token = "secret";
  ClientOptions with_munge = Configured();
  with_munge.token_source = "munge";  // Each call makes a credential, though none is kept.
  ClientOptions with_login = Configured();
  with_login.token_source = "@/home/u/token";
  for (ClientOptions server : {with_token, with_munge, with_login}) {
    ServerRoute route;
    EXPECT_FALSE(route.Follow(server, "node-b:7447"));
    EXPECT_EQ(route.Apply(server).target, "dns:///front:7447");
    EXPECT_TRUE(route.Follow(server, "127.0.0.1:7447"));
    EXPECT_NE(route.Apply(server).target, "dns:///front:7447");
    server.ca_pem = "-----BEGIN CERTIFICATE-----";
    EXPECT_TRUE(route.Follow(server, "node-b:7447"));
    EXPECT_EQ(route.Apply(server).target, "dns:///node-b:7447");
  }
}

TEST(ServerRouteTest, ACredentialThatComesLaterStaysAway) {
  ServerRoute route;
  ASSERT_TRUE(route.Follow(Configured(), "node-b:7447"));
  ClientOptions server = Configured();
  server.token = "secret";
  EXPECT_EQ(route.Apply(server).target, "dns:///front:7447");
}

TEST(ServerRouteTest, AfterOneOfTheListTheNextIsAsked) {
  ServerRoute route;
  for (const char* server : {"a:1", "b:2", "c:3", "a:1"}) {
    const ClientOptions asked = route.Apply(Three());
    EXPECT_EQ(asked.server, server);
    EXPECT_EQ(asked.target, std::string("dns:///") + server);
    route.OnLost(Three());
  }
  EXPECT_FALSE(route.HasUntried(Three()));
  route.OnAnswer();
  EXPECT_TRUE(route.HasUntried(Three()));
}

TEST(ServerRouteTest, AfterALostOwnerTheListIsAskedAgain) {
  ServerRoute route(1);
  EXPECT_FALSE(route.is_first());
  ASSERT_TRUE(route.Follow(Three(), "d:4"));
  EXPECT_EQ(route.Apply(Three()).server, "d:4");
  route.OnLost(Three());
  EXPECT_EQ(route.Apply(Three()).server, "b:2") << "it named the owner, and may know the next one";
  route.OnLost(Three());
  EXPECT_EQ(route.Apply(Three()).server, "c:3");
}

TEST(OwnerCacheTest, TheOwnerOfACellIsAskedAtOnce) {
  OwnerCache cache;
  const ClientOptions cluster = Three();
  cache.OnEnd(cluster, ServerRoute().Apply(cluster), At("c:3", "bl7"));
  EXPECT_EQ(cache.Find(cluster, "bl7/x.h5").Apply(cluster).server, "c:3");
  EXPECT_EQ(cache.Find(cluster, "bl7").Apply(cluster).server, "c:3");
  EXPECT_EQ(cache.Find(cluster, "bl77/x.h5").Apply(cluster).server, "a:1");
  cache.OnEnd(cluster, cache.Find(cluster, "bl7/x.h5").Apply(cluster), kAway);
  EXPECT_EQ(cache.Find(cluster, "bl7/x.h5").Apply(cluster).server, "a:1");
}

TEST(OwnerCacheTest, AServerOfTheListThatIsAwayIsNotAskedFirst) {
  OwnerCache cache;
  const ClientOptions cluster = Three();
  cache.OnEnd(cluster, ServerRoute().Apply(cluster), kAway);
  EXPECT_EQ(cache.Find(cluster, "x.h5").Apply(cluster).server, "b:2");
  cache.OnEnd(cluster, ServerRoute(2).Apply(cluster), absl::OkStatus());
  EXPECT_EQ(cache.Find(cluster, "x.h5").Apply(cluster).server, "c:3");
}

TEST(ServerWalkTest, AnAnswerEndsIt) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(5));
  EXPECT_EQ(walk.Next(At("c:3"), kStart), absl::ZeroDuration());
  EXPECT_EQ(walk.Server().server, "c:3");
  EXPECT_EQ(walk.Next(absl::NotFoundError("none"), kStart), std::nullopt);
  EXPECT_EQ(walk.error(), absl::NotFoundError("none"));
  EXPECT_EQ(walk.Next(absl::OkStatus(), kStart), std::nullopt);
  EXPECT_TRUE(walk.error().ok());
}

TEST(ServerWalkTest, OneServerAloneIsNotLeft) {
  const ClientOptions server = Configured();
  ServerWalk walk(server, ServerRoute(), kStart + absl::Seconds(5));
  EXPECT_FALSE(walk.has_others());
  EXPECT_EQ(walk.Next(kAway, kStart), std::nullopt);
  EXPECT_EQ(walk.error(), kAway);
}

TEST(ServerWalkTest, AllThatWereTriedAreNamed) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(5));
  EXPECT_EQ(walk.Next(kAway, kStart), absl::ZeroDuration());
  EXPECT_EQ(walk.Next(absl::DeadlineExceededError("no answer"), kStart), absl::ZeroDuration());
  const auto pause = walk.Next(kAway, kStart);
  ASSERT_TRUE(pause.has_value());
  EXPECT_GT(*pause, absl::ZeroDuration()) << "all were asked";
  EXPECT_EQ(walk.Next(kAway, kStart + absl::Seconds(5)), std::nullopt);
  EXPECT_TRUE(absl::IsUnavailable(walk.error()));
  EXPECT_THAT(std::string(walk.error().message()),
              AllOf(HasSubstr("a:1|b:2|c:3"), HasSubstr("a:1: Connection refused"),
                    HasSubstr("b:2: no answer"), HasSubstr("c:3: Connection refused")));
}

TEST(ServerWalkTest, WithoutTimeEachIsAskedOnce) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart);
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_EQ(walk.Next(kAway, kStart), std::nullopt);
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("c:3: Connection refused"));
}

TEST(ServerWalkTest, AnOwnerThatStaysAwayEndsIt) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(1));
  ASSERT_TRUE(walk.Next(At("d:4"), kStart).has_value());
  ASSERT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_EQ(walk.Next(At("d:4"), kStart + absl::Seconds(1)), std::nullopt);
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("d:4: Connection refused"));
  EXPECT_FALSE(ElsewhereOf(walk.error()).has_value());
}

TEST(ServerWalkTest, AnOwnerThatIsLostIsAskedForOfTheOneServer) {
  const ClientOptions server = Configured();
  ServerWalk walk(server, ServerRoute(), kStart + absl::Seconds(5));
  ASSERT_TRUE(walk.Next(At("node-b:1"), kStart).has_value());
  EXPECT_TRUE(walk.has_others());
  const auto pause = walk.Next(kAway, kStart);
  ASSERT_TRUE(pause.has_value());
  EXPECT_GT(*pause, absl::ZeroDuration()) << "it still names that owner, until it gives it up";
  EXPECT_EQ(walk.Server().server, "front:7447");
}

TEST(ServerWalkTest, ACircleEndsAndIsTold) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Minutes(5));
  int redirects = 0, pauses = 0;
  absl::Time now = kStart;
  while (const auto pause = walk.Next(At(walk.Server().server == "b:2" ? "c:3" : "b:2"), now)) {
    ASSERT_LT(++redirects, 100);
    if (*pause > absl::ZeroDuration()) ++pauses;
    now += *pause;
  }
  EXPECT_EQ(pauses, 2) << "servers may disagree for a second";
  EXPECT_TRUE(absl::IsUnavailable(walk.error()));
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("in a circle: a:1 -> b:2 -> c:3"));
}

TEST(ServerWalkTest, ATokenThatMayNotGoThereIsToldOf) {
  ClientOptions cluster = Three();
  cluster.token = "secret";
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(5));
  EXPECT_EQ(walk.Next(At("b:2"), kStart), std::nullopt);
  EXPECT_TRUE(absl::IsFailedPrecondition(walk.error()));
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("plain text"));
  EXPECT_FALSE(ElsewhereOf(walk.error()).has_value());
}

}  // namespace
}  // namespace h5mirror::rpc
