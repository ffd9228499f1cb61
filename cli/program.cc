#include "cli/program.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/standard_streams.h"
#include "cli/cli.h"
#include "grpc/support/log.h"

namespace h5mirror::tools {
namespace {

// A terminal that knows no codes, as that of an editor, gets plain lines as a pipe does.
Sink SinkOf(int fd) {
  const char* const kind = getenv("TERM");
  const bool is_dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return isatty(fd) && !is_dumb ? Sink::kTerminal : Sink::kPipe;
}

int TerminalWidth() {
  winsize size = {};
  for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 80;
}

}  // namespace

int RunProgram(int argc, char** argv, const Hdf5Runners& runners) {
  HoldStandardStreams();
  // gRPC's own log lines would stand between ours; errors carry what it has to say.
  if (getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  std::ios::sync_with_stdio(false);
  Streams streams{.out = std::cout,
                  .err = std::cerr,
                  .out_sink = SinkOf(STDOUT_FILENO),
                  .err_sink = SinkOf(STDERR_FILENO),
                  .width_columns = TerminalWidth(),
                  .zone = absl::LocalTimeZone()};
  const int code = RunCli(std::vector<std::string>(argv + 1, argv + argc), streams, runners);
  const absl::Status flushed = FlushStandardOutput();
  if (flushed.ok() || code != 0) return code;
  std::cerr << "h5mirror: " << flushed.message() << "\n";
  return 1;
}

}  // namespace h5mirror::tools
