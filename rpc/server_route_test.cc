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

TEST(ServerRouteTest, OthersThanTheOneThatIsAskedAreFoundRoundAndRound) {
  ServerRoute route;
  const auto target = [&](size_t turn) {
    return route.Another(Three(), turn)->Apply(Three()).target;
  };
  EXPECT_EQ(target(0), "dns:///b:2");
  EXPECT_EQ(target(1), "dns:///b:2");
  EXPECT_EQ(target(2), "dns:///c:3");
  ASSERT_TRUE(route.Follow(Three(), "c:3"));
  EXPECT_EQ(target(2), "dns:///a:1") << "it is of the list";
  ASSERT_TRUE(route.Follow(Three(), "d:4"));
  EXPECT_EQ(target(2), "dns:///c:3");
  EXPECT_EQ(route.Apply(Three()).target, "dns:///d:4") << "it stays as it is";
}

TEST(ServerRouteTest, AServerAloneIsNoCluster) {
  ServerRoute route;
  EXPECT_FALSE(route.IsOfCluster(Configured()));
  EXPECT_FALSE(route.Another(Configured(), 0).has_value());
  EXPECT_TRUE(route.IsOfCluster(Three()));
  ASSERT_TRUE(route.Follow(Configured(), "node-b:7447"));
  EXPECT_EQ(route.Another(Configured(), 5)->Apply(Configured()).target, "dns:///front:7447");
  route.OnLost(Configured());
  EXPECT_TRUE(route.IsOfCluster(Configured())) << "it has named another server once";
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

TEST(ServerRouteTest, ARefusalCountsWhereAllHaveRefusedOrAreAway) {
  ServerRoute route;
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_EQ(route.Apply(Three()).server, "b:2");
  route.OnLost(Three());
  EXPECT_EQ(route.Apply(Three()).server, "c:3");
  EXPECT_FALSE(route.OnRefused(Three()));
  EXPECT_FALSE(route.HaveAllRefused(Three())) << "b may come back";
  EXPECT_FALSE(route.OnRefused(Three()));
  EXPECT_FALSE(route.OnRefused(Three()));
  EXPECT_TRUE(route.HaveAllRefused(Three()));
  route.OnAnswer();
  EXPECT_FALSE(route.HaveAllRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
}

TEST(ServerRouteTest, ServersThatWereAwayBeforeARefusalHaveNotRefused) {
  ServerRoute route;
  for (int i = 0; i < 3; ++i) route.OnLost(Three());
  EXPECT_TRUE(route.OnRefused(Three())) << "it may have been the network";
  route.OnLost(Three());
  EXPECT_FALSE(route.OnRefused(Three())) << "b was away since";
}

TEST(ServerRouteTest, ARefusalIsOverWhereTheServerWasAwaySince) {
  ServerRoute route;
  EXPECT_TRUE(route.OnRefused(Three()));
  for (int i = 0; i < 3; ++i) route.OnLost(Three());  // a too
  EXPECT_EQ(route.Apply(Three()).server, "b:2");
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_FALSE(route.HaveAllRefused(Three()));
  EXPECT_FALSE(route.OnRefused(Three()));
  EXPECT_TRUE(route.HaveAllRefused(Three()));
}

TEST(ServerRouteTest, AnotherCredentialMayBeTakenByAll) {
  ServerRoute route;
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_FALSE(route.OnRefused(Three()));
  route.ForgetRefusals();
  EXPECT_FALSE(route.HaveAllRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
}

TEST(ServerRouteTest, TheRefusalOfAServerThatWasNamedIsThatOfTheOneThatNamedIt) {
  ServerRoute route;
  ASSERT_TRUE(route.Follow(Three(), "d:4"));
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_EQ(route.Apply(Three()).server, "b:2");
  EXPECT_FALSE(ServerRoute().OnRefused(Configured())) << "there is no other one";
}

TEST(ServerRouteTest, WhereOneHasTheFileSoonNoRefusalCounts) {
  ServerRoute route;
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
  route.OnNobodyServes(Three());
  EXPECT_TRUE(route.OnRefused(Three()));
  EXPECT_TRUE(route.OnRefused(Three()));
  ServerRoute alone;
  EXPECT_FALSE(alone.IsOfCluster(Configured()));
  alone.OnNobodyServes(Configured());
  EXPECT_TRUE(alone.IsOfCluster(Configured()));
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

// It answers long after the owner's death that the dead one has it.
TEST(ServerRouteTest, AStaleServerOfTheListIsPassedBy) {
  ServerRoute route;
  ASSERT_FALSE(route.PassBy(Three(), "d:4")) << "it was not lost";
  ASSERT_TRUE(route.Follow(Three(), "d:4"));
  route.OnLost(Three());
  EXPECT_EQ(route.Apply(Three()).server, "a:1");
  EXPECT_FALSE(route.PassBy(Three(), "e:5")) << "a new owner";
  EXPECT_TRUE(route.PassBy(Three(), "d:4"));
  EXPECT_EQ(route.Apply(Three()).server, "b:2");
  EXPECT_TRUE(route.PassBy(Three(), "d:4"));
  EXPECT_EQ(route.Apply(Three()).server, "c:3");
  EXPECT_FALSE(route.PassBy(Three(), "d:4")) << "all say so, so it may be back";
  EXPECT_TRUE(route.Follow(Three(), "d:4"));
}

TEST(ServerRouteTest, AServerAloneMayNameALostOwnerAgain) {
  ServerRoute route;
  ASSERT_TRUE(route.Follow(Configured(), "d:4"));
  route.OnLost(Configured());
  EXPECT_FALSE(route.PassBy(Configured(), "d:4"));
  EXPECT_TRUE(route.Follow(Configured(), "d:4"));
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

TEST(OwnerCacheTest, AStaleServerOfTheListIsNotAskedFirst) {
  OwnerCache cache;
  const ClientOptions cluster = Three();
  ClientOptions owner = cluster;
  owner.server = "d:4";
  cache.OnEnd(cluster, ServerRoute().Apply(cluster), At("d:4"));
  cache.OnEnd(cluster, owner, kAway);
  cache.OnEnd(cluster, ServerRoute().Apply(cluster), At("d:4"));
  EXPECT_EQ(cache.Find(cluster, "x.h5").Apply(cluster).server, "b:2");
  cache.OnEnd(cluster, owner, absl::OkStatus());
  cache.OnEnd(cluster, ServerRoute(1).Apply(cluster), At("d:4"));
  EXPECT_EQ(cache.Find(cluster, "x.h5").Apply(cluster).server, "d:4") << "it is back";
}

// An owner's name that came over plain text may be anybody's.
TEST(OwnerCacheTest, CallersOfOtherCredentialsLearnNothingOfIt) {
  OwnerCache cache;
  const ClientOptions plain = Three();
  cache.OnEnd(plain, ServerRoute().Apply(plain), At("evil:4"));
  ASSERT_EQ(cache.Find(plain, "x.h5").Apply(plain).server, "evil:4");
  ClientOptions with_ca = plain, with_token = plain, with_login = plain, of_fewer = plain;
  with_ca.ca_pem = "-----BEGIN CERTIFICATE-----";
  with_token.ca_pem = with_login.ca_pem = with_ca.ca_pem;
  with_token.token = "secret";
  with_login.token_source = "@/home/u/token";
  of_fewer.server = "a:1|b:2";
  of_fewer.others.pop_back();
  cache.OnEnd(with_ca, ServerRoute().Apply(with_ca), At("d:4"));
  for (const ClientOptions& other : {with_token, with_login, of_fewer}) {
    EXPECT_EQ(cache.Find(other, "x.h5").Apply(other).server, "a:1");
  }
  EXPECT_EQ(cache.Find(with_ca, "x.h5").Apply(with_ca).server, "d:4");
}

TEST(ServerWalkTest, ServersThatWereNotAskedKeepTheirShareOfTheTime) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(9));
  const auto limit = [&](absl::Time now) { return walk.Limit(absl::Seconds(5), now); };
  EXPECT_EQ(limit(kStart), absl::Seconds(3));
  ASSERT_TRUE(walk.Next(kAway, kStart + absl::Seconds(3)).has_value());
  EXPECT_EQ(limit(kStart + absl::Seconds(3)), absl::Seconds(3));
  ASSERT_TRUE(walk.Next(kAway, kStart + absl::Seconds(3)).has_value());
  EXPECT_EQ(limit(kStart + absl::Seconds(3)), absl::Seconds(6)) << "it is the last one";
  EXPECT_EQ(walk.Next(kAway, kStart + absl::Seconds(9)), std::nullopt);
  EXPECT_EQ(limit(kStart + absl::Seconds(9)), absl::ZeroDuration());
}

// An owner that needs 15 s for its answer is reached, if the caller waits for so long.
TEST(ServerWalkTest, ASlowOwnerGetsMoreTimeEachRound) {
  const ClientOptions server = Configured();
  ServerWalk walk(server, ServerRoute(), kStart + absl::Seconds(60));
  const absl::Status late = absl::DeadlineExceededError("no answer");
  absl::Time now = kStart;
  std::vector<absl::Duration> limits;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(walk.Next(At("d:4"), now).has_value());
    limits.push_back(walk.Limit(absl::Seconds(5), now));
    now += limits.back();
    const auto pause = walk.Next(late, now);
    if (pause) now += *pause;
  }
  EXPECT_EQ(limits[0], absl::Seconds(5));
  EXPECT_EQ(limits[1], absl::Seconds(10));
  EXPECT_GT(limits[2], absl::Seconds(40)) << "another one would be no longer";
  ServerWalk shorter(server, ServerRoute(), kStart + absl::Seconds(8));
  ASSERT_TRUE(shorter.Next(At("d:4"), kStart).has_value());
  EXPECT_EQ(shorter.Limit(absl::Seconds(5), kStart), absl::Seconds(8)) << "none was not asked";
}

TEST(ServerWalkTest, AStaleServerDoesNotHoldACallForEver) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(60));
  ASSERT_TRUE(walk.Next(At("b:2"), kStart).has_value());
  std::vector<std::string> asked;
  for (int i = 0; i < 10 && walk.Server().server != "c:3"; ++i) {
    asked.push_back(walk.Server().server);
    ASSERT_TRUE(walk.Next(asked.back() == "b:2" ? kAway : At("b:2"), kStart).has_value());
  }
  EXPECT_EQ(walk.Server().server, "c:3");
  EXPECT_THAT(asked, testing::ElementsAre("b:2", "a:1", "b:2"));
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

TEST(ServerWalkTest, WithoutTimeNoneIsAsked) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart);
  EXPECT_EQ(walk.Next(kAway, kStart), std::nullopt);
  EXPECT_EQ(walk.Server().server, "b:2") << "the next call begins there";
}

TEST(ServerWalkTest, WhereAllRefuseEachIsAskedOnce) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(5));
  walk.SetRefusedUntil(kStart);
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_EQ(walk.Next(kAway, kStart), std::nullopt);
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("c:3: Connection refused"));
}

TEST(ServerWalkTest, WhereOneIsSilentThereIsMoreTime) {
  const ClientOptions cluster = Three();
  ServerWalk walk(cluster, ServerRoute(), kStart + absl::Seconds(5));
  walk.SetRefusedUntil(kStart);
  EXPECT_TRUE(walk.Next(absl::UnavailableError("no answer"), kStart).has_value());
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_TRUE(walk.Next(kAway, kStart).has_value());
  EXPECT_EQ(walk.Limit(absl::Seconds(1), kStart), absl::Seconds(5)) << "all that is left";
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
  EXPECT_THAT(std::string(walk.error().message()), HasSubstr("in a circle: c:3 -> b:2 -> c:3"));
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
