// The command line of h5mirror-agent.
#ifndef H5MIRROR_SWMR_AGENT_FLAGS_H_
#define H5MIRROR_SWMR_AGENT_FLAGS_H_

#include <optional>

#include "swmr_agent/config.h"

namespace h5mirror::agent {

// --help and h5mirror-agent(1) list them.
enum class ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2, kCannotListen = 6 };

// Either settings, or the process ends with `exit` (after --help, or an error that was printed).
struct ParsedFlags {
  Settings settings;
  bool check_config = false;
  std::optional<ExitCode> exit;
};

// The configuration file that the flags name is read too.
ParsedFlags ParseFlags(int argc, char** argv);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_FLAGS_H_
