// The server of a cluster that a session's stream goes to, and the search for another one while the
// stream waits for an answer. The stream is left only where another server says that it serves the
// file. So a slow server keeps its sessions, and no cut is sent to two servers at once.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_vfd/session/session.h"
#include "rpc/elsewhere.h"

namespace h5mirror::vfd {
namespace {

using Told = OwnerSearch::Told;

// The meaning of an answer that names no serving server.
Told ToldBy(const absl::Status& status) {
  if (rpc::IsNobodyServes(status)) return Told::kNobody;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Told::kSilent;
    case absl::StatusCode::kOk:        // another file of that name
    case absl::StatusCode::kNotFound:  // so it says, or gives this caller no right to it
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return Told::kRefused;
    default:
      return Told::kNobody;
  }
}

}  // namespace

rpc::ClientOptions Session::ClusterNow() const {
  rpc::ClientOptions cluster = config_.server;
  cluster.token = token_;
  return cluster;
}

rpc::ClientOptions Session::ServerNow() const { return route_.Apply(ClusterNow()); }

// A lost server has a successor within seconds, at which others wait, too.
void Session::HurryToOthers() {
  const rpc::ClientOptions cluster = ClusterNow();
  if (!route_.IsOfCluster(cluster) || !link_.is_none()) return;
  const absl::Time now = host_.Now();
  const absl::Time next = rounds_.Next(cluster.others.size() + 1, now);
  link_.RetryAt(next);
  if (next <= now) host_.Wake(this);
}

OwnerSearch::Wait Session::WaitsFor() const {
  using Wait = OwnerSearch::Wait;
  if (life_.done() || link_.is_cancelled() || !may_be_answered()) return Wait::kNothing;
  if (link_.is_opening()) return Wait::kOpening;
  const bool is_owed = calls_waiting_ > 0 || tickets_.IsOwed() || life_.released();
  const bool takes_nothing = outbox_.has_stream() && !outbox_.is_writable();
  if (!link_.is_open() || (!is_owed && !takes_nothing)) return Wait::kNothing;
  // Another session with this server was not answered either.
  return host_.IsDoubtful(stream_target_) ? Wait::kDoubt : Wait::kAnswer;
}

void Session::SearchServer(absl::Time now) {
  if (!route_.IsOfCluster(config_.server)) return;
  search_.Look(WaitsFor(), now);
  if (!search_.IsDue(now)) return;
  const rpc::ClientOptions cluster = ClusterNow();
  if (!asked_route_.has_value()) asked_route_ = route_.Another(cluster, search_.turn());
  if (!asked_route_.has_value()) return;
  const uint64_t number = search_.Ask();
  host_.AskServer(asked_route_->Apply(cluster), config_.name, OwnerSearch::kAnswerMax,
                  [weak = weak_from_this(), number](const ServerAnswer& answer) {
                    const std::shared_ptr<Session> session = weak.lock();
                    if (session != nullptr) session->OnServerTold(number, answer);
                  });
}

void Session::OnServerTold(uint64_t number, const ServerAnswer& answer) {
  absl::MutexLock lock(&mutex_);
  if (!search_.Take(number)) return;
  const OwnerSearch::Wait wait = WaitsFor();
  if (wait == OwnerSearch::Wait::kNothing) return lacking_.OnOtherwise();
  const std::string silent = stream_target_;
  const Told told = WeighAnswer(answer);
  // Sessions that begin to wait for it need not find its silence out again. kSame: it is slow.
  const bool is_in_doubt = told != Told::kSame && told != Told::kRefused;
  if (wait == OwnerSearch::Wait::kAnswer && is_in_doubt) host_.SetDoubtful(silent);
  search_.OnTold(told, host_.Now());
  if (told != Told::kOther) asked_route_.reset();  // The next one of the list is asked next.
}

// A server of another cluster has another file of that name: an open stream is not left for it.
bool Session::Serves(const ServerAnswer& answer) const {
  if (!answer.status.ok()) return false;
  const Bytes16& mine = record_.value().file_id;
  const bool is_known = link_.is_open() && mine != Bytes16{} && !answer.file_id.empty();
  return !is_known || answer.file_id == ToByteString(mine);
}

OwnerSearch::Told Session::WeighAnswer(const ServerAnswer& answer) {
  const rpc::ClientOptions cluster = ClusterNow();
  const rpc::ClientOptions asked = asked_route_->Apply(cluster);
  if (const auto elsewhere = rpc::ElsewhereOf(answer.status)) {
    if (!asked_route_->Follow(cluster, elsewhere->address)) return Told::kNobody;
    const std::string named = asked_route_->Apply(cluster).target;
    if (named == lacking_.server()) return HearOfLacking(asked.target, Told::kOther);
    lacking_.OnOtherwise();
    return named == stream_target_ ? Told::kSame : Told::kOther;
  }
  if (rpc::IsOwnerLacksIt(answer.status) && MayBeNew()) {
    lacking_.OnLacks(asked.target);
    if (!lacking_.server().empty()) lacking_route_ = *asked_route_;
    return HearOfLacking(asked.target, Told::kNobody);
  }
  if (!Serves(answer)) {
    const Told told = ToldBy(answer.status);
    // After the deadline of a question the connection may still be on its way: gRPC gives it up by
    // itself, and says so then.
    if (told == Told::kSilent && absl::IsUnavailable(answer.status)) host_.DropChannel(asked);
    if (told != Told::kNobody) return HearOfLacking(asked.target, told);
    lacking_.OnOtherwise();
    return told;
  }
  // It has two names, or two networks: it is the stream's own server.
  const bool is_peer = !answer.peer.empty() && answer.peer == outbox_.peer();
  const bool has_stream = answer.lease_token != 0 && answer.lease_token == parts_.token();
  if (is_peer || has_stream) {
    lacking_.OnOtherwise();
    return Told::kSame;
  }
  MoveTo(*asked_route_);
  return Told::kNobody;
}

// True: no cut of the file was durable, so its next owner may lack the file.
bool Session::MayBeNew() const { return base_.base_cut() <= 0 && tickets_.durable_seq() == 0; }

// `server` says nothing against the one that lacks the file. Where all say so, the stream moves
// there. `told`: what it has told, if no server lacks the file.
OwnerSearch::Told Session::HearOfLacking(const std::string& server, Told told) {
  if (!MayBeNew()) lacking_.OnOtherwise();  // The stream's own server has acked it since.
  if (lacking_.server().empty()) return told;
  lacking_.OnNothing(server);
  const rpc::ClientOptions cluster = ClusterNow();
  std::vector<std::string> others;
  for (size_t i = 0; i <= cluster.others.size(); ++i) {
    others.push_back(rpc::ServerRoute(i).Apply(cluster).target);
  }
  std::erase(others, stream_target_);
  if (!lacking_.IsBelieved(others)) return Told::kLacks;
  MoveTo(lacking_route_);
  return Told::kNobody;
}

void Session::MoveTo(const rpc::ServerRoute& route) {
  host_.DropChannel(ServerNow());
  host_.SetDoubtful(stream_target_);
  search_.OnLeft();
  route_ = route;
  const std::string why = absl::StrCat("the server ", ServerNow().server, " serves it now");
  Notify("redirected", absl::StrCat(config_.real_path, ": ", why), false);
  link_.Cancel();
  if (!link_.ever_opened() && standing_.is_connecting() && queue_.TakeBack()) {
    link_.End();
    link_.RetryAt(host_.Now());
  } else {
    LoseStream(why, Retry::kAtOnce);
  }
  host_.Wake(this);
}

}  // namespace h5mirror::vfd
