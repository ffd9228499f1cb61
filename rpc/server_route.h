// Which server of a cluster a client asks for a file (docs/design/049-cells.md, "Clients"): one of
// those that the user named, of which any answers, or the one that another has named as the file's.
//
// A server's name in an answer is the word of a server that the user trusts. Still no credential
// goes to it over the network as plain text.
#ifndef H5MIRROR_RPC_SERVER_ROUTE_H_
#define H5MIRROR_RPC_SERVER_ROUTE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// One place in a cluster. Not thread-safe.
class ServerRoute {
 public:
  // The most redirects in a row. Servers of a cluster may disagree for a second, so after these the
  // client asks again later.
  static constexpr int kRedirectsMax = 4;

  ServerRoute() = default;
  // Begins with the `first`-th of the user's servers.
  explicit ServerRoute(size_t first) : index_(first) {}

  // `cluster`: as configured, with the newest token. False: the client stays with its server,
  // because it was redirected too often in a row, or because a credential would go over the network
  // as plain text.
  bool Follow(const ClientOptions& cluster, std::string_view address);
  // The asked server is one of the user's, and names a server that was lost just now: it may not
  // know of the loss yet, or never learn of it. True: the next one of the user's servers is asked
  // instead. False: all of them have named the lost server, or the named one is another; Follow()
  // it.
  bool PassBy(const ClientOptions& cluster, std::string_view address);
  // The server has taken the call: the answers in a row are over, and so are failures.
  void OnAnswer();
  // The server is away, or hangs. If it was named by another, the user's servers are asked, since
  // each knows the file's server. If it was one of the user's, the next one is asked.
  void OnLost(const ClientOptions& cluster);
  // As OnLost(), for an answer that no server of the cluster has the file just now. One will have
  // it soon.
  void OnNobodyServes(const ClientOptions& cluster);
  // The server refuses the caller, or knows no such file: it may belong to another cluster, or be
  // set up badly. The next one of the user's servers is asked, as after a loss. False: each of them
  // has refused the caller, or was lost after a refusal. A loss before the first refusal does not
  // count, since the network may have been the cause.
  bool OnRefused(const ClientOptions& cluster);
  // True: since the last answer each of the user's servers has refused the caller, and none was
  // lost after its refusal.
  bool HaveAllRefused(const ClientOptions& cluster) const;
  // The caller has another credential now: refusals of the former one no longer count.
  void ForgetRefusals() {
    refused_.clear();
    away_.clear();
  }

  // A route to another one of the user's servers than the asked one, round-robin by `turn`.
  // Nullopt: there is no other.
  std::optional<ServerRoute> Another(const ClientOptions& cluster, size_t turn) const;
  // The user has named several servers, or one that has named another one.
  bool IsOfCluster(const ClientOptions& cluster) const {
    return is_of_cluster_ || !cluster.others.empty();
  }

  // The first of the user's servers is asked.
  bool is_first() const { return target_.empty() && index_ == 0; }
  // No other server was named.
  bool is_configured() const { return target_.empty(); }
  bool is_redirected_out() const { return redirects_ == kRedirectsMax; }
  // Some of the user's servers were not asked since the last answer.
  bool HasUntried(const ClientOptions& cluster) const { return lost_ < cluster.others.size(); }
  // The options of the one server to ask. If a newer credential may not go to a named server, these
  // are the options of the user's own server.
  ClientOptions Apply(ClientOptions cluster) const;

 private:
  size_t index_ = 0;      // among the user's servers
  size_t lost_ = 0;       // of those, in a row
  std::string address_;   // of the one that was named, and
  std::string target_;    // for gRPC; empty: none was
  bool is_here_ = false;  // it is on this machine
  int redirects_ = 0;
  bool is_of_cluster_ = false;  // a server has said so
  std::string named_;           // the first one that one of the user's servers has named
  std::string lost_named_;      // the same, of those that led to a loss
  size_t passed_ = 0;           // of the user's servers, which have named it again
  // The user's servers whose last result was a refusal, and those whose last result was a loss.
  // Both count from the last answer or new credential on, losses only from the first refusal on.
  std::set<size_t> refused_;
  std::set<size_t> away_;
};

// Remembers from earlier calls which servers of its clusters own which cells. Not thread-safe.
class OwnerCache {
 public:
  // Where a call for the file begins.
  ServerRoute Find(const ClientOptions& cluster, std::string_view name) const;
  // `asked`, of ServerRoute::Apply(), has ended a call with `status`.
  void OnEnd(const ClientOptions& cluster, const ClientOptions& asked, const absl::Status& status);

 private:
  struct Cluster {
    size_t first = 0;                           // of the user's servers: has answered last
    std::map<std::string, std::string> owners;  // by cell
    std::string lost;                           // the last server that has not answered
  };
  static constexpr size_t kClustersMax = 64;
  // The key keeps callers apart: a caller with a CA or a credential does not use answers that came
  // over plain text, or to another caller.
  static std::string KeyOf(const ClientOptions& cluster);

  std::map<std::string, Cluster> clusters_;
};

// The servers that one call goes to, one after the other, until one answers. Not thread-safe.
class ServerWalk {
 public:
  // The time for the first attempt to connect to one of several servers; see Limit().
  static constexpr absl::Duration kConnectMax = absl::Seconds(1);
  // The time for the first attempt at a connected server that does not answer.
  static constexpr absl::Duration kHungAfter = absl::Seconds(5);
  // The least share of the time that is left, while there is so much.
  static constexpr absl::Duration kShareMin = absl::Milliseconds(100);

  // Borrows `cluster`, whose token may change meanwhile.
  ServerWalk(const ClientOptions& cluster, ServerRoute route, absl::Time deadline)
      : cluster_(cluster), route_(std::move(route)), deadline_(deadline) {}

  // The server to ask now.
  ClientOptions Server() const { return route_.Apply(cluster_); }
  // Whether there is another server to ask where this one does not answer.
  bool has_others() const {
    return was_redirected_ || !cluster_.others.empty() || !route_.is_configured();
  }
  // The time that Server() may take: `first`, doubled each time that this server was lost, so that
  // a slow server is reached in the end. Servers that were not asked yet keep their share of the
  // time. Returns all remaining time if there is no other server, or too little time for a longer
  // attempt after this one. Zero: the walk is over.
  absl::Duration Limit(absl::Duration first, absl::Time now) const;
  // If all servers were asked, and nothing listens at any of them, the walk ends at `time`.
  void SetRefusedUntil(absl::Time time) { refused_until_ = time; }
  // Data came meanwhile, so there is more time.
  void Extend(absl::Time deadline) { deadline_ = std::max(deadline_, deadline); }

  // The server has ended the call with `status`. Returns the pause before Server() is asked next.
  // Unset: the walk is over, with error(). kUnavailable and kDeadlineExceeded count as no answer.
  std::optional<absl::Duration> Next(const absl::Status& status, absl::Time now);
  // OK, or the answer as it came. kUnavailable names all servers that gave no answer, or that
  // redirect in a circle.
  const absl::Status& error() const { return error_; }

 private:
  std::optional<absl::Duration> End(absl::Status error);
  std::optional<absl::Duration> FollowTo(const std::string& address, const absl::Status& status,
                                         absl::Time now);
  // How many of the user's servers, besides Server(), were not asked yet.
  size_t CountUntried() const;
  bool AreAllRefused() const;
  // The pause before Server() is asked: above 0 if it was asked in this round already.
  absl::Duration PauseOfRound();
  absl::Status NobodyAnswers() const;
  absl::Status GoesInACircle() const;

  const ClientOptions& cluster_;
  ServerRoute route_;
  absl::Time deadline_;
  absl::Status error_;
  bool was_redirected_ = false;
  absl::Time refused_until_ = absl::InfiniteFuture();
  int circles_ = 0;
  std::set<std::string> asked_;           // of all rounds
  std::set<std::string> asked_in_round_;  // ends where one of them is asked again
  std::map<std::string, int> losses_;
  std::vector<std::string> path_;             // of the redirects in a row
  std::map<std::string, std::string> tried_;  // without an answer: the server, and why
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SERVER_ROUTE_H_
