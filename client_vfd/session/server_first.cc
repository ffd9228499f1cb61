// Calls of readers that pass by the agent, which has said that they are better off at the server.
#include <algorithm>

#include "absl/time/clock.h"
#include "client_vfd/session/reader_calls.h"

namespace h5mirror::vfd {
namespace {

// A reader may have an agent and no way to the server, or no right there. It is not tried again for
// so long.
constexpr absl::Duration kNotDirectFor = absl::Minutes(10);

}  // namespace

bool ReaderCalls::GoesToServer(const ReaderServer& server) {
  if (!server.passes_agent) return false;
  absl::MutexLock lock(&mutex_);
  const auto found = not_direct_until_.find(server.target);
  return found == not_direct_until_.end() || absl::Now() >= found->second;
}

bool ReaderCalls::RunAtServersFirst(const Target& target, Attempt attempt) {
  if (!GoesToServer(target.server)) return false;
  const Target first{target.server, target.name, std::min(target.timeout, kAgentTimeout)};
  if (RunAtServers(first, attempt).ok()) return true;
  absl::MutexLock lock(&mutex_);
  not_direct_until_[target.server.target] = absl::Now() + kNotDirectFor;
  return false;
}

}  // namespace h5mirror::vfd
