#include "archive/retry.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::HasSubstr;

class RetryTest : public testing::Test {
 protected:
  // Tries a call that returns `results` in turn, the last one again and again; each try takes
  // `one_takes`.
  absl::Status Try(std::vector<absl::Status> results, absl::Duration timeout = absl::Seconds(60),
                   absl::Duration one_takes = absl::ZeroDuration()) {
    const RetryClock clock{[this] { return now_; },
                           [this](absl::Duration time) {
                             waits_.push_back(time);
                             now_ += time;
                           }};
    return Retry(policy_, clock, timeout, [&](absl::Duration may_take) {
      allowed_.push_back(may_take);
      now_ += one_takes;
      return results[std::min(allowed_.size(), results.size()) - 1];
    });
  }

  RetryPolicy policy_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Duration> waits_, allowed_;
};

TEST_F(RetryTest, WhatPassesIsTriedUntilItHas) {
  EXPECT_TRUE(
      Try({absl::UnavailableError("503"), absl::DeadlineExceededError("slow"), absl::OkStatus()})
          .ok());
  EXPECT_EQ(allowed_.size(), 3u);
}

TEST_F(RetryTest, OtherErrorsAreNotTriedAgain) {
  EXPECT_TRUE(absl::IsNotFound(Try({absl::NotFoundError("none"), absl::OkStatus()})));
  EXPECT_EQ(allowed_.size(), 1u);
}

TEST_F(RetryTest, TheLastTryGivesItsError) {
  EXPECT_EQ(Try({absl::UnavailableError("503")}), absl::UnavailableError("503"));
  EXPECT_EQ(allowed_.size(), 5u);
  ASSERT_EQ(waits_.size(), 4u);
  for (size_t i = 0; i < waits_.size(); ++i) {
    const absl::Duration whole = absl::Milliseconds(100 << i);
    EXPECT_GE(waits_[i], whole / 2) << i;
    EXPECT_LT(waits_[i], whole) << i;
  }
}

TEST_F(RetryTest, NoWaitLeadsBeyondTheDeadline) {
  const absl::Status status =
      Try({absl::UnavailableError("503")}, absl::Seconds(3), absl::Seconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("503 (2 tries)"));
  EXPECT_LT(allowed_.back(), absl::Seconds(1));
}

TEST_F(RetryTest, ATryMayTakeLessThanAll) {
  EXPECT_TRUE(Try({absl::OkStatus()}).ok());
  EXPECT_EQ(allowed_[0], absl::Seconds(20));
}

}  // namespace
}  // namespace h5mirror::archive
