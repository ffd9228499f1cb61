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

// The server's file is no longer the cut that was opened, or not the one sent before the server's
// restart.
void Session::OnMovedOn(const v1::SessionOpened& opened) {
  // The server has lost the whole new generation, and has made no cut of the old one since. All of
  // the new one is in the spool, and is sent again.
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

// Unsent bytes are useless now: the program has been told that they are lost.
void Session::GiveUpRemote() {
  standing_.Explain(std::string(CloseResult().message()));
  if (life_.streaming() && tickets_.sealed()) link_.Cancel();
  tickets_.LoseAll();
  FinishSession();
}

}  // namespace h5mirror::vfd
