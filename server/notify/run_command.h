// Runs a program that an administrator has named: without a shell, bounded in time and output.
#ifndef H5MIRROR_SERVER_NOTIFY_RUN_COMMAND_H_
#define H5MIRROR_SERVER_NOTIFY_RUN_COMMAND_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::server {

struct CommandRequest {
  std::vector<std::string> command;           // an absolute path, and its arguments
  std::string input = {};                     // its standard input
  std::vector<std::string> environment = {};  // "NAME=VALUE", beside our own
  absl::Duration timeout = absl::Seconds(30);
  // Set by another thread, it ends the program. Must outlive the call; may be nullptr.
  const std::atomic<bool>* cancel = nullptr;
};

struct CommandEnd {
  int code = 0;             // exit code, or 128 + n after signal n
  std::string output = {};  // standard output and error, the first 4 KiB
};

// The program gets a process group of its own, no descriptor but the three of its own, and the
// signals' default actions. After `timeout`, or `cancel`, its group gets SIGTERM, 2 s later
// SIGKILL. Returns when the program itself has ended, also if its children run on.
// This process must ignore SIGPIPE (BlockSignals() does it): a program need not read its input.
//
// Errors: kNotFound, kPermissionDenied  the program cannot be started.
//         kDeadlineExceeded, kCancelled  it was killed.
//         kInternal                      nobody can say how it ended.
//         kResourceExhausted             8 earlier ones that were killed have not ended yet.
absl::StatusOr<CommandEnd> RunCommand(const CommandRequest& request);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_RUN_COMMAND_H_
