// Decides after the end of a stream where the next one goes, and when.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_vfd/session/session.h"
#include "rpc/elsewhere.h"
#include "rpc/munge_token.h"

namespace h5mirror::vfd {
namespace {

const absl::Duration kRestartPatience = Link::kFinalAttemptsMax * Link::kFinalRetryEvery;

// Errors that asking again does not change.
bool IsRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kNotFound:  // no right at all to that name
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// A server that was there has given the connection up before it saw this stream: it stops, or has
// too little memory for a connection on which nothing happens. The next attempt gets another.
bool IsSentAway(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable &&
         absl::StrContains(status.message(), "GOAWAY");
}

}  // namespace

void Session::LoseEnded(const absl::Status& status) {
  switch (link_.answer()) {
    case Link::Answer::kLostBase:
      return LoseStream("the server has lost the newest cut", Retry::kAtOnce);
    case Link::Answer::kBusy:  // It may be closing just now.
      return LoseStream(absl::StrCat("another writer holds it: ", link_.holder()),
                        Retry::kFinalCut);
    case Link::Answer::kUnknownFile:
    case Link::Answer::kNone:
      break;
  }
  if (!absl::IsResourceExhausted(status)) link_.OnNotFull();
  if (absl::IsUnauthenticated(status) && TakeNewToken()) {
    return LoseStream("the token has expired, and another one is there", Retry::kAtOnce);
  }
  NoteFailure(status);
  const Retry retry = RetryAfter(status);
  LoseStream(status.message().empty() ? "the stream ended" : std::string(status.message()), retry);
  const bool is_next = !tickets_.sealed() || retry == Retry::kTakeover;
  if (absl::IsUnavailable(status) && is_next) HurryToOthers();
}

Session::Retry Session::RetryAfter(const absl::Status& status) const {
  const bool is_of_cluster = route_.IsOfCluster(config_.server);
  if (is_of_cluster && absl::IsUnavailable(status)) return RetryInCluster();
  // The server was there just now, maybe for the session that this one followed.
  const bool just_lost =
      base_.inherited_from() > 0 && host_.Now() - standing_.behind_since() < kRestartPatience;
  const bool was_there = link_.ever_opened() || base_.follows_cut() || just_lost || is_of_cluster ||
                         IsSentAway(status);
  return was_there ? Retry::kFinalCut : Retry::kNever;
}

bool Session::AskOthersFirst(const absl::Status& status) {
  if (config_.server.others.empty() || !IsRefusal(status)) return false;
  // BUSY and the like come from the file's own server, with kFailedPrecondition.
  if (link_.answer() != Link::Answer::kNone) return false;
  if (absl::IsUnauthenticated(status)) {
    // The same server is asked again with it.
    if (host_.NewestToken(config_.server) != token_) return false;
    host_.ReadTokenSoon(config_.server);
  }
  const bool has_more = route_.OnRefused(config_.server);
  // A server that took the session once and is away now has not refused it.
  const bool may_come_back = link_.ever_opened() && !route_.HaveAllRefused(config_.server);
  if (!has_more && !may_come_back) return false;
  if (has_more && !link_.ever_opened() && standing_.is_connecting() && queue_.TakeBack()) {
    link_.RetryAt(host_.Now());
    host_.Wake(this);
    return true;
  }
  const Retry retry = RetryInCluster();
  LoseStream(std::string(status.message()), retry);
  if (retry == Retry::kTakeover) HurryToOthers();
  return true;
}

bool Session::FollowElsewhere(const absl::Status& status) {
  const auto elsewhere = rpc::ElsewhereOf(status);
  if (!elsewhere.has_value()) return false;
  const rpc::ClientOptions server = ClusterNow();
  if (!route_.PassBy(server, elsewhere->address) && !route_.Follow(server, elsewhere->address)) {
    return false;
  }
  Notify("redirected", absl::StrCat(config_.real_path, ": ", status.message()), false);
  if (!link_.ever_opened() && standing_.is_connecting() && queue_.TakeBack()) {
    link_.RetryAt(host_.Now());
    host_.Wake(this);
  } else {
    LoseStream(std::string(status.message()), Retry::kAtOnce);
  }
  return true;
}

// No other server is asked, and no time brings this one back: nobody pumps the session any more.
void Session::Abandon(const std::string& why) {
  absl::MutexLock lock(&mutex_);
  life_.Abandon();
  ForgetStream();
  link_.Refuse();
  waits_for_token_ = false;
  if (life_.done()) return;
  if (!standing_.is_diverged()) LoseStream(why, Retry::kNever);
  if (life_.released()) FinishAlone();
}

void Session::NoteFailure(const absl::Status& status) {
  if (IsRefusal(status) && !AwaitsCredential(status)) {
    link_.Refuse();
    waits_for_token_ = absl::IsUnauthenticated(status);
    if (waits_for_token_) host_.ReadTokenSoon(config_.server);
  } else if (absl::IsResourceExhausted(status)) {
    link_.OnFull();
  } else if (status.code() == absl::StatusCode::kUnavailable) {
    LeaveServer(status);
  }
}

void Session::LeaveServer(const absl::Status& status) {
  if (rpc::IsNobodyServes(status)) return route_.OnNobodyServes(config_.server);
  host_.DropChannel(ServerNow());
  route_.OnLost(config_.server);
}

// A server that has restarted knows no credential of munge that its munged has decoded before, so a
// new one is made. False: that one was refused too, or it is a matter of something else.
bool Session::AwaitsCredential(const absl::Status& status) {
  const bool may_be_old = absl::IsUnauthenticated(status) && link_.ever_opened() &&
                          rpc::IsMungeSource(config_.server.token_source);
  if (!may_be_old) return false;
  const std::string newest = host_.NewestToken(config_.server);
  if (!refused_credential_.has_value()) refused_credential_ = newest;
  if (*refused_credential_ != newest) return false;
  host_.ReadTokenSoon(config_.server);
  return true;
}

bool Session::TakeNewToken() {
  std::string newest = host_.NewestToken(config_.server);
  if (newest == token_) return false;
  // A credential of munge goes with each call of a connection, which other sessions share.
  // Nor does it change a refusal, as each server that refuses one has another one made.
  if (!rpc::IsMungeSource(config_.server.token_source)) {
    host_.DropChannel(ServerNow());
    route_.ForgetRefusals();
  }
  token_ = std::move(newest);
  return true;
}

// As after an outage: the data that the program has flushed since goes in a cut of its own.
void Session::GoOnWithToken() {
  waits_for_token_ = false;
  if (life_.done()) return;
  route_.ForgetRefusals();
  link_.TryAgain();
  if (LostNewestCut() && !IsAnothersFile()) CloseCut(CutKind::kTick, "");
}

// A connection may fail before any barrier was sent on it, such as a TLS handshake on a machine
// under load. That costs one more attempt, and nothing else.
bool Session::TryFirstAgain(const absl::Status& status) {
  const bool is_of_list = route_.is_configured();
  const bool has_more = route_.HasUntried(config_.server);
  // Nobody listens: that is an answer, unless another server of the cluster may have one.
  const bool refused = !has_more && (absl::StrContains(status.message(), "Connection refused") ||
                                     absl::StrContains(status.message(), "No such file"));
  if (link_.ever_opened() || link_.answer() == Link::Answer::kBusy || refused ||
      status.code() != absl::StatusCode::kUnavailable || !standing_.is_connecting() ||
      host_.Now() - program_clock_.begin_time() > config_.timeout - Link::kRetryEvery ||
      !queue_.TakeBack()) {
    return false;
  }
  LeaveServer(status);  // It may be that server which is gone.
  // The list still names a server that is lost, for a while.
  const bool at_once = is_of_list && has_more;
  link_.RetryAt(host_.Now() + (at_once ? absl::ZeroDuration() : first_retry_));
  if (!at_once) first_retry_ = std::min(2 * first_retry_, Link::kRetryEvery);
  Notify("retry", absl::StrCat(config_.real_path, ": ", status.message(), "; trying again"), false);
  return true;
}

// A closed file's session is tried again from time to time.
bool Session::TakeFinalAttempt(Retry retry) {
  if (retry == Retry::kNever || !tickets_.sealed() || link_.is_refused()) return false;
  const bool has_attempts = link_.TakeFinalAttempt();
  const bool is_taken_over = retry != Retry::kFinalCut && AwaitsTakeover();
  return (has_attempts || is_taken_over) && FileIsAsClosed();
}

Session::Retry Session::RetryInCluster() const {
  return tickets_.sealed() && !AwaitsTakeover() ? Retry::kFinalCut : Retry::kTakeover;
}

// A takeover lasts for seconds, but the other servers answer at once that nobody serves the file.
// So attempts are limited by the close's time, not by their number. A program that lives on gives
// as much time as most takeovers take. An outage that was longer than that at the close is no
// takeover.
bool Session::AwaitsTakeover() const {
  if (!tickets_.sealed() || !route_.IsOfCluster(config_.server)) return false;
  const absl::Time closed_at = program_clock_.close_time();
  const absl::Duration longest = std::max(config_.timeout, ServerRounds::kHurryFor);
  if (standing_.is_behind() && closed_at - standing_.behind_since() >= longest) return false;
  const absl::Time latest =
      std::max(program_clock_.CloseEnds(config_.timeout), closed_at + ServerRounds::kHurryFor);
  return host_.Now() < latest;
}

}  // namespace h5mirror::vfd
