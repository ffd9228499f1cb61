// One line on a terminal during a single call that reports no progress.
#ifndef H5MIRROR_CLI_OUTPUT_WAIT_PROGRESS_H_
#define H5MIRROR_CLI_OUTPUT_WAIT_PROGRESS_H_

#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "cli/output/streams.h"

namespace h5mirror::tools {

// While it lives, a thread of its own prints a line such as "12 s  fork run.h5@12 as trial.h5".
// Prints nothing where errors do not go to a terminal, or in the first half second. `streams` must
// outlive it, and its `err` is written to by nobody else meanwhile.
class WaitProgress {
 public:
  WaitProgress(Streams& streams, std::string label);
  // Wipes the line.
  ~WaitProgress();
  WaitProgress(const WaitProgress&) = delete;
  WaitProgress& operator=(const WaitProgress&) = delete;

 private:
  void Show();

  Streams& streams_;
  const std::string label_;
  absl::Notification is_over_;
  std::thread thread_;  // runs Show(); not started where nothing is printed
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_OUTPUT_WAIT_PROGRESS_H_
