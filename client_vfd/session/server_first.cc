// Calls of readers that pass by the agent, which has said that they are better off at the server.
#include <algorithm>

#include "absl/time/clock.h"
#include "client_vfd/session/call_ends.h"
#include "client_vfd/session/engine.h"
#include "client_vfd/session/reader_calls.h"
#include "client_vfd/session/token_reader.h"

namespace h5mirror::vfd {
namespace {

// Of its newest token.
std::string KeyOf(rpc::ClientOptions server) {
  server.token = TokenReader::Get().Newest(server);
  return Engine::KeyOf(server);
}

}  // namespace

std::string ReaderCalls::TrialKey(const Target& target) {
  if (!target.server.passes_agent) return "";
  const std::string key = KeyOf(target.server);
  const std::string asked = KeyOf(RouteTo(target).Apply(target.server));
  absl::MutexLock lock(&mutex_);
  const auto failed = not_direct_until_.find(key);
  if (failed != not_direct_until_.end() && absl::Now() < failed->second) return "";
  const auto peer = peers_.find(asked);
  const bool is_suspect = peer != peers_.end() && absl::Now() < peer->second.suspect_until;
  return is_suspect ? "" : key;
}

bool ReaderCalls::RunAtServersFirst(const Target& target, Attempt attempt) {
  const std::string key = TrialKey(target);
  if (key.empty()) return false;
  const Target trial{.server = target.server,
                     .name = target.name,
                     .timeout = std::min(target.timeout, times_.agent),
                     .is_trial = true};
  const absl::Status status = RunAtServers(trial, attempt);
  if (!status.ok()) EndTrial(key, status);
  return status.ok();
}

void ReaderCalls::EndTrial(const std::string& key, const absl::Status& status) {
  // To ask again with the same token would only fill the server's logs.
  const absl::Time until =
      RefusesUser(status) ? absl::InfiniteFuture() : absl::Now() + times_.not_direct;
  absl::MutexLock lock(&mutex_);
  not_direct_until_[key] = until;
}

}  // namespace h5mirror::vfd
