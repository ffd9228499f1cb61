// Where a call of a reader goes: to the agent of its host, to a server, or to the next one.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "client_vfd/session/call_ends.h"
#include "client_vfd/session/engine.h"
#include "client_vfd/session/reader_calls.h"
#include "rpc/channel.h"
#include "rpc/elsewhere.h"
#include "rpc/mirror_stream.h"

namespace h5mirror::vfd {
namespace {

// Between two tries at a server that is there and refuses, as one that is being stopped: the first
// pause, and the longest. Each is twice the one before.
constexpr absl::Duration kPause = absl::Milliseconds(20);
constexpr absl::Duration kPauseMax = absl::Milliseconds(500);

}  // namespace

bool ReaderCalls::FindAgent(const ReaderServer& server, Route* route) {
  const std::string path = FindAgentSocket(server);
  if (path.empty()) return false;
  route->options.server = absl::StrCat("h5mirror-agent at ", path);
  route->options.target = absl::StrCat("unix:", path);
  route->for_server = server.target;
  absl::MutexLock lock(&mutex_);
  const auto known = peers_.find(Engine::KeyOf(route->options));
  return known == peers_.end() || absl::Now() >= known->second.suspect_until;
}

std::string ReaderCalls::AgentFor(const ReaderServer& server) {
  Route route;
  return FindAgent(server, &route) ? FindAgentSocket(server) : "";
}

void ReaderCalls::PassByAgent(const ReaderServer& server) {
  Route route;
  if (!FindAgent(server, &route)) return;
  absl::MutexLock lock(&mutex_);
  peers_[Engine::KeyOf(route.options)].suspect_until = absl::Now() + Engine::kSuspectFor;
}

bool ReaderCalls::RunAtAgent(Route route, absl::Duration timeout, Attempt attempt) {
  timeout = std::min(timeout, times_.agent);
  if (!Begin(&route, &timeout).ok()) return false;
  absl::Time deadline = absl::Now() + timeout;
  const absl::Status status = attempt(route, &deadline);
  route.channel.reset();
  // These errors concern the file, not the agent. The server is asked too, but the agent stays in
  // use.
  const bool is_of_file = status.ok() || absl::IsNotFound(status) || absl::IsOutOfRange(status) ||
                          absl::IsAborted(status) || absl::IsDataLoss(status);
  End(route, is_of_file ? absl::OkStatus() : absl::UnavailableError(""));
  return status.ok();
}

absl::Status ReaderCalls::Run(const Target& target, Attempt attempt) {
  if (RunAtServersFirst(target, attempt)) return absl::OkStatus();
  Route agent;
  if (FindAgent(target.server, &agent) && RunAtAgent(std::move(agent), target.timeout, attempt)) {
    return absl::OkStatus();
  }
  return RunAtServers(target, attempt);
}

rpc::ServerRoute ReaderCalls::RouteTo(const Target& target) {
  absl::MutexLock lock(&mutex_);
  return owners_.Find(target.server, target.name);
}

absl::Status ReaderCalls::RunAtServers(const Target& target, Attempt attempt) {
  absl::Time deadline = absl::Now() + target.timeout;
  rpc::ServerWalk walk(target.server, RouteTo(target), deadline);
  std::set<std::string> visited;
  for (;;) {
    const rpc::ClientOptions server = walk.Server();
    const absl::Time now = absl::Now();
    absl::Duration timeout = std::max(deadline - now, absl::ZeroDuration());
    if (target.gives_way_in == nullptr) timeout = walk.Limit(rpc::ServerWalk::kHungAfter, now);
    Visit visit{.route = {server, {}, nullptr, target.gives_way_in, target.is_trial},
                .timeout = timeout,
                .connect = walk.Limit(rpc::ServerWalk::kConnectMax, now),
                .has_others = walk.has_others(),
                .turn = visited.insert(server.target).second ? Turn::kFirst : Turn::kLater};
    absl::Time late = now + timeout;
    const absl::Status status = RunAt(std::move(visit), &late, attempt);
    deadline = std::max(deadline, late);
    walk.Extend(deadline);
    if (!target.is_trial || !IsAway(status)) {
      absl::MutexLock lock(&mutex_);
      owners_.OnEnd(target.server, server, status);
    }
    const std::optional<absl::Duration> pause = walk.Next(status, absl::Now());
    if (!pause) return walk.error();
    absl::SleepFor(*pause);
  }
}

absl::Status ReaderCalls::RunOnce(const Target& target, Attempt attempt) {
  absl::Duration timeout = target.timeout;
  Route route;
  const std::string trial = TrialKey(target);
  const bool is_trial = !trial.empty();
  const bool has_agent = !is_trial && FindAgent(target.server, &route);
  if (is_trial || has_agent) timeout = std::min(timeout, times_.agent);
  if (!has_agent) route = {.options = RouteTo(target).Apply(target.server), .is_trial = is_trial};
  H5M_RETURN_IF_ERROR(Begin(&route, &timeout));
  absl::Time deadline = absl::Now() + timeout;
  const absl::Status status = Try(route, &deadline, attempt);
  route.channel.reset();
  const bool fails_trial = is_trial && (absl::IsDeadlineExceeded(status) || RefusesUser(status));
  if (fails_trial) EndTrial(trial, status);
  if (fails_trial || absl::IsDeadlineExceeded(status)) {
    End(route, status);
    return status;
  }
  absl::MutexLock lock(&mutex_);
  --calls_;
  return status;
}

// A server that has restarted is shown a new credential of munge.
absl::Status ReaderCalls::Try(const Route& route, absl::Time* deadline, Attempt attempt) {
  const std::string shown = rpc::CredentialNow(route.options);
  absl::Status status = attempt(route, deadline);
  if (!rpc::RenewCredential(route.options, shown, status)) return status;
  return attempt(route, deadline);
}

absl::Status ReaderCalls::RunAt(Visit visit, absl::Time* deadline, Attempt attempt) {
  Route& route = visit.route;
  // The channel of a server alone gives its handshake more time.
  if (visit.turn == Turn::kLater) route.options.others.clear();
  absl::Duration shorter = visit.timeout;
  H5M_RETURN_IF_ERROR(Begin(&route, &shorter, visit.turn));
  *deadline -= visit.timeout - shorter;
  absl::Status status;
  if (visit.has_others) {
    const absl::Duration wait = std::min(shorter, visit.connect);
    status = rpc::WaitConnected(*route.channel, route.options, wait, absl::ZeroDuration());
  }
  if (status.ok()) status = TryUntil(route, visit.has_others, deadline, attempt);
  // Where the connection stands, the server itself has said so.
  const bool is_there = route.channel->GetState(false) == GRPC_CHANNEL_READY;
  route.channel.reset();
  End(route, is_there && absl::IsUnavailable(status) ? absl::OkStatus() : status);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("no answer from ", route.options.server, " within ", HumanDuration(shorter)));
}

absl::Status ReaderCalls::TryUntil(const Route& route, bool has_others, absl::Time* deadline,
                                   Attempt attempt) {
  absl::Status status = Try(route, deadline, attempt);
  absl::Duration pause = kPause;
  // A connection that broke is made anew at once. A server that stands and stops, or is over a
  // limit, is asked ever more rarely.
  for (bool is_first = true; IsPassing(status) && absl::Now() < *deadline; is_first = false) {
    if (has_others && absl::IsUnavailable(status)) break;
    if (!is_first || absl::IsResourceExhausted(status)) {
      absl::SleepFor(std::min(pause, *deadline - absl::Now()));
      pause = std::min(2 * pause, kPauseMax);
    }
    H5M_RETURN_IF_ERROR(rpc::WaitConnected(*route.channel, route.options, *deadline - absl::Now()));
    status = Try(route, deadline, attempt);
  }
  return rpc::NameServer(route.options, status);
}

}  // namespace h5mirror::vfd
