// Tries a call again that may be repeated.
#ifndef H5MIRROR_ARCHIVE_RETRY_H_
#define H5MIRROR_ARCHIVE_RETRY_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace h5mirror::archive {

struct RetryPolicy {
  int tries_max = 5;
  // Before the second try; twice as long before each further one. Each wait is a random part of it,
  // from a half on, so that callers that failed together do not come again together.
  absl::Duration first_wait = absl::Milliseconds(100);
  absl::Duration wait_max = absl::Seconds(5);
  // Of one try.
  absl::Duration try_timeout = absl::Seconds(20);
};

// How time passes: a test has another.
struct RetryClock {
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> sleep;
  static RetryClock Steady();
};

// Calls `attempt` with the time that it may take, until it does not fail with kUnavailable or
// kDeadlineExceeded, `timeout` has passed, or there were enough tries. Returns its last status;
// kDeadlineExceeded names that status where time ran out.
absl::Status Retry(const RetryPolicy& policy, const RetryClock& clock, absl::Duration timeout,
                   absl::FunctionRef<absl::Status(absl::Duration)> attempt);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_RETRY_H_
