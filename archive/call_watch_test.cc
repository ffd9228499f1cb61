// Tells which calls of an archive fail and since when, and which may begin.
#include "archive/call_watch.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using Kind = CallWatch::Kind;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(1);

class CallWatchTest : public testing::Test {
 protected:
  void Call(Kind kind, const absl::Status& status, bool is_reached = true) {
    const auto call = watch_.Begin(kind, true, kLong);
    ASSERT_TRUE(call.ok()) << call.status();
    watch_.End(*call, is_reached, status);
  }
  std::string error() { return watch_.Standing().error; }

  std::atomic<bool> stopped_{false};
  CallWatch watch_{{.readers_max = 1, .stall = absl::Milliseconds(50)}, stopped_};
};

TEST_F(CallWatchTest, AFullArchiveStaysFullWhileItReadsWell) {
  Call(Kind::kChange, absl::ResourceExhaustedError("full"));
  const absl::Time since = watch_.Standing().failing_since;
  Call(Kind::kRead, absl::OkStatus());
  Call(Kind::kList, absl::OkStatus());
  Call(Kind::kChange, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(error(), "full");
  EXPECT_EQ(watch_.Standing().failing_since, since);
  Call(Kind::kChange, absl::OkStatus());
  EXPECT_EQ(error(), "");
}

TEST_F(CallWatchTest, WithNothingLeftToPutNothingFails) {
  Call(Kind::kChange, absl::ResourceExhaustedError("full"));
  watch_.ForgetChanges();
  EXPECT_EQ(error(), "");
}

TEST_F(CallWatchTest, AnArchiveThatIsBackIsWell) {
  Call(Kind::kList, absl::UnavailableError("away"), false);
  Call(Kind::kList, absl::UnavailableError("refused"));
  EXPECT_EQ(error(), "refused") << "it is there, at least";
  Call(Kind::kRead, absl::NotFoundError("no such object"));
  EXPECT_EQ(error(), "") << "nobody may list it again for days";
  Call(Kind::kList, absl::PermissionDeniedError("no right"));
  Call(Kind::kRead, absl::OkStatus());
  EXPECT_EQ(error(), "no right");
  Call(Kind::kList, absl::OkStatus());
  EXPECT_EQ(error(), "");
}

TEST_F(CallWatchTest, AReaderWaitsForAPlaceWhileOthersGoOn) {
  const auto first = watch_.Begin(Kind::kRead, true, kLong);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(watch_.Begin(Kind::kChange, false, kLong).ok()) << "it is in the background";
  std::thread second([&] {
    absl::Status began;
    do {
      const auto call = watch_.Begin(Kind::kRead, true, kLong);
      began = call.status();
      if (call.ok()) watch_.End(*call, true, absl::OkStatus());
    } while (!began.ok());
  });
  watch_.End(*first, true, absl::OkStatus());
  second.join();
}

TEST_F(CallWatchTest, NobodyWaitsBehindWhatStands) {
  const auto first = watch_.Begin(Kind::kRead, true, kLong);
  ASSERT_TRUE(first.ok());
  const absl::Status second = watch_.Begin(Kind::kRead, true, kLong).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("1 calls wait for it"));
  EXPECT_EQ(error(), "") << "it may be slow, and well";
  watch_.End(*first, true, absl::OkStatus());
}

TEST_F(CallWatchTest, ACallThatWaitsForSomethingElseIsNoSilence) {
  const absl::Duration timeout = absl::Milliseconds(1);
  const auto put = watch_.Begin(Kind::kChange, false, timeout);
  ASSERT_TRUE(put.ok());
  watch_.Wait(*put);
  absl::SleepFor(absl::Milliseconds(80));
  EXPECT_FALSE(watch_.Standing().is_silent);
  watch_.GoOn(*put);
  while (!watch_.Standing().is_silent) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(watch_.Standing().failed_calls, 1);
  watch_.End(*put, true, absl::OkStatus());
}

}  // namespace
}  // namespace h5mirror::archive
