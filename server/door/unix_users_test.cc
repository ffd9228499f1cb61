#include "server/door/unix_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/testing/fake_clock.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;

// A name service of the test's own. Thread-safe.
class Names {
 public:
  absl::StatusOr<UnixUser> LookUp(uid_t /*uid*/) {
    absl::MutexLock lock(&mutex_);
    ++asked_;
    mutex_.Await(absl::Condition(&answers_));
    return answer_;
  }
  void Say(absl::StatusOr<UnixUser> answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
    answers_ = true;
  }
  void Hang() {
    absl::MutexLock lock(&mutex_);
    answers_ = false;
  }
  int asked() {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  absl::Mutex mutex_;
  absl::StatusOr<UnixUser> answer_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("");
  bool answers_ ABSL_GUARDED_BY(mutex_) = false;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class UnixUsersTest : public ::testing::Test {
 protected:
  ~UnixUsersTest() override { names_->Say(absl::UnavailableError("the end")); }

  void Await(uid_t uid) {
    absl::Notification known;
    users_.Await(uid, [&] { known.Notify(); });
    known.WaitForNotification();
  }
  // Until the service was asked so often in all. An answer may be on its way still, and until it is
  // there nothing is asked.
  void AskAgain(int count) {
    while (names_->asked() < count) {
      EXPECT_TRUE(users_.Find(7).ok());
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  // Until the newest answer has come.
  void AwaitFind(const std::function<bool(const UnixUsers::Found&)>& is_it) {
    while (!is_it(users_.Find(7))) absl::SleepFor(absl::Milliseconds(1));
  }

  FakeClock clock_;
  const std::shared_ptr<Names> names_ = std::make_shared<Names>();
  UnixUsers users_{clock_, [names = names_](uid_t uid) { return names->LookUp(uid); }};
};

TEST_F(UnixUsersTest, NobodyWaitsButWhoAsksTo) {
  EXPECT_TRUE(absl::IsUnavailable(users_.Find(7).status()));
  EXPECT_EQ(users_.Peek(7), std::nullopt);
  absl::Notification known;
  users_.Await(7, [&] { known.Notify(); });
  EXPECT_FALSE(known.HasBeenNotified());
  names_->Say(UnixUser{"anna", {"staff", "bl7"}});
  known.WaitForNotification();
  const auto user = users_.Find(7);
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ((*user)->name, "anna");
  EXPECT_THAT((*user)->groups, ElementsAre("staff", "bl7"));
}

TEST_F(UnixUsersTest, AnOldAnswerCountsUntilTheNextIsThere) {
  names_->Say(UnixUser{"anna", {"bl7"}});
  Await(7);
  names_->Hang();
  clock_.Advance(UnixUsers::kKeep);
  AskAgain(2);
  EXPECT_THAT((*users_.Find(7))->groups, ElementsAre("bl7"));
  names_->Say(UnixUser{"anna", {}});
  AwaitFind([](const auto& user) { return (*user)->groups.empty(); });
}

// A group that is lost could be one that a table denies something to.
TEST_F(UnixUsersTest, AFailureReplacesNoAnswer) {
  names_->Say(UnixUser{"anna", {"guests"}});
  Await(7);
  names_->Say(absl::UnavailableError("no LDAP"));
  for (int i = 2; i < 5; ++i) {
    clock_.Advance(UnixUsers::kKeep);
    AskAgain(i);
    EXPECT_THAT((*users_.Find(7))->groups, ElementsAre("guests"));
  }
  names_->Say(absl::NotFoundError("no such user"));
  AwaitFind([&](const auto& user) {
    clock_.Advance(UnixUsers::kKeep);
    return absl::IsNotFound(user.status());
  });
}

// A uid may be another person's after a long time; but in an outage of the name service people
// work.
TEST_F(UnixUsersTest, AnOldAnswerCountsOnlyWhileTheServiceFails) {
  names_->Say(UnixUser{"anna", {}});
  Await(7);
  names_->Hang();
  clock_.Advance(UnixUsers::kCountMax);
  EXPECT_TRUE(absl::IsUnavailable(users_.Find(7).status()));
  EXPECT_EQ(users_.Peek(7), std::nullopt);
  names_->Say(absl::UnavailableError("no LDAP"));
  AwaitFind([](const auto& user) { return user.ok(); });
  clock_.Advance(UnixUsers::kOutageMax - UnixUsers::kCountMax);
  EXPECT_EQ(users_.Peek(7), std::nullopt);
}

// Neither a service that hangs for all, nor one that hangs for users that nobody knows.
TEST_F(UnixUsersTest, AServiceThatHangsKeepsNoKnownUserOut) {
  names_->Say(UnixUser{"anna", {}});
  Await(7);
  names_->Hang();
  clock_.Advance(UnixUsers::kCountMax);
  EXPECT_FALSE(users_.Find(7).ok());
  clock_.Advance(UnixUsers::kAnswerMax);
  EXPECT_TRUE(users_.Find(7).ok());
}

TEST_F(UnixUsersTest, HeldUsersAreAskedAgainAndChangesAreTold) {
  names_->Say(UnixUser{"anna", {"bl7"}});
  Await(7);
  clock_.Advance(UnixUsers::kKeep);
  users_.Tend({7});
  while (names_->asked() < 2) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(users_.TakeChange());
  names_->Say(UnixUser{"anna", {}});
  users_.AskAllAgain();
  while (!users_.TakeChange()) {
    users_.Tend({7});
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(users_.TakeChange());
  EXPECT_TRUE((*users_.Find(7))->groups.empty());
}

TEST_F(UnixUsersTest, UidsWithoutANameAreForgotten) {
  names_->Say(absl::NotFoundError("no such user"));
  Await(7);
  users_.Tend({});
  EXPECT_TRUE(users_.Peek(7).has_value());
  clock_.Advance(UnixUsers::kKeepFailure);
  users_.Tend({});
  EXPECT_EQ(users_.Peek(7), std::nullopt);
}

TEST(UnixUsersEndTest, WaitsForNoNameService) {
  const auto names = std::make_shared<Names>();
  FakeClock clock;
  {
    UnixUsers users(clock, [names](uid_t uid) { return names->LookUp(uid); });
    EXPECT_FALSE(users.Find(7).ok());
    while (names->asked() == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  names->Say(absl::UnavailableError("the end"));
}

TEST_F(UnixUsersTest, AFailureIsAskedAgainSoon) {
  names_->Say(absl::UnavailableError("no LDAP"));
  Await(7);
  EXPECT_TRUE(users_.Peek(7).has_value());
  EXPECT_TRUE(absl::IsUnavailable(users_.Find(7).status()));
  names_->Say(UnixUser{"anna", {}});
  clock_.Advance(UnixUsers::kKeepFailure);
  AwaitFind([](const auto& user) { return user.ok(); });
}

TEST(LookUpUnixUserTest, KnowsTheUsersOfThisHost) {
  const auto root = LookUpUnixUser(0);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->name, "root");
  EXPECT_THAT(root->groups, ::testing::Contains("root"));
  EXPECT_TRUE(absl::IsNotFound(LookUpUnixUser(3'999'999'999).status()));
}

}  // namespace
}  // namespace h5mirror::server
