// Opens the newest cut of a file at h5mirror-agent by one question on the socket for maps, instead
// of a call of gRPC and a question: docs/design/011-metadata-in-shared-memory.md.
#ifndef H5MIRROR_RPC_AGENT_OPEN_H_
#define H5MIRROR_RPC_AGENT_OPEN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "rpc/cut_map.h"
#include "rpc/cut_map_format.h"

namespace h5mirror::rpc {

struct OpenedAtAgent {
  v1::Snapshot snapshot;  // as ReadSnapshot answers an open; the agent holds it for the reader
  std::unique_ptr<CutMap> map;  // its metadata; null: there is none to be mapped
};

// `question` is of kOpen. The agent may have to ask its server first. Never causes a signal
// (SIGPIPE).
// Errors: kNotFound          the agent does not open this file.
//         kUnavailable       no agent is there, or it hangs up, as one of an older release does.
//         kDeadlineExceeded  the agent does not answer by the deadline.
//         kInvalidArgument   the answer makes no sense, or its memory is not sealed.
absl::StatusOr<OpenedAtAgent> OpenAtAgent(const std::string& socket_path,
                                          const CutMapQuestion& question, absl::Time deadline);

// The answer: this, and then the bytes of the v1::Snapshot. The descriptors of a map come with it.
struct AgentOpenAnswer {
  char magic[8];              // kOpenAnswerMagic
  uint32_t descriptor_count;  // 0: nothing is to be mapped
  uint32_t snapshot_bytes;    // 0: the agent does not open it
};
static_assert(sizeof(AgentOpenAnswer) == 16);
inline constexpr char kOpenAnswerMagic[9] = "H5MOPN01";
inline constexpr size_t kOpenAnswerBytesMax = 4096;

// `snapshot`: null if the agent does not open the file. A snapshot that is too long for an answer
// counts as null.
std::string EncodeOpenAnswer(const v1::Snapshot* snapshot, size_t descriptor_count);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_AGENT_OPEN_H_
