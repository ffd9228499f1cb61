// From one open of a file to the next in the same program (state/succession.h).
#include <utility>

#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

// In a row without a durable cut: bounds what the server has to make durable behind the program.
constexpr int kHandoversMax = 32;

}  // namespace

bool Session::LostFile() {
  absl::MutexLock lock(&mutex_);
  return closing_.is_anothers();
}

std::optional<Handover> Session::HandOver(const LocalFacts& facts, Handing handing) {
  if (config_.remote) return std::nullopt;  // The next session goes on from the server's bytes.
  absl::MutexLock lock(&mutex_);
  if (handing == Handing::kNow) FollowPredecessor(handing);
  const bool as_closed = closing_.stat() && *closing_.stat() == facts.stat_at_open;
  if (life_.released()) NoteFollower(as_closed);
  const bool is_known = facts.created || (as_closed && base_.base_cut() >= 0);
  if (!is_known || !MayBeFollowed() || !IsRipe(handing)) return std::nullopt;
  const bool by_cut = IsFinalVisible() || !IsUnread(handing);
  life_.TakeOver();
  Handover to;
  to.session_id = LastSession();
  to.record = record_.value();
  to.place = record_.place();
  to.cut_seen = base_.cut_seen();
  to.base_cut = base_.base_cut();
  to.from = base_.inherited_from() + 1;
  if (by_cut) {
    HandOverCut(to);
  } else {
    HandOverChanges(to);
  }
  return to;
}

// The program has opened the file again. `as_closed`: as this session left it.
void Session::NoteFollower(bool as_closed) {
  life_.OnReopened();
  // Another program had it between the two opens.
  if (!as_closed) closing_.LoseFile();
  if (life_.done() || life_.superseded() || closing_.is_anothers()) return;
  // The next session changes the file next. The record's update removes the map with it.
  if (record_.ForgetMap()) SaveRecord(RecordState::kBehind);
}

// It has something to hand over, and nobody has it yet.
bool Session::MayBeFollowed() const {
  return life_.released() && !life_.done() && !life_.superseded() && !link_.is_refused() &&
         succession_.is_claimed() && tickets_.sealed() && !standing_.is_diverged();
}

bool Session::IsFinalVisible() const {
  return standing_.is_mirroring() && tickets_.IsFinalAcked(H5M_ACK_APPLIED);
}

// It would still read the file, which the program changes next.
bool Session::IsUnread(Handing handing) const {
  return !queue_.drained() || !tickets_.IsFinalTaken() || handing == Handing::kNow;
}

// Else its answer is waited for, since that will come soon or the row is long.
bool Session::IsRipe(Handing handing) const {
  if (handing != Handing::kWhenItCan) return true;
  if (IsFinalVisible()) return base_.inherited_from() < kHandoversMax;
  return IsUnread(handing);
}

// The next session goes on from the final cut, which is visible or on its way.
void Session::HandOverCut(Handover& to) {
  to.relation.claim = vfd::Claim::kContinue;
  to.relation.file_id = ToByteString(record_.value().file_id);
  to.changes = queue_.NotDurable();
  if (IsFinalVisible()) {
    to.relation.base_cut = base_.cut_seen();
    return;
  }
  to.relation.base_cut = base_.base_cut();
  to.relation.base_session = session_id_;
  to.relation.base_seq = tickets_.FinalSeq().value_or(0);
}

// The next session sends what this one has not, from the file as that will be.
void Session::HandOverChanges(Handover& to) {
  to.relation = base_.relation();
  if (life_.streaming()) link_.Cancel();
  link_.End();
  SendAgain();
  const bool resumes = base_.NextClaim(queue_.last_seq(), link_.ever_opened()).resume;
  to.heritage = resumes ? MirrorBase::Heritage::kSends : MirrorBase::Heritage::kOwn;
  to.changes = queue_.open_changes();
  GoBehind("the program has opened the file again", true);
  to.standing = standing_;
  to.retry_time = link_.retry_time();
  FinishSession();
  host_.Wake(this);  // To cancel its stream.
}

void Session::FollowPredecessor(Handing handing) {
  const bool waited = WaitsToClaim() && life_.released();
  std::optional<Handover> from;
  if (succession_.Follow(config_.facts, handing, &from) == Succession::Followed::kWaits) return;
  if (from) base_.SetPredecessor(from->session_id);
  // A file that is created again has nothing of the one before.
  if (from && !config_.facts.created) return Inherit(*std::move(from));
  if (waited) ClaimClosed();
}

// The server has not yet acknowledged the changes of this session and of the one before. The next
// open of the file, in any program, must find these changes and their base.
void Session::ClaimToClose() {
  if (!WaitsToClaim()) return;
  std::optional<Handover> from;
  if (succession_.FollowAtClose(config_.facts, &from) == Succession::Followed::kWaits) return;
  if (from) base_.SetPredecessor(from->session_id);
  if (from && !config_.facts.created) {
    Inherit(*std::move(from));
  } else {
    Claim();
  }
  if (tickets_.IsFinalLost()) CloseCut(CutKind::kCommit, config_.comment);
}

void Session::Inherit(Handover from) {
  succession_.Claim();
  record_.Inherit(std::move(from.record), *from.place);
  base_.Inherit(std::move(from.relation), from.base_cut, from.cut_seen, from.from, from.heritage);
  base_.SetLevel(record_.value().cut, record_.value().version);
  if (from.standing.is_behind()) {
    standing_ = std::move(from.standing);
    link_.TakeOverRetry(from.retry_time);
    TakeOver(from.changes);
  } else {
    queue_.Inherit(std::move(from.changes));
  }
  if (SaveProgress()) record_.ForgetElsewhere();
}

// The session before has ended, so its record is final and gives this session's changes their base.
// The program has closed this session meanwhile.
void Session::ClaimClosed() {
  Claim();
  LoseCuts();
  link_.RetryAt(host_.Now());
  if (FileIsAsClosed()) {
    CloseFinalCut();
  } else if (life_.has_follower()) {
    stream_clock_.Excuse(host_.Now());  // The follower has time to take over from now on.
    host_.WakeSuccessors(*this);
  } else {
    FinishSession();
  }
}

// Takes over the changes that the predecessor has not sent. The file holds them and this session's
// closed cuts by now, so all become one cut.
void Session::TakeOver(const Changes& changes) {
  queue_.SendAgain();
  queue_.AddChanges(changes);
  window_.Hold(queue_.saved_bytes());
  tickets_.LoseAll();
  if (!tickets_.sealed()) return;
  // Else it was opened once more, and the next session takes over from this one.
  if (FileIsAsClosed()) CloseCut(CutKind::kCommit, config_.comment);
  if (!life_.released()) return;
  stream_clock_.Excuse(host_.Now());  // It has time to do so from now on.
  host_.WakeSuccessors(*this);
}

void Session::LoseCuts() {
  SendAgain();
  tickets_.LoseAll();
}

void Session::SendAgain() {
  queue_.SendAgain();
  window_.Hold(queue_.saved_bytes());
  base_.SendAgain();
}

}  // namespace h5mirror::vfd
