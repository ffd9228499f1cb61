#include "server/notify/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;

class EventQueueTest : public ::testing::Test {
 protected:
  static Event Lost(const std::string& file, int64_t cut = 0) {
    Event event{.kind = EventKind::kWriterLost, .file = file};
    event.numbers = {{"last_cut", cut}};
    event.id = file + "#" + std::to_string(cut);
    event.time = event.last_time = absl::FromUnixSeconds(cut);
    return event;
  }
  size_t Add(const std::string& file, int64_t cut = 0) { return queue_.Add(Lost(file, cut), now_); }
  // The name of the next event, delivered; "": none is due.
  std::string Deliver() {
    const auto event = queue_.Take(now_);
    if (!event) return "";
    queue_.Delivered();
    return event->id;
  }
  bool Fail() {
    EXPECT_TRUE(queue_.Take(now_).has_value());
    return queue_.Failed(now_, EventQueue::Retry::kMay);
  }

  absl::Duration now_ = absl::Seconds(1000);
  EventQueue queue_{{.events_max = 4}};
};

TEST_F(EventQueueTest, EventsComeInTheirOrder) {
  for (const char* name : {"b", "a", "c"}) Add(name);
  EXPECT_EQ(Deliver(), "b#0");
  EXPECT_EQ(Deliver(), "a#0");
  EXPECT_EQ(Deliver(), "c#0");
  EXPECT_EQ(Deliver(), "");
}

TEST_F(EventQueueTest, TheSameEventWhileItWaitsIsFolded) {
  Add("a", 1);
  Add("b", 2);
  Add("a", 3);
  Add("a", 4);
  const auto event = queue_.Take(now_);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->repeated, 2);
  EXPECT_EQ(event->id, "a#1");
  EXPECT_EQ(event->time, absl::FromUnixSeconds(1));
  EXPECT_EQ(event->last_time, absl::FromUnixSeconds(4));
  EXPECT_EQ(event->numbers.at("last_cut"), 4) << "the newest figures";
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(EventQueueTest, TheSameEventSoonAfterwardsIsHeldAndFolded) {
  Add("a", 1);
  EXPECT_EQ(Deliver(), "a#1");
  now_ += absl::Minutes(1);
  for (const int cut : {2, 3, 4}) Add("a", cut);
  EXPECT_EQ(Deliver(), "");
  Add("b", 5);
  EXPECT_EQ(Deliver(), "b#5") << "it holds up no other";
  now_ += absl::Minutes(9);
  const auto event = queue_.Take(now_);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->id, "a#2");
  EXPECT_EQ(event->repeated, 2);
}

TEST_F(EventQueueTest, AfterItsWindowTheSameEventComesAtOnce) {
  Add("a", 1);
  Deliver();
  now_ += absl::Minutes(10);
  Add("a", 2);
  EXPECT_EQ(Deliver(), "a#2");
}

TEST_F(EventQueueTest, AnotherKindOrFileIsAnotherEvent) {
  Add("a");
  Event diverged = Lost("a", 9);
  diverged.kind = EventKind::kDiverged;
  queue_.Add(diverged, now_);
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(EventQueueTest, AnotherCauseIsAnotherEvent) {
  Event damage = Lost("a", 1);
  damage.kind = EventKind::kVerifyFailed;
  damage.text = "damage";
  Event differs = damage;
  differs.id = "a#2";
  differs.cause = "differs";
  differs.text = "it differs";
  for (const Event& event : {damage, differs, differs}) queue_.Add(event, now_);
  const auto first = queue_.Take(now_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->text, "damage");
  EXPECT_EQ(first->repeated, 0);
  queue_.Delivered();
  const auto second = queue_.Take(now_);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->text, "it differs");
  EXPECT_EQ(second->repeated, 1);
}

TEST_F(EventQueueTest, AnEventThatWasTriedDoesNotChange) {
  Add("a", 1);
  EXPECT_TRUE(Fail());
  Add("a", 2);
  now_ += absl::Seconds(1);
  const auto event = queue_.Take(now_);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->id, "a#1");
  EXPECT_EQ(event->repeated, 0);
  queue_.Delivered();
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(EventQueueTest, PausesDoubleUpToTheirBound) {
  Add("a");
  Add("b");
  std::vector<int64_t> pauses;
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(Fail());
    const absl::Duration failed = now_;
    while (!queue_.Take(now_).has_value()) now_ += absl::Seconds(1);
    pauses.push_back(absl::ToInt64Seconds(now_ - failed));
    queue_.Failed(now_ - absl::Hours(1), EventQueue::Retry::kMay);  // Due at once.
  }
  EXPECT_THAT(std::vector(pauses.begin(), pauses.begin() + 5), ElementsAre(1, 4, 16, 64, 256));
  EXPECT_EQ(pauses.back(), 300);
}

TEST_F(EventQueueTest, ADayAfterItsFirstTryAnEventIsGivenUp) {
  Add("a");
  Add("b");
  EXPECT_TRUE(Fail());
  now_ += absl::Hours(24) - absl::Seconds(1);
  EXPECT_TRUE(Fail());
  now_ += absl::Minutes(5);
  EXPECT_FALSE(Fail());
  EXPECT_EQ(Deliver(), "b#0");
}

TEST_F(EventQueueTest, AnEventThatNoTryCanHelpIsGivenUpAtOnce) {
  Add("a");
  ASSERT_TRUE(queue_.Take(now_).has_value());
  EXPECT_FALSE(queue_.Failed(now_, EventQueue::Retry::kCannotHelp));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(EventQueueTest, BeyondItsBoundTheOldestGo) {
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(Add(name), 0u);
  EXPECT_EQ(Add("e"), 1u);
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_EQ(Deliver(), "b#0");
}

TEST_F(EventQueueTest, TheOneThatIsBeingTriedIsNotDropped) {
  for (const char* name : {"a", "b", "c", "d"}) Add(name);
  ASSERT_EQ(queue_.Take(now_)->id, "a#0");
  EXPECT_EQ(Add("e"), 1u);
  queue_.Delivered();
  EXPECT_EQ(Deliver(), "c#0");
}

TEST_F(EventQueueTest, AFloodOfFilesDropsNoEventOfTheServer) {
  for (const EventKind kind : {EventKind::kDiskLow, EventKind::kHistoryStopped}) {
    Event event = Lost("");
    event.kind = kind;
    event.id = EventName(kind);
    EXPECT_EQ(queue_.Add(event, now_), 0u);
  }
  for (int i = 0; i < 100; ++i) Add(std::to_string(i));
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_EQ(Deliver(), "disk_low");
  EXPECT_EQ(Deliver(), "history_stopped");
  EXPECT_EQ(Deliver(), "98#0");
  EXPECT_EQ(Deliver(), "99#0");
}

TEST_F(EventQueueTest, HeldEventsOfFilesGoBeforeThoseOfTheServer) {
  for (const char* name : {"", "a"}) {
    Add(name);
    Deliver();
    Add(name, 1);
  }
  for (const char* cause : {"b", "c", "d"}) {
    Event event = Lost("");
    event.cause = cause;
    event.id = cause;
    queue_.Add(event, now_);
  }
  EXPECT_EQ(queue_.size(), 4u) << "a#1 is gone";
  for (const char* id : {"b", "c", "d", ""}) EXPECT_EQ(Deliver(), id);
  now_ += absl::Minutes(10);
  EXPECT_EQ(Deliver(), "#1");
  EXPECT_EQ(Deliver(), "");
}

TEST_F(EventQueueTest, WithoutEventsOfFilesTheOldestGoes) {
  for (const char* cause : {"a", "b", "c", "d", "e"}) {
    Event event = Lost("");
    event.cause = cause;
    event.id = cause;
    queue_.Add(event, now_);
  }
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_EQ(Deliver(), "b");
}

TEST_F(EventQueueTest, HeldEventsCountToo) {
  for (const char* name : {"a", "b", "c", "d"}) {
    Add(name);
    Deliver();
    Add(name, 1);
  }
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_EQ(Add("e"), 1u);
  EXPECT_EQ(queue_.size(), 4u);
}

TEST_F(EventQueueTest, ManyNamesTakeBoundedMemory) {
  for (int i = 0; i < 10'000; ++i) Add(std::to_string(i));
  EXPECT_EQ(queue_.size(), 4u);
  now_ += absl::Minutes(11);
  Add("again");
  for (int i = 0; i < 3; ++i) Deliver();
  EXPECT_EQ(Deliver(), "again#0");
}

TEST_F(EventQueueTest, OnlyAnEventThatWasNeverTriedIsFresh) {
  EXPECT_FALSE(queue_.has_fresh());
  Add("a");
  EXPECT_TRUE(queue_.has_fresh());
  Fail();
  EXPECT_FALSE(queue_.has_fresh());
}

}  // namespace
}  // namespace h5mirror::server
