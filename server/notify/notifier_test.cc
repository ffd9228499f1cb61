#include "server/notify/notifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "absl/time/clock.h"
#include "base/testing/fake_clock.h"
#include "base/testing/http_answerer.h"
#include "nlohmann/json.hpp"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

NotifyRule HookTo(const HttpAnswerer& server, std::vector<EventKind> events = {},
                  std::vector<std::string> files = {}) {
  NotifyRule rule;
  rule.url = server.url();
  rule.events = std::move(events);
  rule.files = std::move(files);
  return rule;
}

Event Lost(const std::string& file) { return {.kind = EventKind::kWriterLost, .file = file}; }

nlohmann::json BodyOf(const std::string& request) {
  return nlohmann::json::parse(request.substr(request.find("\r\n\r\n") + 4));
}

class NotifierTest : public ::testing::Test {
 protected:
  Notifier& Open(std::vector<NotifyRule> rules) {
    auto notifier = Notifier::Open(std::move(rules), clock_);
    EXPECT_TRUE(notifier.ok()) << notifier.status();
    notifier_ = *std::move(notifier);
    return *notifier_;
  }
  // Waits for real; moves the clock meanwhile, so that pauses end.
  template <typename Condition>
  bool Reaches(Condition condition, absl::Duration step = absl::Milliseconds(200)) {
    for (int i = 0; i < 2000 && !condition(); ++i) {
      clock_.Advance(step);
      absl::SleepFor(absl::Milliseconds(10));
    }
    return condition();
  }
  NotifyCounts::Results Hooks() {
    return notifier_->Counts().results[static_cast<size_t>(ReceiverKind::kUrl)];
  }

  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  HttpAnswerer server_;
  HttpAnswerer other_;
  std::unique_ptr<Notifier> notifier_;
};

TEST_F(NotifierTest, AReceiverIsToldOfWhatItsTableNames) {
  Notifier& notifier = Open({HookTo(server_, {EventKind::kWriterLost}, {"runs/**"})});
  notifier.Notify(Lost("other/a.h5"));
  notifier.Notify({.kind = EventKind::kDiskLow});
  notifier.Notify(Lost("runs/a.h5"));
  ASSERT_TRUE(Reaches([&] { return Hooks().delivered == 1; }));
  const nlohmann::json body = BodyOf(server_.requests().at(0));
  EXPECT_EQ(body["file"], "runs/a.h5");
  EXPECT_EQ(body["time"], "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(body["id"].get<std::string>().size(), 32u);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(NotifierTest, AnEventIsTriedUntilItArrivesAndOthersComeBehindIt) {
  server_.Answer(500, "");
  server_.Answer(503, "");
  Notifier& notifier = Open({HookTo(server_)});
  notifier.Notify(Lost("a.h5"));
  notifier.Notify(Lost("b.h5"));
  ASSERT_TRUE(Reaches([&] { return Hooks().delivered == 2; }));
  EXPECT_EQ(Hooks().retried, 2u);
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(BodyOf(requests[0])["id"], BodyOf(requests[2])["id"]);
  EXPECT_EQ(BodyOf(requests[3])["file"], "b.h5");
  EXPECT_EQ(notifier.Counts().pending, 0u);
}

TEST_F(NotifierTest, AnEventThatIsRefusedForGoodHoldsUpNone) {
  server_.Answer(400, "");
  Notifier& notifier = Open({HookTo(server_)});
  notifier.Notify(Lost("a.h5"));
  notifier.Notify(Lost("b.h5"));
  ASSERT_TRUE(Reaches([&] { return Hooks().delivered == 1 && Hooks().failed == 1; }));
}

TEST_F(NotifierTest, AReceiverThatHangsHoldsUpNoOtherAndNoStop) {
  other_.Answer("");
  Notifier& notifier = Open({HookTo(other_), HookTo(server_)});
  notifier.Notify(Lost("a.h5"));
  ASSERT_TRUE(other_.WaitForRequests(1));
  ASSERT_TRUE(Reaches([&] { return Hooks().delivered == 1; }));
  const absl::Time start = absl::Now();
  notifier.Stop(absl::Milliseconds(100));
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

TEST_F(NotifierTest, AStopDeliversWhatHasJustCome) {
  Notifier& notifier = Open({HookTo(server_)});
  for (const char* name : {"a.h5", "b.h5", "c.h5"}) notifier.Notify(Lost(name));
  notifier.Stop(absl::Seconds(20));
  EXPECT_EQ(server_.requests().size(), 3u);
  notifier.Notify(Lost("d.h5"));
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_F(NotifierTest, AReloadKeepsWhatWaitsForAReceiverThatStays) {
  server_.Answer(500, "");
  Notifier& notifier = Open({HookTo(other_), HookTo(server_)});
  notifier.Notify(Lost("a.h5"));
  // The clock stands still, so that no second try comes before the reload.
  ASSERT_TRUE(Reaches([&] { return Hooks().retried == 1 && Hooks().delivered == 1; },
                      absl::ZeroDuration()));
  ASSERT_TRUE(notifier.Reload({HookTo(server_, {EventKind::kDiskLow})}).ok());
  ASSERT_TRUE(server_.WaitForRequests(1));
  notifier.Notify(Lost("b.h5"));
  ASSERT_TRUE(Reaches([&] { return Hooks().delivered == 2; }));
  EXPECT_EQ(server_.requests().size(), 2u) << "a.h5 twice; it is told of no b.h5";
  EXPECT_EQ(other_.requests().size(), 1u);
}

TEST_F(NotifierTest, AReloadThatFailsChangesNothing) {
  Notifier& notifier = Open({HookTo(server_)});
  NotifyRule bad = HookTo(other_);
  bad.secret_file = "/nowhere/secret";
  EXPECT_TRUE(absl::IsNotFound(notifier.Reload({bad})));
  notifier.Notify(Lost("a.h5"));
  EXPECT_TRUE(Reaches([&] { return Hooks().delivered == 1; }));
  EXPECT_TRUE(other_.requests().empty());
}

// No thread begins meanwhile: its stack would have no room.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 47);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_F(NotifierTest, AReloadThatGetsNoThreadChangesNothing) {
  Notifier& notifier = Open({HookTo(server_)});
  {
    const NoThreads no_threads;
    const absl::Status status =
        notifier.Reload({HookTo(server_, {EventKind::kDiskLow}), HookTo(other_)});
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
  notifier.Notify(Lost("a.h5"));
  EXPECT_TRUE(Reaches([&] { return Hooks().delivered == 1; })) << "under its rule of before";
  EXPECT_TRUE(other_.requests().empty());
  EXPECT_TRUE(notifier.Reload({HookTo(other_)}).ok());
}

TEST_F(NotifierTest, AProgramThatIsMissingLetsTheServerStart) {
  NotifyRule rule;
  rule.command = {"/nowhere/tell"};
  Notifier& notifier = Open({rule});
  notifier.Notify(Lost("a.h5"));
  EXPECT_TRUE(Reaches([&] {
    return notifier.Counts().results[static_cast<size_t>(ReceiverKind::kCommand)].retried > 0;
  }));
}

}  // namespace
}  // namespace h5mirror::server
