// A session's reports about its file: how it stands to its local one, and events for the operator.
#include "base/strings.h"
#include "server/mirror/session.h"

namespace h5mirror::server {

std::string Session::Account() const {
  return StrCat(writer_.claimed_user(), "@", writer_.host(), " ", writer_.program(), " ",
                writer_.pid());
}

// For people. `broke`: the stream ended by itself, not by the server.
std::string Session::ReasonOf(const Ending& ending, bool broke) {
  if (!broke) return StrCat("the server ended its session: ", ToStd(ending.status.message()));
  const bool lost = ending.end == store::SessionEnd::kLost;
  if (lost && !ending.status.ok()) return "its writer's connection broke, and it has not come back";
  return "its writer ended before all that it had written was here";
}

void Session::TellEnding(const Ending& ending) {
  const bool lost = ending.end == store::SessionEnd::kLost;
  // A session that the server itself ends goes on elsewhere, or after the restart.
  const bool settled = closed_cleanly_ || absl::IsUnavailable(ending.status);
  if (!lost && settled) return environment_.mirrors->Ended(file_id_, token_);
  absl::StatusOr<store::FileInfo> info = file_->Info();
  if (!info.ok()) {  // Only an operator can help a file that tells nothing of itself.
    info.emplace();
    info->file_id = file_id_;
  }
  // Else the server has ended it, as of an expired login: the writer lives, and may come back.
  const bool broke = ending.status.ok() || absl::IsCancelled(ending.status);
  const std::string why = ReasonOf(ending, broke);
  if (!environment_.mirrors->Lost(name_, *info, token_, why)) return;
  // A half-close, or a break behind a clean close, makes no version "writer lost", and is no such
  // event either. Nor is the end of a stream whose session goes on: its next one has the lease.
  const std::optional<LeaseHolder> holder = environment_.leases.HolderOf(name_);
  const bool goes_on = holder && holder->session_id == session_id_ && holder->token != token_;
  if (!lost || !broke || closed_cleanly_ || goes_on) return;
  Notify(environment_.events, {.kind = EventKind::kWriterLost,
                               .file = name_,
                               .text = StrCat(why, ": ", Account()),
                               .numbers = {{"last_cut", info->last_cut}}});
}

void Session::TellDiverged(const store::FileInfo& info, const std::string& reason) {
  if (!environment_.mirrors->Diverged(name_, info, reason)) return;
  Notify(environment_.events, {.kind = EventKind::kDiverged,
                               .file = name_,
                               .text = StrCat(reason, ": ", Account()),
                               .numbers = {{"last_cut", info.last_cut}}});
}

}  // namespace h5mirror::server
