#include "server/quotas/caller_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"
#include "server/quotas/rate_bucket.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using Slots = std::vector<CallerLimits::Slot>;

class CallerLimitsTest : public ::testing::Test {
 protected:
  static Principal Token(const std::string& name) {
    return {.name = name, .rights = Rights(), .issuer = Principal::Issuer::kToken};
  }
  static LimitRule Rule(std::vector<std::string> users = {}) {
    LimitRule rule;
    rule.users = std::move(users);
    rule.source = "h5mirrord.toml:12";
    return rule;
  }
  static LimitRule Calls(uint64_t calls) {
    LimitRule rule = Rule();
    rule.calls = calls;
    return rule;
  }
  absl::StatusOr<CallerLimits::Slot> Enter(const Principal& principal, const char* method,
                                           std::optional<LimitKind> use = std::nullopt,
                                           const std::string& address = "") {
    return limits_.Enter({principal, address, method, use}, &brake_);
  }
  absl::StatusOr<CallerLimits::Slot> Open(const Principal& principal) {
    return Enter(principal, "MirrorFile", LimitKind::kSessions);
  }
  // As many calls as go now.
  int Ask(const Principal& principal, const std::string& address = "") {
    int count = 0;
    while (count < 10000 && Enter(principal, "GetFile", std::nullopt, address).ok()) ++count;
    return count;
  }
  CallerUse::Amount Use(const Principal& principal, LimitKind kind) {
    return limits_.UseOf({principal, ""}).amounts[static_cast<size_t>(kind)];
  }

  FakeClock clock_;
  CallerLimits limits_{clock_};
  std::shared_ptr<CallBrake> brake_;
};

TEST_F(CallerLimitsTest, WithoutATableItIsOff) {
  EXPECT_FALSE(limits_.is_on());
  limits_.SetRules({Rule()});
  EXPECT_TRUE(limits_.is_on());
  limits_.SetRules({});
  EXPECT_FALSE(limits_.is_on());
}

TEST_F(CallerLimitsTest, SessionsOverTheLimitAreRefused) {
  LimitRule rule = Rule();
  rule.sessions = 2;
  limits_.SetRules({rule});
  Slots slots;
  for (int i = 0; i < 2; ++i) slots.push_back(*Open(Token("anna")));
  const absl::Status refused = Open(Token("anna")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("token \"anna\" may have 2 sessions and has 2, by the [[limits]] table at "
                        "h5mirrord.toml:12 of the server: close files"));
  EXPECT_TRUE(Open(Token("bob")).ok());
  EXPECT_TRUE(Enter(Token("anna"), "FollowFile", LimitKind::kStreams).ok());
  EXPECT_EQ(Use(Token("anna"), LimitKind::kSessions).refused, 1);
}

TEST_F(CallerLimitsTest, ASlotIsGivenBackOnce) {
  LimitRule rule = Rule();
  rule.sessions = 1;
  limits_.SetRules({rule});
  {
    CallerLimits::Slot slot = *Open(Token("anna"));
    CallerLimits::Slot moved = std::move(slot);
    slot = std::move(moved);
    EXPECT_EQ(Use(Token("anna"), LimitKind::kSessions).used, 1);
    EXPECT_FALSE(Open(Token("anna")).ok());
  }
  EXPECT_EQ(Use(Token("anna"), LimitKind::kSessions).used, 0);
  EXPECT_TRUE(Open(Token("anna")).ok());
  EXPECT_EQ(Use(Token("anna"), LimitKind::kSessions).used, 0);
}

TEST_F(CallerLimitsTest, TheFirstTableThatTakesTheCallerDecides) {
  LimitRule none = Rule({"token:anna"});
  limits_.SetRules({none, Calls(3)});
  EXPECT_EQ(Ask(Token("anna")), 10000);
  EXPECT_EQ(Ask(Token("bob")), 3);
  Principal unix_anna{.name = "anna", .rights = Rights(), .issuer = Principal::Issuer::kUnix};
  EXPECT_EQ(Ask(unix_anna), 3);
}

TEST_F(CallerLimitsTest, GroupsAreThoseThatTheCallerHasNow) {
  LimitRule group = Rule();
  group.groups = {"bl7"};
  group.calls = 5;
  limits_.SetRules({group, Calls(2)});
  Principal anna{.name = "anna", .rights = Rights(), .issuer = Principal::Issuer::kUnix};
  EXPECT_EQ(Ask(anna), 2);
  auto user = std::make_shared<UnixUser>();
  user->groups = {"bl7"};
  anna.user = user;
  clock_.Advance(absl::Seconds(1));
  EXPECT_GE(Ask(anna), 2);
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(Ask(anna), 5);
}

TEST_F(CallerLimitsTest, ACallerWithoutANameIsItsAddress) {
  limits_.SetRules({Calls(4)});
  EXPECT_EQ(Ask({}, "192.0.2.7"), 4);
  EXPECT_EQ(Ask({}, "uid 1000"), 4);
  EXPECT_EQ(Ask({}, "192.0.2.7"), 0);
}

TEST_F(CallerLimitsTest, CallsComeBackAsTimePasses) {
  limits_.SetRules({Calls(10)});
  EXPECT_EQ(Ask(Token("anna")), 10);
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(Ask(Token("anna")), 5);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Ask(Token("anna")), 10);
}

TEST_F(CallerLimitsTest, NewTablesCountAtOnce) {
  limits_.SetRules({Calls(2)});
  EXPECT_EQ(Ask(Token("anna")), 2);
  limits_.SetRules({Calls(100)});
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Ask(Token("anna")), 100);
  limits_.SetRules({Calls(3)});
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Ask(Token("anna")), 3);
}

TEST_F(CallerLimitsTest, WhatRanBeforeCounts) {
  LimitRule rule = Rule();
  rule.sessions = 1;
  limits_.SetRules({rule});
  const Principal anna = Token("anna");
  Slots slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(limits_.Adopt({anna, "", "MirrorFile", LimitKind::kSessions}));
  }
  EXPECT_EQ(Use(anna, LimitKind::kSessions).used, 3);
  slots.resize(1);
  EXPECT_FALSE(Open(anna).ok());
  slots.clear();
  EXPECT_TRUE(Open(anna).ok());
}

TEST_F(CallerLimitsTest, BytesOverTheRateAreWaitedForInTurn) {
  LimitRule rule = Rule();
  rule.bandwidth = 1000;
  limits_.SetRules({rule});
  const CallerLimits::Slot one = *Open(Token("anna"));
  const CallerLimits::Slot two = *Open(Token("anna"));
  EXPECT_EQ(one.Until(one.CountBytes(1000), true), absl::ZeroDuration());  // a second's worth
  const uint64_t first = one.CountBytes(500);
  const uint64_t second = two.CountBytes(1000);
  EXPECT_EQ(one.Until(first, true), absl::Milliseconds(500));
  EXPECT_EQ(two.Until(second, true), absl::Milliseconds(1500));
  clock_.Advance(absl::Milliseconds(600));
  EXPECT_EQ(one.Until(first, false), absl::ZeroDuration());
  EXPECT_EQ(two.Until(second, false), absl::Milliseconds(900));
  rule.bandwidth = 9000;
  limits_.SetRules({rule});
  EXPECT_EQ(two.Until(second, false), absl::Milliseconds(100));
  limits_.SetRules({});
  EXPECT_EQ(two.Until(second, false), absl::ZeroDuration());
}

TEST_F(CallerLimitsTest, UseIsToldOfTheLastSecond) {
  LimitRule rule = Calls(100);
  rule.bandwidth = 1000;
  limits_.SetRules({rule});
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(Enter(Token("anna"), "GetFile").ok());
  const CallerLimits::Slot slot = *Open(Token("anna"));
  slot.CountBytes(300);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Use(Token("anna"), LimitKind::kCalls).used, 8);
  EXPECT_EQ(Use(Token("anna"), LimitKind::kCalls).limit, 100);
  EXPECT_EQ(Use(Token("anna"), LimitKind::kBandwidth).used, 300);
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(Use(Token("anna"), LimitKind::kCalls).used, 0);
  EXPECT_EQ(limits_.UseOf({Token("anna"), ""}).table, "h5mirrord.toml:12");
}

TEST_F(CallerLimitsTest, AllCallersComePageByPage) {
  limits_.SetRules({Rule()});
  for (const char* name : {"c", "a", "b"}) EXPECT_TRUE(Enter(Token(name), "GetFile").ok());
  const auto first = limits_.UseOfAll("", 2);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[0].name, "a");
  const auto rest = limits_.UseOfAll(first[1].key, 2);
  ASSERT_EQ(rest.size(), 1);
  EXPECT_EQ(rest[0].name, "c");
}

TEST_F(CallerLimitsTest, RefusalsAreHeldBackWhenThereAreMany) {
  limits_.SetRules({Calls(1)});
  EXPECT_EQ(Ask(Token("anna")), 1);
  ASSERT_NE(brake_, nullptr);
  int prompt = 0;
  while (prompt < 100 && !brake_->Ask("GetFile").is_late) ++prompt;
  EXPECT_EQ(prompt, 9);  // Ask() had the tenth.
  EXPECT_TRUE(absl::IsResourceExhausted(brake_->Ask("GetFile").why));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(brake_->Ask("GetFile").why.ok());
}

TEST_F(CallerLimitsTest, CallsOfAnotherKindAreNotHeldBack) {
  LimitRule rule = Rule();
  rule.sessions = 0;
  limits_.SetRules({rule});
  EXPECT_FALSE(Open(Token("anna")).ok());
  EXPECT_FALSE(brake_->Ask("MirrorFile").why.ok());
  EXPECT_TRUE(brake_->Ask("GetFile").why.ok());
  rule.sessions = 1;
  limits_.SetRules({rule});
  EXPECT_TRUE(brake_->Ask("MirrorFile").why.ok());
}

TEST(RateBucketTest, ATimeThatStandsStillGivesNothing) {
  RateBucket bucket;
  EXPECT_TRUE(bucket.HasOne(1, absl::Seconds(5)));
  bucket.TakeOne();
  EXPECT_FALSE(bucket.HasOne(1, absl::Seconds(5)));
  EXPECT_FALSE(bucket.HasOne(1, absl::Seconds(4)));
  EXPECT_TRUE(bucket.HasOne(1, absl::Seconds(6)));
}

}  // namespace
}  // namespace h5mirror::server
