// Runs another program: to its end with its output captured, or in place of this process.
#ifndef H5MIRROR_CLI_PROCESS_CHILD_H_
#define H5MIRROR_CLI_PROCESS_CHILD_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process/io.h"

namespace h5mirror::tools {

// Name -> value; unset: the variable is removed.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;

struct ChildResult {
  int code = 0;     // exit code, or 128 + n after signal n
  std::string out;  // at most 1 MiB of each
  std::string err;
};

// Its standard input is empty. Processes that it leaves running are not waited for.
// kDeadlineExceeded: it was killed after `timeout`. kNotFound: there is no such program.
absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& command,
                                     const EnvironmentChanges& changes, absl::Duration timeout);

// A program that works for us until its standard input ends. Its standard error is ours.
class Helper {
 public:
  // kNotFound: there is no such program.
  static absl::StatusOr<std::unique_ptr<Helper>> Start(const std::vector<std::string>& command);
  Helper(const Helper&) = delete;
  // Ends its standard input, and waits until it has ended.
  ~Helper();

  // The next line that it prints, without its end; kUnavailable: it ended before;
  // kDeadlineExceeded.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  // SIGKILL, for a helper that does not answer and must lose nothing by it.
  void Kill();

 private:
  Helper(int pid, OwnedFd input, OwnedFd output);
  const int pid_;
  OwnedFd input_;  // of the helper; ours to write
  OwnedFd output_;
};

// Runs `command` with our input and output and returns its exit code, 128 + n after signal n. For a
// process with other threads too. kNotFound and others: it cannot be started.
absl::StatusOr<int> RunToEnd(const std::vector<std::string>& command,
                             const EnvironmentChanges& changes);

// What happens to a child when the thread that started it ends, also by SIGKILL.
enum class WhenWeEnd {
  kGoesOn,
  kEnds,  // by SIGKILL; not for a program that changes a file in place
};

// As RunToEnd(), for a process with one thread: other threads would take the signals. Signals sent
// to this process are passed on to the child; signals of the terminal reach the child directly.
// Errors: kNotFound no such program; kPermissionDenied and others: it cannot be started.
absl::StatusOr<int> RunInOurPlace(const std::vector<std::string>& command,
                                  const EnvironmentChanges& changes,
                                  WhenWeEnd when_we_end = WhenWeEnd::kGoesOn);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROCESS_CHILD_H_
