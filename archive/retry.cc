#include "archive/retry.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/random.h"
#include "base/steady_time.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// A random time, from half of `wait` to all of it.
absl::Duration PartOf(absl::Duration wait) { return wait / 2 + wait * RandomBytes16()[0] / 512; }

}  // namespace

RetryClock RetryClock::Steady() { return {SteadyNow, absl::SleepFor}; }

absl::Status Retry(const RetryPolicy& policy, const RetryClock& clock, absl::Duration timeout,
                   absl::FunctionRef<absl::Status(absl::Duration)> attempt) {
  const absl::Time deadline = clock.now() + timeout;
  absl::Duration wait = policy.first_wait;
  for (int number = 1;; ++number) {
    const absl::Duration left = deadline - clock.now();
    const absl::Status status = attempt(std::min(left, policy.try_timeout));
    if (!MayPass(status) || number >= policy.tries_max) return status;
    const absl::Duration pause = PartOf(wait);
    if (clock.now() + pause >= deadline) {
      return absl::DeadlineExceededError(
          StrCat(ToStd(status.message()), " (", number, number == 1 ? " try" : " tries", ")"));
    }
    clock.sleep(pause);
    wait = std::min(wait * 2, policy.wait_max);
  }
}

}  // namespace h5mirror::archive
