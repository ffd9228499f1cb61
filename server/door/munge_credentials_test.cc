#include "server/door/munge_credentials.h"

#include <atomic>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/door/auth.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// munged: each credential once. "MUNGE:SECONDS=UID:" expires so soon.
class FakeMunged {
 public:
  absl::StatusOr<MungeClaim> Decode(const std::string& credential) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](bool* hangs) { return !*hangs; }, &hangs_));
    if (++used_[credential] > 1) return absl::UnauthenticatedError("it was used before");
    if (credential == "MUNGE:bad:") return absl::UnauthenticatedError("another key");
    if (credential == "MUNGE:slurm:") return MungeClaim{7, "slurm", absl::Minutes(5)};
    const std::string text = credential.substr(6);
    return MungeClaim{static_cast<uid_t>(std::stoi(text.substr(text.find('=') + 1))),
                      std::string(kMungePayload), absl::Seconds(std::stoi(text))};
  }
  void Hang(bool hangs) {
    absl::MutexLock lock(&mutex_);
    hangs_ = hangs;
  }
  MungeCredentials::Decode Function() {
    return [this](const std::string& credential) { return Decode(credential); };
  }

 private:
  absl::Mutex mutex_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> used_ ABSL_GUARDED_BY(mutex_);
};

class MungeCredentialsTest : public ::testing::Test {
 protected:
  MungeCredentials::Found Decoded(const std::string& credential) {
    absl::Notification answered;
    munge_.Await(credential, [&] { answered.Notify(); });
    answered.WaitForNotification();
    return munge_.Find(credential);
  }
  std::string WhyNot(const std::string& credential) {
    const absl::Status status = Decoded(credential).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_EQ(status.message().find(credential), absl::string_view::npos);
    return std::string(status.message());
  }

  FakeMunged munged_;
  MungeCredentials munge_{munged_.Function()};
};

TEST_F(MungeCredentialsTest, ACredentialCountsForManyCalls) {
  for (int i = 0; i < 3; ++i) {
    const auto found = Decoded("MUNGE:300=7:");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((*found)->uid, 7u);
  }
  EXPECT_THAT(munge_.Users(), ElementsAre(7));
}

TEST_F(MungeCredentialsTest, RefusalsSayWhy) {
  EXPECT_THAT(WhyNot("MUNGE:bad:"), HasSubstr("another key"));
  EXPECT_THAT(WhyNot("MUNGE:slurm:"), HasSubstr("another program"));
  EXPECT_THAT(WhyNot("MUNGE:0=7:"), HasSubstr("expired"));
  EXPECT_THAT(WhyNot("MUNGE:" + std::string(1024, 'A') + ":"), HasSubstr("at most 1024 bytes"));
  EXPECT_TRUE(munge_.Users().empty());
}

TEST_F(MungeCredentialsTest, AfterItsTimeNoCallBeginsAndTheRestGoesOn) {
  const auto found = Decoded("MUNGE:1=7:");
  ASSERT_TRUE(found.ok()) << found.status();
  while (absl::Now() < (*found)->expires) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsUnauthenticated(munge_.Find("MUNGE:1=7:").status()));
  EXPECT_TRUE(munge_.StillValid(**found).ok());
  MungeIdentity old = **found;
  old.ends = absl::Now();
  EXPECT_TRUE(absl::IsUnauthenticated(munge_.StillValid(old)));
}

TEST_F(MungeCredentialsTest, AStrangerThatFindsOneForgottenIsRefused) {
  ASSERT_TRUE(Decoded("MUNGE:300=7:").ok());
  MungeCredentials other{munged_.Function()};
  absl::Notification answered;
  other.Await("MUNGE:300=7:", [&] { answered.Notify(); });
  answered.WaitForNotification();
  EXPECT_THAT(std::string(other.Find("MUNGE:300=7:").status().message()), HasSubstr("used before"));
}

TEST_F(MungeCredentialsTest, AMungedThatHangsHoldsNobodyAndSoManyWait) {
  munged_.Hang(true);
  std::atomic<int> answered = 0;
  for (size_t i = 0; i < MungeCredentials::kWaitingMax; ++i) {
    munge_.Await("MUNGE:300=" + std::to_string(i) + ":", [&] { ++answered; });
  }
  EXPECT_EQ(answered, 0);
  EXPECT_FALSE(munge_.Peek("MUNGE:300=1:").has_value());
  EXPECT_TRUE(absl::IsUnavailable(munge_.Find("MUNGE:300=1:").status()));
  EXPECT_THAT(std::string(munge_.Find("MUNGE:300=999:").status().message()),
              HasSubstr("too many callers"));
  munged_.Hang(false);
  while (answered < static_cast<int>(MungeCredentials::kWaitingMax)) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(Decoded("MUNGE:300=999:").ok());
}

TEST_F(MungeCredentialsTest, OfOneCredentialNotAllCallsWait) {
  munged_.Hang(true);
  int answered_at_once = 0;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 500; ++i) {
    const int before = answered;
    munge_.Await("MUNGE:300=7:", [&] { ++answered; });
    answered_at_once += answered - before;
  }
  EXPECT_GT(answered_at_once, 0);
  EXPECT_LT(answered_at_once, 500);
  munged_.Hang(false);
  while (answered < 500) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(munge_.Find("MUNGE:300=7:").ok());
}

// As after munged was away. It decodes the credential no second time, so it must stay.
TEST(MungeCredentialsEndTest, ACredentialThatFailedAndCountsLaterIsKept) {
  FakeMunged munged;
  std::atomic<bool> is_away = true;
  MungeCredentials munge([&](const std::string& credential) -> absl::StatusOr<MungeClaim> {
    if (is_away) return absl::UnavailableError("munged does not answer");
    return munged.Decode(credential);
  });
  const auto decoded = [&](const std::string& credential) {
    absl::Notification answered;
    munge.Await(credential, [&] { answered.Notify(); });
    answered.WaitForNotification();
    return munge.Find(credential);
  };
  EXPECT_FALSE(decoded("MUNGE:300=7:").ok());
  is_away = false;
  const absl::Time deadline = absl::Now() + 6 * MungeCredentials::kKeepFailure;
  while (!decoded("MUNGE:300=7:").ok()) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(100));
  }
  for (size_t i = 0; i < 2 * MungeCredentials::kFailuresMax; ++i) {
    EXPECT_FALSE(decoded(StrCat("MUNGE:0=", i, ":")).ok());
  }
  EXPECT_TRUE(decoded("MUNGE:300=7:").ok());
}

TEST_F(MungeCredentialsTest, OfAUserTheOldestAreForgotten) {
  ASSERT_TRUE(Decoded("MUNGE:300=8:").ok());
  for (size_t i = 0; i <= MungeCredentials::kKnownOfUserMax; ++i) {
    ASSERT_TRUE(Decoded("MUNGE:" + std::to_string(300 + i) + "=7:").ok());
  }
  EXPECT_FALSE(munge_.Peek("MUNGE:300=7:").has_value());
  EXPECT_TRUE(munge_.Peek("MUNGE:301=7:").has_value());
  EXPECT_TRUE(munge_.Find("MUNGE:300=8:").ok());
}

TEST(MungeCredentialsEndTest, DoesNotWaitForAMungedThatHangs) {
  static auto* const munged = new FakeMunged;  // The thread goes on.
  munged->Hang(true);
  bool is_called = false;
  {
    MungeCredentials munge(munged->Function());
    munge.Await("MUNGE:300=7:", [&] { is_called = true; });
  }
  EXPECT_FALSE(is_called);
  munged->Hang(false);
}

TEST_F(MungeCredentialsTest, AuthenticatorNamesTheUserOrWantsACredential) {
  Authenticator authenticator;  // Not after `munge`, which may still be telling it.
  MungeCredentials munge{munged_.Function()};
  authenticator.SetMunge(&munge);
  const std::string header = "Bearer MUNGE:300=0:";
  EXPECT_TRUE(authenticator.LooksAt(header));
  EXPECT_FALSE(authenticator.KnowsCaller(header));
  absl::Notification answered;
  authenticator.AwaitCaller(header, [&] { answered.Notify(); });
  answered.WaitForNotification();
  EXPECT_TRUE(authenticator.KnowsCaller(header));
  const auto root = authenticator.Authenticate(header);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->name, "root");
  EXPECT_EQ(IssuerName(root->issuer), "munge");
  EXPECT_TRUE(authenticator.StillMay(*root, AnyFile(Right::kRead)).ok());
  EXPECT_THAT(std::string(authenticator.Authenticate(std::nullopt).status().message()),
              HasSubstr("token = \"munge\""));
}

}  // namespace
}  // namespace h5mirror::server
