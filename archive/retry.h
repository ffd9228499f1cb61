// Retries a call that may be repeated.
#ifndef H5MIRROR_ARCHIVE_RETRY_H_
#define H5MIRROR_ARCHIVE_RETRY_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace h5mirror::archive {

struct RetryPolicy {
  int tries_max = 5;
  // The wait before the second try; it doubles before each further try. The real wait is a random
  // time between half of it and all of it, so that callers that failed together do not retry
  // together.
  absl::Duration first_wait = absl::Milliseconds(100);
  absl::Duration wait_max = absl::Seconds(5);
  // The timeout of one try.
  absl::Duration try_timeout = absl::Seconds(20);
};

// The clock and the wait; a test has its own.
struct RetryClock {
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> sleep;
  static RetryClock Steady();
};

// Calls `attempt` with the time that it may take. Repeats the call while it fails with kUnavailable
// or kDeadlineExceeded, until `timeout` has passed or the tries are used up. Returns the last
// status. If time ran out, the result is kDeadlineExceeded and names the last status.
absl::Status Retry(const RetryPolicy& policy, const RetryClock& clock, absl::Duration timeout,
                   absl::FunctionRef<absl::Status(absl::Duration)> attempt);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_RETRY_H_
