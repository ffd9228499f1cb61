// A session without a local file (mode=remote) sends from a spool, which holds only the bytes that
// the program has written. There is no record and no dirty map, so missing bytes cannot be sent
// later. The close gives up all that the server has not acknowledged, and says so.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

// The wait for another writer to go: it may be closing the file just now.
constexpr absl::Duration kBusyPatience = absl::Seconds(1);

}  // namespace

void Session::ClaimRemote() {
  Relation relation;
  relation.claim = config_.remote->claim;
  relation.base_cut = config_.remote->base_cut;
  base_.Claim(std::move(relation));
  base_.SetLevel(base_.base_cut(), 0);
}

// The server has something else by now than what was opened, or than what was sent before its
// restart.
void Session::OnMovedOn(const v1::SessionOpened& opened) {
  // Nothing of the new generation survived, and the old one has had no cut since. All of the new
  // one is in the spool, and is sent again.
  if (link_.resumes() && base_.HasLostGeneration(opened.last_cut())) {
    base_.BeginAgain();
    link_.OnAnswer(Link::Answer::kLostBase);  // The stream ends by itself, and is begun again.
    return;
  }
  const bool exists = base_.relation().claim == vfd::Claim::kUpload && !link_.resumes();
  // Without the half sentence about a local file.
  const std::string head = opened.state().substr(0, opened.state().rfind("; "));
  standing_.Diverge(
      exists ? absl::StrCat("there is such a file on ", config_.server.server, ": ", head)
             : absl::StrCat("the file has changed on ", config_.server.server,
                            " since it was opened: ", head,
                            ". Nothing there is overwritten; open it again"));
  Notify("diverged", absl::StrCat(config_.real_path, ": ", standing_.detail()), false);
  LoseCuts();
}

absl::Status Session::AwaitOpened() {
  {
    absl::MutexLock lock(&mutex_);
    link_.SetAwaited(true);
    BeginWait();
  }
  host_.Wake(this);
  absl::MutexLock lock(&mutex_);
  const absl::Time since = host_.Now();
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return link_.ever_opened() || standing_.is_diverged() || link_.is_refused() || life_.done();
  };
  const auto answered = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return settled() || link_.was_busy();
  };
  AwaitUntil(answered, since + Patience());
  if (link_.was_busy() && !link_.ever_opened()) {
    AwaitUntil(settled, since + std::min(Patience(), kBusyPatience));
  }
  link_.SetAwaited(false);
  return OpenResult();
}

absl::Status Session::OpenResult() {
  if (link_.ever_opened()) return absl::OkStatus();
  if (standing_.is_diverged()) {
    return base_.relation().claim == vfd::Claim::kUpload
               ? absl::AlreadyExistsError(standing_.detail())
               : absl::AbortedError(standing_.detail());
  }
  if (link_.is_refused()) return absl::PermissionDeniedError(standing_.detail());
  if (link_.was_busy()) return absl::ResourceExhaustedError(standing_.detail());
  if (succession_.has_predecessor())
    return absl::ResourceExhaustedError("this program is writing it already");
  host_.SetSuspect(config_.server.target, true);
  const std::string waited = absl::StrCat("no answer within ", absl::FormatDuration(Patience()));
  return absl::DeadlineExceededError(standing_.detail().empty()
                                         ? absl::StrCat(config_.server.server, ": ", waited)
                                         : standing_.detail());
}

// What it still has to send is of no use to anybody: the program has heard that it is lost.
void Session::GiveUpRemote() {
  standing_.Explain(std::string(CloseResult().message()));
  if (life_.streaming() && tickets_.sealed()) link_.Cancel();
  tickets_.LoseAll();
  FinishSession();
}

}  // namespace h5mirror::vfd
