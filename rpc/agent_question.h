// One question to h5mirror-agent for memory to map: docs/design/011-metadata-in-shared-memory.md.
#ifndef H5MIRROR_RPC_AGENT_QUESTION_H_
#define H5MIRROR_RPC_AGENT_QUESTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/owned_fd.h"
#include "rpc/cut_map_format.h"

namespace h5mirror::rpc {

struct AgentAnswer {
  std::vector<OwnedFd> memories;
  OwnedFd connection;       // to be left open as long as they are mapped
  size_t length_bytes = 0;  // of the answer
};

// Fills the beginning of `answer`, which must have room for all of it. Never causes a signal
// (SIGPIPE).
// Errors: kUnavailable       no agent is there, or it hangs up.
//         kDeadlineExceeded  the agent does not answer by the deadline.
//         kInvalidArgument   descriptors were cut off.
absl::StatusOr<AgentAnswer> AskAgent(const std::string& socket_path, const CutMapQuestion& question,
                                     absl::Time deadline, absl::Span<char> answer);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_AGENT_QUESTION_H_
