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
  // Redirects in a row. Servers of a cluster that disagree do so for a second: then it is asked
  // again later.
  static constexpr int kRedirectsMax = 4;

  ServerRoute() = default;
  // Begins with the `first`-th of the user's servers.
  explicit ServerRoute(size_t first) : index_(first) {}

  // `cluster`: as configured, with the newest token. False: the client stays where it is. So it
  // does after too many answers of this kind in a row, and where a credential would go over the
  // network as plain text.
  bool Follow(const ClientOptions& cluster, std::string_view address);
  // The server that is asked is one of the user's, and names one that was lost just now: it may not
  // know of the loss for ever. True: the next one of the user's is asked instead. False: all of
  // them have named it, or it is another one; Follow() it.
  bool PassBy(const ClientOptions& cluster, std::string_view address);
  // The server has taken the call: the answers in a row are over, and so are failures.
  void OnAnswer();
  // The server is away, or hangs. After one that was named the user's are asked, any of which knows
  // the file's server; after one of the user's the next one.
  void OnLost(const ClientOptions& cluster);
  // As OnLost(), and it is of a cluster: no server has the file just now, and one will.
  void OnNobodyServes(const ClientOptions& cluster);
  // It refuses the caller, or knows no such file: it may be of another cluster, or be set up badly.
  // The next one of the user's is asked, as after a loss. False: each of them has refused the
  // caller, or was lost after one that refuses it. What was away before that tells nothing: it may
  // have been the network.
  bool OnRefused(const ClientOptions& cluster);
  // Each of the user's servers has refused the caller since one of them had an answer, and is not
  // away since.
  bool HaveAllRefused(const ClientOptions& cluster) const;
  // The caller comes with another credential: no refusal counts that was of the one before.
  void ForgetRefusals() {
    refused_.clear();
    away_.clear();
  }

  // To another one of the user's servers than the one that is asked, round and round with `turn`.
  // Nullopt: there is none.
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
  // The options of the one server that is asked. A credential that has come since, and may not go
  // to one that was named, goes to the user's.
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
  // Those of the user's that have refused the caller last, and those that were lost last, both
  // since an answer, a new credential, and the first refusal.
  std::set<size_t> refused_;
  std::set<size_t> away_;
};

// What a client knows of its clusters from earlier calls. Not thread-safe.
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
  // What a server says over plain text, or to another caller, is not for callers that have a CA or
  // a credential.
  static std::string KeyOf(const ClientOptions& cluster);

  std::map<std::string, Cluster> clusters_;
};

// The servers that one call goes to, one after the other, until one answers. Not thread-safe.
class ServerWalk {
 public:
  // For the first attempt of one of several servers to connect; see Limit().
  static constexpr absl::Duration kConnectMax = absl::Seconds(1);
  // The same, without an answer of a server that is connected.
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
  // How long Server() may take, of the time that is left: `first`, and twice as long after each
  // time that it was lost, so that a slow server is reached in the end. Servers that were not asked
  // yet keep their share. All that is left: there is no other server, or too little time for a
  // longer attempt after this one. Zero: it is over.
  absl::Duration Limit(absl::Duration first, absl::Time now) const;
  // Where all servers were asked, and nobody listens at any, there is only time until then.
  void SetRefusedUntil(absl::Time time) { refused_until_ = time; }
  // Data came meanwhile, so there is more time.
  void Extend(absl::Time deadline) { deadline_ = std::max(deadline_, deadline); }

  // The server has ended the call with `status`. Server() is asked after the pause that this
  // returns; it is over without one, with error(). kUnavailable, kDeadlineExceeded: no answer.
  std::optional<absl::Duration> Next(const absl::Status& status, absl::Time now);
  // OK, or an answer as it came. kUnavailable names all servers that gave none, or that send
  // their callers in a circle.
  const absl::Status& error() const { return error_; }

 private:
  std::optional<absl::Duration> End(absl::Status error);
  std::optional<absl::Duration> FollowTo(const std::string& address, const absl::Status& status,
                                         absl::Time now);
  // How many of the user's servers were not asked yet, but Server().
  size_t CountUntried() const;
  bool AreAllRefused() const;
  // Before Server() is asked: a while where it was asked in this round.
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
