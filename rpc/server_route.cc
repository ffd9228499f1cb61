#include "rpc/server_route.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/server_list.h"
#include "base/strings.h"
#include "rpc/elsewhere.h"
#include "rpc/server_address.h"

namespace h5mirror::rpc {
namespace {

// Between two rounds of the servers, none of which answers, or which wait for a cell's new server.
constexpr absl::Duration kRoundPause = absl::Milliseconds(250);
// A server learns of a change within a second.
constexpr absl::Duration kCirclePause = absl::Seconds(1);
constexpr int kCirclesMax = 3;

// A credential does not go over the network as plain text. A source that has none now may have one
// at the next call.
bool MayGoTo(bool is_here, const ClientOptions& server) {
  const bool shows_none = server.token.empty() && server.token_source.empty();
  return is_here || shows_none || !server.ca_pem.empty();
}

size_t CountOf(const ClientOptions& cluster) { return cluster.others.size() + 1; }

bool LiesIn(std::string_view name, std::string_view cell) {
  if (cell.empty()) return true;
  return name.starts_with(cell) && (name.size() == cell.size() || name[cell.size()] == '/');
}

bool IsNoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

bool ServerRoute::Follow(const ClientOptions& cluster, std::string_view address) {
  if (is_redirected_out()) return false;
  const auto named = ParseServerAddress(address);
  if (!named.ok() || !MayGoTo(named->loopback, cluster)) return false;
  ++redirects_;
  address_ = address;
  target_ = named->target;
  is_here_ = named->loopback;
  return true;
}

void ServerRoute::OnAnswer() {
  redirects_ = 0;
  lost_ = 0;
}

void ServerRoute::OnLost(const ClientOptions& cluster) {
  redirects_ = 0;
  if (!target_.empty()) return target_.clear();
  ++lost_;
  index_ = (index_ + 1) % CountOf(cluster);
}

ClientOptions ServerRoute::Apply(ClientOptions cluster) const {
  if (!target_.empty() && MayGoTo(is_here_, cluster)) {
    cluster.server = address_;
    cluster.target = target_;
  } else if (!cluster.others.empty()) {
    const size_t index = index_ % CountOf(cluster);
    const std::vector<std::string> names = ClusterServers(cluster.server);
    if (names.size() == CountOf(cluster)) cluster.server = names[index];
    if (index > 0) cluster.target = cluster.others[index - 1].target;
  }
  return cluster;
}

ServerRoute OwnerCache::Find(const ClientOptions& cluster, std::string_view name) const {
  const auto known = clusters_.find(cluster.target);
  if (known == clusters_.end()) return ServerRoute();
  ServerRoute route(known->second.first);
  for (const auto& [cell, address] : known->second.owners) {
    if (!LiesIn(name, cell)) continue;
    static_cast<void>(route.Follow(cluster, address));
    route.OnAnswer();  // It is no answer of this call.
  }
  return route;
}

void OwnerCache::OnEnd(const ClientOptions& cluster, const ClientOptions& asked,
                       const absl::Status& status) {
  const auto elsewhere = ElsewhereOf(status);
  const auto known = clusters_.find(cluster.target);
  // Of a server alone there is nothing to know.
  if (!elsewhere && known == clusters_.end() && cluster.others.empty()) return;
  Cluster& now = clusters_[cluster.target];
  const std::vector<std::string> servers = ClusterServers(cluster.server);
  const auto at = std::find(servers.begin(), servers.end(), asked.server);
  if (elsewhere) {
    now.owners[elsewhere->cell] = elsewhere->address;
  } else if (IsNoAnswer(status)) {
    std::erase_if(now.owners, [&](const auto& owner) { return owner.second == asked.server; });
  }
  if (at == servers.end()) return;
  const bool is_away = IsNoAnswer(status) && !elsewhere;
  now.first = (static_cast<size_t>(at - servers.begin()) + (is_away ? 1 : 0)) % CountOf(cluster);
}

std::optional<absl::Duration> ServerWalk::End(absl::Status error) {
  error_ = std::move(error);
  return std::nullopt;
}

std::optional<absl::Duration> ServerWalk::Next(const absl::Status& status, absl::Time now) {
  if (const auto elsewhere = ElsewhereOf(status)) return FollowTo(elsewhere->address, status, now);
  if (!IsNoAnswer(status) || !has_others()) return End(status);
  tried_[Server().server] = std::string(status.message());
  const bool has_untried = route_.is_configured() && route_.HasUntried(cluster_);
  route_.OnLost(cluster_);
  path_.clear();
  if (now >= deadline_ && !has_untried) return End(NobodyAnswers());
  return ++failures_ % CountOf(cluster_) == 0 ? kRoundPause : absl::ZeroDuration();
}

std::optional<absl::Duration> ServerWalk::FollowTo(const std::string& address,
                                                   const absl::Status& status, absl::Time now) {
  was_redirected_ = true;
  if (path_.empty()) path_.push_back(Server().server);
  path_.push_back(address);
  if (route_.Follow(cluster_, address)) {
    if (now < deadline_) return absl::ZeroDuration();
    return End(tried_.empty() ? absl::UnavailableError(status.message()) : NobodyAnswers());
  }
  if (!route_.is_redirected_out()) {
    return End(absl::FailedPreconditionError(
        StrCat("the server ", address,
               " of the cluster has it, and the token would go there in "
               "plain text; set `ca` to the servers' CA file. ",
               status.message())));
  }
  if (++circles_ == kCirclesMax || now + kCirclePause >= deadline_) return End(GoesInACircle());
  route_.OnLost(cluster_);
  path_.clear();
  return kCirclePause;
}

absl::Status ServerWalk::NobodyAnswers() const {
  const auto one = [](std::string* out, const auto& tried) {
    absl::StrAppend(out, tried.first, ": ", tried.second);
  };
  return absl::UnavailableError(StrCat("no server of the cluster ", cluster_.server,
                                       " answers for it: ", absl::StrJoin(tried_, "; ", one)));
}

absl::Status ServerWalk::GoesInACircle() const {
  return absl::UnavailableError(StrCat(
      "the servers of the cluster ", cluster_.server, " send each other's callers in a circle: ",
      absl::StrJoin(path_, " -> "), "; see their logs, and `address` in their [cluster] tables"));
}

}  // namespace h5mirror::rpc
