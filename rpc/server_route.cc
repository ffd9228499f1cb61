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

// The pause between two rounds, if no server answers or all wait for a cell's new server.
constexpr absl::Duration kRoundPause = absl::Milliseconds(250);
// A server learns of a change within a second.
constexpr absl::Duration kCirclePause = absl::Seconds(1);
constexpr int kCirclesMax = 3;

// Without the words of gRPC for a refused connection, which are a hundred bytes for each server,
// and without an advice that is the same for all.
std::string Shortened(std::string text) {
  constexpr std::string_view kFirst = "failed to connect to all addresses";
  constexpr std::string_view kLast = "Failed to connect to remote host: ";
  constexpr std::string_view kAdvice = "; check the address, and that h5mirrord runs there";
  const size_t first = text.find(kFirst);
  const size_t last = text.find(kLast);
  if (first != text.npos && last != text.npos && first < last) {
    text.erase(first, last + kLast.size() - first);
  }
  if (text.ends_with(kAdvice)) text.resize(text.size() - kAdvice.size());
  return text;
}

// A credential never goes over the network as plain text. A source without a credential now may
// have one at the next call.
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
  if (target_.empty()) named_ = address;
  ++redirects_;
  is_of_cluster_ = true;
  address_ = address;
  target_ = named->target;
  is_here_ = named->loopback;
  return true;
}

bool ServerRoute::PassBy(const ClientOptions& cluster, std::string_view address) {
  if (!target_.empty() || address != lost_named_) return false;
  if (++passed_ >= CountOf(cluster)) {  // It may be back.
    lost_named_.clear();
    return false;
  }
  index_ = (index_ + 1) % CountOf(cluster);
  return true;
}

std::optional<ServerRoute> ServerRoute::Another(const ClientOptions& cluster, size_t turn) const {
  const std::string now = Apply(cluster).target;
  for (size_t i = 0; i < CountOf(cluster); ++i) {
    ServerRoute other((turn + i) % CountOf(cluster));
    other.is_of_cluster_ = is_of_cluster_;
    if (other.Apply(cluster).target != now) return other;
  }
  return std::nullopt;
}

void ServerRoute::OnAnswer() {
  redirects_ = 0;
  lost_ = 0;
  lost_named_.clear();
  ForgetRefusals();
}

void ServerRoute::OnLost(const ClientOptions& cluster) {
  redirects_ = 0;
  if (!target_.empty()) {
    target_.clear();
    lost_named_ = named_;
    passed_ = 0;
    return;
  }
  ++lost_;
  refused_.erase(index_);
  away_.insert(index_);
  index_ = (index_ + 1) % CountOf(cluster);
}

void ServerRoute::OnNobodyServes(const ClientOptions& cluster) {
  OnLost(cluster);
  is_of_cluster_ = true;
  ForgetRefusals();
}

bool ServerRoute::OnRefused(const ClientOptions& cluster) {
  redirects_ = 0;
  target_.clear();
  if (refused_.empty()) away_.clear();
  refused_.insert(index_);
  away_.erase(index_);
  index_ = (index_ + 1) % CountOf(cluster);
  return refused_.size() + away_.size() < CountOf(cluster);
}

bool ServerRoute::HaveAllRefused(const ClientOptions& cluster) const {
  return refused_.size() >= CountOf(cluster);
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

// A token that a login renews is the same caller's; so is a credential of munge.
std::string OwnerCache::KeyOf(const ClientOptions& cluster) {
  std::string key = cluster.target;
  for (const ServerAddress& other : cluster.others) StrAppend(&key, "|", other.target);
  StrAppend(&key, "\n", cluster.token_source.empty() ? cluster.token : cluster.token_source);
  StrAppend(&key, "\n", cluster.ca_pem, "\n", cluster.certificate_pem);
  return key;
}

ServerRoute OwnerCache::Find(const ClientOptions& cluster, std::string_view name) const {
  const auto known = clusters_.find(KeyOf(cluster));
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
  const std::string key = KeyOf(cluster);
  const auto known = clusters_.find(key);
  // For a single server there is nothing to remember.
  if (!elsewhere && known == clusters_.end() && cluster.others.empty()) return;
  if (known == clusters_.end() && clusters_.size() == kClustersMax) clusters_.clear();
  Cluster& now = clusters_[key];
  const bool is_away = IsNoAnswer(status) && !elsewhere;
  const bool names_lost = elsewhere && elsewhere->address == now.lost;
  if (elsewhere && !names_lost) {
    now.owners[elsewhere->cell] = elsewhere->address;
  } else if (is_away) {
    std::erase_if(now.owners, [&](const auto& owner) { return owner.second == asked.server; });
    now.lost = asked.server;
  } else if (asked.server == now.lost) {
    now.lost.clear();
  }
  const std::vector<std::string> servers = ClusterServers(cluster.server);
  const auto at = std::find(servers.begin(), servers.end(), asked.server);
  if (at == servers.end()) return;
  const size_t step = is_away || names_lost ? 1 : 0;
  now.first = (static_cast<size_t>(at - servers.begin()) + step) % CountOf(cluster);
}

std::optional<absl::Duration> ServerWalk::End(absl::Status error) {
  error_ = std::move(error);
  return std::nullopt;
}

absl::Duration ServerWalk::Limit(absl::Duration first, absl::Time now) const {
  constexpr int kDoublingsMax = 10;
  const absl::Duration left = std::max(deadline_ - now, absl::ZeroDuration());
  if (!has_others()) return left;
  const auto lost = losses_.find(Server().server);
  const int times = lost == losses_.end() ? 0 : std::min(lost->second, kDoublingsMax);
  const absl::Duration limit = first * (1 << times);
  const size_t untried = CountUntried();
  if (untried == 0 && left < 3 * limit) return left;
  const absl::Duration share = left / static_cast<int64_t>(untried + 1);
  return std::min({limit, std::max(share, kShareMin), left});
}

size_t ServerWalk::CountUntried() const {
  if (cluster_.others.empty()) return 0;
  const std::string now = Server().server;
  const std::vector<std::string> servers = ClusterServers(cluster_.server);
  return static_cast<size_t>(std::count_if(
      servers.begin(), servers.end(),
      [&](const std::string& server) { return server != now && !asked_.contains(server); }));
}

bool ServerWalk::AreAllRefused() const {
  return std::all_of(tried_.begin(), tried_.end(), [](const auto& tried) {
    return tried.second.find("Connection refused") != std::string::npos ||
           tried.second.find("No such file") != std::string::npos;
  });
}

absl::Duration ServerWalk::PauseOfRound() {
  if (!asked_in_round_.contains(Server().server)) return absl::ZeroDuration();
  asked_in_round_.clear();
  return kRoundPause;
}

std::optional<absl::Duration> ServerWalk::Next(const absl::Status& status, absl::Time now) {
  const std::string asked = Server().server;
  asked_.insert(asked);
  asked_in_round_.insert(asked);
  if (const auto elsewhere = ElsewhereOf(status)) return FollowTo(elsewhere->address, status, now);
  if (!IsNoAnswer(status) || (!has_others() && !IsNobodyServes(status))) return End(status);
  tried_[asked] = std::string(status.message());
  ++losses_[asked];
  const bool is_whole_round = CountUntried() == 0;
  route_.OnLost(cluster_);
  path_.clear();
  const bool is_refused = is_whole_round && now >= refused_until_ && AreAllRefused();
  if (now >= deadline_ || is_refused) return End(NobodyAnswers());
  return PauseOfRound();
}

std::optional<absl::Duration> ServerWalk::FollowTo(const std::string& address,
                                                   const absl::Status& status, absl::Time now) {
  was_redirected_ = true;
  if (now < deadline_ && route_.PassBy(cluster_, address)) return PauseOfRound();
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
  asked_in_round_.clear();
  return kCirclePause;
}

absl::Status ServerWalk::NobodyAnswers() const {
  const auto one = [](std::string* out, const auto& tried) {
    const std::string reason = Shortened(tried.second);
    const bool is_named = reason.starts_with(tried.first) ||
                          reason.find(absl::StrCat(" ", tried.first)) != std::string::npos;
    absl::StrAppend(out, is_named ? "" : tried.first, is_named ? "" : ": ", reason);
  };
  return absl::UnavailableError(
      StrCat("no server of the cluster ", cluster_.server,
             " answers for it: ", absl::StrJoin(tried_, "; ", one),
             AreAllRefused() ? "; check the addresses, and that h5mirrord runs there" : ""));
}

absl::Status ServerWalk::GoesInACircle() const {
  return absl::UnavailableError(StrCat(
      "the servers of the cluster ", cluster_.server, " send each other's callers in a circle: ",
      absl::StrJoin(path_, " -> "), "; see their logs, and `address` in their [cluster] tables"));
}

}  // namespace h5mirror::rpc
