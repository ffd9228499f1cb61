// The server and the agent of a reader.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

struct ReaderServer : rpc::ClientOptions {
  // "auto": h5mirror-agent, if its socket is found; "off": never; else the path of its socket.
  std::string agent = "off";
  // The server is asked first, and the agent only if that fails.
  bool passes_agent = false;
};

// Until when a reader passes by the agent. Thread-safe.
class AgentPass {
 public:
  void Set(absl::Time until) { until_nanos_ = absl::ToUnixNanos(until); }
  bool IsNow() const { return absl::GetCurrentTimeNanos() < until_nanos_; }

 private:
  std::atomic<int64_t> until_nanos_ = 0;
};

// The socket of the agent for readers of `server`. With "auto" the user's own agent, else that of
// the host. Empty: there is none.
std::string FindAgentSocket(const ReaderServer& server);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
