// From one open of a file to the next in the same program.
//
// A program that opens, changes and closes a file in a loop must not wait for the server's syncs,
// and must not lose its mirror to an outage that spans two opens. So a session that the program has
// closed hands over to the next one what it would still have to see through:
//
// - its last cut is visible, not durable: the next session goes on from that cut at once. The
// server
//   may still lose it, so the next one keeps the changes that it would take with it, and sends them
//   again should its own stream break.
// - it has not read all of its last cut from the file, since the server is away: the next session
//   takes its place, with all that it has not brought across.
#include <utility>

#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

// In a row without a durable cut: bounds what the server has to make durable behind the program.
constexpr int kHandoversMax = 32;

}  // namespace

struct Session::Handover {
  // The last session of the row that may have left a cut on the server.
  Bytes16 session_id{};
  LocalRecord record;
  std::optional<RecordPlace> place;  // of the record
  Relation relation;
  // Of `changes`, for the next session: kFollows where they are on their way.
  MirrorBase::Heritage heritage = MirrorBase::Heritage::kFollows;
  int64_t cut_seen = 0;
  int64_t base_cut = 0;  // `changes` are what came after it; 0: they are the whole file
  Changes changes;
  int from = 0;       // how many sessions' changes
  Standing standing;  // if that is behind
  absl::Time retry_time;
};

std::optional<Session::Handover> Session::HandOver(const LocalFacts& facts, Handing handing) {
  if (config_.remote) return std::nullopt;  // Who comes next goes on from what the server has.
  absl::MutexLock lock(&mutex_);
  if (handing == Handing::kNow) FollowPredecessor(handing);
  const bool as_closed = closing_.stat() && *closing_.stat() == facts.stat_at_open;
  if (released_) NoteFollower(as_closed);
  const bool is_known = facts.created || (as_closed && base_.base_cut() >= 0);
  if (!is_known || !MayBeFollowed() || !IsRipe(handing)) return std::nullopt;
  const bool by_cut = IsFinalVisible() || !IsUnread(handing);
  follower_ = Follower::kHasTakenOver;
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
  if (!has_follower()) follower_ = Follower::kWaits;
  // Else another program had it between the two opens.
  anothers_file_ = anothers_file_ || !as_closed;
  // The next session changes the file next.
  if (!done_ && !superseded() && !anothers_file_) ForgetDirtyMap();
}

// It has something to hand over, and nobody has it yet.
bool Session::MayBeFollowed() const {
  return released_ && !done_ && !superseded() && !link_.is_refused() && claimed_ &&
         tickets_.sealed() && !standing_.is_diverged();
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
  if (streaming_) link_.Cancel();
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
  if (!predecessor_) return;
  const bool waited = WaitsToClaim() && released_;
  // Where the program ends, its record counts, and nobody waits for the end of its stream.
  if (predecessor_->gone() || (handing == Handing::kNow && predecessor_->done())) {
    predecessor_.reset();
    if (waited) ClaimClosed();
    return;
  }
  if (claimed_ || config_.remote) return;
  std::optional<Handover> from = predecessor_->HandOver(config_.facts, handing);
  if (!from) return;
  predecessor_.reset();
  base_.SetPredecessor(from->session_id);
  // A file that is created again has nothing of the one before.
  if (!config_.facts.created) return Inherit(*std::move(from));
  if (waited) ClaimClosed();
}

// The program gives the file's lock back, and the session before is still to be answered. Who opens
// the file next, in any program, has to find what both have changed, and what it is the difference
// to; so it is claimed now, and that one's stream is waited for afterwards.
void Session::ClaimToClose() {
  if (claimed_ || !predecessor_ || !tickets_.sealed() || !collecting()) return;
  std::optional<Handover> from = predecessor_->HandOver(config_.facts, Handing::kAtClose);
  // Else its record is not yet what it will be.
  if (!from && !predecessor_->done() && !predecessor_->is_anothers_file()) return;
  if (from) base_.SetPredecessor(from->session_id);
  if (from && !config_.facts.created) {
    Inherit(*std::move(from));
  } else {
    Claim();
  }
  if (tickets_.IsFinalLost()) CloseCut(CutKind::kCommit, config_.comment);
}

void Session::Inherit(Handover from) {
  claimed_ = true;
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

// The session before has ended, and its record is what it will be: now the changes of this one,
// which the program has closed since, have something to be the difference to.
void Session::ClaimClosed() {
  Claim();
  SendAgain();
  tickets_.LoseAll();
  link_.RetryAt(host_.Now());
  if (FileIsAsClosed()) {
    CloseCut(CutKind::kCommit, config_.comment);
    SaveProgress();
  } else if (has_follower()) {
    stream_clock_.Excuse(host_.Now());  // The follower has time to take over from now on.
    host_.WakeSuccessors(*this);
  } else {
    FinishSession();
  }
}

// What the predecessor has not brought across, below what this session has closed meanwhile: the
// file holds both by now, so they become one cut.
void Session::TakeOver(const Changes& changes) {
  queue_.SendAgain();
  queue_.AddChanges(changes);
  AccountSaved();
  tickets_.LoseAll();
  if (!tickets_.sealed()) return;
  // Else it was opened once more, and the next session takes over from this one.
  if (FileIsAsClosed()) CloseCut(CutKind::kCommit, config_.comment);
  if (!released_) return;
  stream_clock_.Excuse(host_.Now());  // It has time to do so from now on.
  host_.WakeSuccessors(*this);
}

void Session::SendAgain() {
  queue_.SendAgain();
  AccountSaved();
  base_.SendAgain();
}

}  // namespace h5mirror::vfd
