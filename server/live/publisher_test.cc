#include "server/live/publisher.h"

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"
#include "server/history/history_pruner.h"
#include "server/state/mirror_states.h"

namespace h5mirror::server {
namespace {

constexpr char kName[] = "x.h5";
constexpr uint64_t kPage = 4096;

class PublisherTest : public testing::Test {
 protected:
  using PublicationPtr = Publisher::PublicationPtr;

  void SetUp() override {
    store_ = store::OpenStore(env_, "/");
    file_ = store_->OpenOrCreateFile(kName, 0).value();
    writer_ = std::make_unique<store::Writer>(file_, store::SessionStart::kContinue);
    quotas_ = std::make_unique<SpaceQuotas>(std::vector<QuotaRule>(), *store_);
    pruner_ = std::make_unique<HistoryPruner>(config_, *store_, clock_, metrics_, nullptr);
    publisher_ = std::make_unique<Publisher>(
        ServiceEnvironment{*store_, leases_, clock_, metrics_, authenticator_, commits_, *pruner_,
                           mirrors_, *quotas_},
        absl::ZeroDuration());
  }
  void TearDown() override {
    publisher_.reset();
    pruner_.reset();
    quotas_.reset();
  }

  // A cut whose first page, which is metadata, has changed.
  void Cut(char byte) {
    ASSERT_TRUE(writer_->Write(0, std::string(kPage, byte)).ok());
    const Extent page{0, kPage};
    file_->metadata().Add({&page, 1});
    ASSERT_TRUE(writer_->Cut(store::BarrierKind::kTick).ok());
    publisher_->OnChange(kName);
  }
  // The one after `known`.
  PublicationPtr After(const PublicationPtr& known) {
    absl::Notification told;
    publisher_->Wait(kName, known, [&] { told.Notify(); });
    EXPECT_TRUE(told.WaitForNotificationWithTimeout(absl::Seconds(60)));
    return publisher_->Newest(kName).value_or(nullptr);
  }
  // Takes all of it, as a follower that has nothing yet.
  static std::shared_ptr<CutMessages> Take(Publication& publication) {
    auto messages = publication.MessagesFrom(0, "", kPage);
    EXPECT_TRUE(messages->Get(0).ok());
    return messages;
  }

  FaultEnv env_;
  SystemClock clock_;
  Config config_;
  Metrics metrics_{uint64_t{1} << 30};
  LeaseTable leases_{clock_, absl::Seconds(60)};
  Authenticator authenticator_;
  CommitBoard commits_;
  MirrorStates mirrors_{clock_};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::Writer> writer_;
  std::unique_ptr<SpaceQuotas> quotas_;
  std::unique_ptr<HistoryPruner> pruner_;
  std::unique_ptr<Publisher> publisher_;
};

TEST_F(PublisherTest, WhoWaitsIsCalledForTheNextCut) {
  const auto follower = publisher_->Follow(kName);
  ASSERT_TRUE(follower.ok()) << follower.status();
  Cut('a');
  const PublicationPtr first = After(nullptr);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->cut(), file_->NewestCut());
  EXPECT_TRUE(publisher_->IsAtRest(kName, first)) << "nobody has a lease";
  Cut('b');
  const PublicationPtr second = After(first);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->cut(), file_->NewestCut());
  EXPECT_FALSE(publisher_->IsAtRest(kName, first));
}

TEST_F(PublisherTest, WhoHasCancelledIsNotCalled) {
  const auto follower = publisher_->Follow(kName);
  Cut('a');
  const PublicationPtr first = After(nullptr);
  bool called = false;
  const uint64_t id = publisher_->Wait(kName, first, [&] { called = true; });
  EXPECT_TRUE(publisher_->Cancel(kName, id));
  EXPECT_FALSE(publisher_->Cancel(kName, id));
  Cut('b');
  After(first);
  EXPECT_FALSE(called);
}

TEST_F(PublisherTest, AFileIsPublishedAsLongAsSomebodyFollowsIt) {
  EXPECT_TRUE(absl::IsNotFound(publisher_->Follow("none.h5").status()));
  auto one = publisher_->Follow(kName), two = publisher_->Follow(kName);
  EXPECT_EQ(publisher_->count().files, 1);
  EXPECT_EQ(publisher_->count().followers, 2);
  one->reset();
  EXPECT_EQ(publisher_->count().followers, 1);
  two->reset();
  EXPECT_EQ(publisher_->count().files, 0);
}

// Followers that take nothing hold a different cut each. The server's memory must not grow with
// their number.
TEST_F(PublisherTest, OnlyTheTwoNewestKeepMessages) {
  const auto follower = publisher_->Follow(kName);
  Cut('a');
  const PublicationPtr first = After(nullptr);
  const auto of_first = Take(*first);
  Cut('b');
  const PublicationPtr second = After(first);
  const auto of_second = Take(*second);
  EXPECT_GT(of_first->kept_bytes(), 0) << "for followers in the middle of it";
  Cut('c');
  const PublicationPtr third = After(second);
  const auto of_third = Take(*third);
  // The publisher tells waiting followers before it drops the old messages.
  for (int i = 0; i < 600 && of_first->kept_bytes() > 0; ++i)
    absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(of_first->kept_bytes(), 0);
  EXPECT_GT(of_second->kept_bytes(), 0);
  EXPECT_GT(of_third->kept_bytes(), 0);
}

TEST_F(PublisherTest, AStopIsToldToThoseWhoWait) {
  const auto follower = publisher_->Follow(kName);
  absl::Notification told;
  publisher_->Wait(kName, nullptr, [&] { told.Notify(); });
  publisher_->Stop();
  EXPECT_TRUE(told.HasBeenNotified());
  EXPECT_TRUE(absl::IsUnavailable(publisher_->Newest(kName).status()));
}

}  // namespace
}  // namespace h5mirror::server
