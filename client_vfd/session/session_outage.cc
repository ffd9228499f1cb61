// How the program's calls wait for the server, and how they behave during an outage.
//
// The program's deadline is not the stream's: a call that has waited long enough goes on, and the
// sender gives the stream up only when the server has said nothing for longer. A disk that takes
// two seconds to sync is no outage. Nor is a link that is slower than the program. A close may wait
// longer (`linger`), as long as the rate of the data lets it end in that time.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {

absl::Duration Session::Patience() const {
  return program_clock_.Patience(host_.Suspect(config_.server.target));
}

void Session::Progress() { program_clock_.Progress(host_.Now()); }

void Session::BeginWait() { program_clock_.BeginWait(host_.Now(), queue_.pending_bytes()); }

Waited Session::Await(absl::FunctionRef<bool()> reached, absl::Time since, absl::Duration linger) {
  const auto left_bytes = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.pending_bytes();
  };
  Wait wait(program_clock_, since, Patience(), linger);
  Waited waited = Waited::kReached;
  ++calls_waiting_;
  while (!reached()) {
    const Wait::Look look = wait.At(host_.Now(), left_bytes);
    waited = look.ended.value_or(waited);
    if (look.ended) break;
    AwaitUntil(reached, look.again);
  }
  --calls_waiting_;
  return waited;
}

Waited Session::AwaitThrough(absl::FunctionRef<bool()> reached, absl::FunctionRef<bool()> acked,
                             absl::FunctionRef<bool()> lost, absl::FunctionRef<bool()> cut,
                             absl::Time since, absl::Duration linger) {
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    const Waited waited = Await(reached, since, linger);
    if (waited == Waited::kSilent) TimeOut();
    if (acked() || !RideOut(lost, cut, &give_up)) return waited;
    BeginWait();
  }
}

Waited Session::AwaitFinal(absl::FunctionRef<bool()> reached, absl::FunctionRef<bool()> acked,
                           absl::FunctionRef<bool()> cut) {
  const auto lost = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tickets_.IsFinalLost(); };
  return AwaitThrough(reached, acked, lost, cut, program_clock_.close_time(), config_.linger);
}

bool Session::AwaitUntil(absl::FunctionRef<bool()> reached, absl::Time deadline) {
  const auto over = [&] { return reached() || host_.Now() >= deadline; };
  while (!over()) {
    host_.Await(mutex_, over, deadline);
  }
  return reached();
}

// The program goes on without the answer.
void Session::TimeOut() {
  const absl::Duration waited = Patience();
  host_.SetSuspect(config_.server.target, true);
  const absl::Time since = program_clock_.wait_time();
  const bool may_linger =
      link_.is_open() && !program_clock_.rides_out() && stream_clock_.MayGoOn(host_.Now(), since);
  if (!may_linger) {
    return CutOff(absl::StrCat("no answer within ", absl::FormatDuration(waited)),
                  AwaitsTakeover() ? Retry::kTakeover : Retry::kNever);
  }
  stream_clock_.OweSince(since);
}

bool Session::RideOut(absl::FunctionRef<bool()> lost, absl::FunctionRef<bool()> cut,
                      absl::Time* give_up) {
  if (!standing_.is_behind() || life_.done()) return false;
  *give_up = std::min(*give_up, program_clock_.OutageEnds(standing_.behind_since(), Patience()));
  const auto is_away = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return standing_.is_behind() && !link_.is_refused() && !life_.done();
  };
  while (is_away() && host_.Now() < *give_up) {
    // With a cut that waits, the timer connects again.
    if (lost() && !cut()) return false;
    const auto changed = [&]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !is_away() || lost(); };
    AwaitUntil(changed, *give_up);
  }
  if (!standing_.is_mirroring() || host_.Now() >= *give_up) return false;
  if (lost() && !cut()) return false;
  idle_ = false;
  host_.Wake(this);
  return true;
}

bool Session::AskCut(CutKind kind, H5mAck ack, std::string comment) {
  asked_ = AskedCut{kind, ack, std::move(comment), host_.Now()};
  if (!may_be_answered()) {
    // Another token lets it go on from here; see GoOnWithToken().
    if (waits_for_token_ && collecting()) watch_.OnCut();
    return false;
  }
  // Then the timer makes the next attempt, with this cut.
  // A server that had no room is asked once more at a commit, as the program may end behind it.
  const bool is_last = link_.is_full() && kind == CutKind::kCommit;
  const bool too_soon = link_.MustWait(asked_.since) && !standing_.is_connecting() && !is_last;
  asked_.ticket = CloseCut(kind, asked_.comment);
  if (!too_soon && link_.is_none() && !standing_.is_connecting()) link_.Hurry();
  link_.EndRest();
  idle_ = false;
  asked_.is_awaited = !too_soon || program_clock_.rides_out();
  if (asked_.is_awaited) BeginWait();
  return asked_.is_awaited;
}

void Session::Cut(CutKind kind, H5mAck ack, std::string comment) {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    wake = AskCut(kind, ack, std::move(comment));
  }
  if (wake) host_.Wake(this);
}

void Session::TickIfChanged() {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    if (IsAtNewestCut()) {
      asked_ = AskedCut{CutKind::kTick, H5M_ACK_NONE, "", host_.Now(), tickets_.last()};
      asked_.is_awaited = may_be_answered();
      if (asked_.is_awaited) BeginWait();
      return;
    }
    wake = AskCut(CutKind::kTick, H5M_ACK_NONE, "");
  }
  if (wake) host_.Wake(this);
}

// Changes of a lost stream, and ticks that were not ended as too many wait, are in the open cut.
bool Session::IsAtNewestCut() const { return watch_.is_at_cut() && queue_.open_changes().empty(); }

bool Session::AwaitCut() {
  absl::MutexLock lock(&mutex_);
  AskedCut asked = std::exchange(asked_, AskedCut{});
  if (!asked.is_awaited) return false;
  const auto cut = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    asked.ticket = CloseCut(asked.kind, asked.comment);
    return true;
  };
  const auto lost = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.IsLost(asked.ticket);
  };
  if (asked.ack == H5M_ACK_NONE) {
    absl::Time give_up = absl::InfiniteFuture();
    const auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !standing_.is_connecting();
    };
    // A connection that nobody answers is an outage; else each barrier would wait for it again.
    if (program_clock_.rides_out() && Await(known, asked.since) == Waited::kSilent) TimeOut();
    RideOut(lost, cut, &give_up);
    return standing_.is_mirroring() || standing_.is_connecting();
  }
  const auto acked = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.Acked(asked.ticket, asked.ack);
  };
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return acked() || lost() || !may_be_answered();
  };
  AwaitThrough(settled, acked, lost, cut, asked.since, absl::ZeroDuration());
  return acked();
}

void Session::Seal() {
  {
    absl::MutexLock lock(&mutex_);
    if (!collecting()) return;
    program_clock_.BeginClose(host_.Now());
    tickets_.Seal();
    closing_.Seal();
    CloseCut(CutKind::kCommit, config_.comment);
    if (link_.is_refused()) {
      tickets_.LoseAll();  // Nobody will ask for it.
      return;
    }
    if (link_.is_none() && !standing_.is_connecting()) link_.Hurry();
    idle_ = false;
    BeginWait();
  }
  host_.Wake(this);
}

void Session::AwaitSealed() {
  absl::MutexLock lock(&mutex_);
  if (!tickets_.sealed()) return;
  if (!link_.is_refused()) AwaitHandedOver();
  ClaimToClose();
  NoteUnconfirmed();
  closing_.Unlock();
}

// Nobody should change the file while its last bytes are still being read from it; the caller holds
// the lock until here.
void Session::AwaitHandedOver() {
  const auto handed_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (queue_.drained() && tickets_.IsFinalTaken()) || tickets_.IsFinalLost() ||
           !may_be_answered();
  };
  const auto cut = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CloseCut(CutKind::kCommit, config_.comment);
    return true;
  };
  // Bytes that are unread by then are read later. They are used only if the file is still as it was
  // closed.
  const auto never = [] { return false; };
  const Waited waited = AwaitFinal(handed_over, never, cut);
  if (waited != Waited::kReached) closing_.Spend();
  if (waited == Waited::kReached) program_clock_.OnHandedOver(host_.Now(), Patience());
}

// The next open goes on from the close that is on its way, or sends the bytes that were left. That
// holds whatever becomes of this program.
void Session::NoteUnconfirmed() {
  if (!succession_.is_claimed() || life_.done() || !collecting()) return;
  // The server may lose a cut that it does not know to be durable, or never get it.
  if (!tickets_.IsFinalAcked(H5M_ACK_DURABLE)) SaveDirtyMap();
  SaveRecord(RecordState::kBehind);
}

// Notes a barrier in the record before it goes out, if the file's lock was given back. False: do
// not send it, because another program has opened the file. That program goes on from the record,
// which lacks this barrier's cut. Also, the bytes that were read since may mix two states of the
// file.
bool Session::NoteBarrier() {
  if (!closing_.is_unlocked()) return true;
  if (!FileIsAsClosed()) return false;
  return SaveProgress() || !IsAnothersFile();
}

void Session::BeginClose() {
  absl::MutexLock lock(&mutex_);
  closing_.Unlock();
  BeginWait();
}

void Session::AwaitFinalCut() {
  if (config_.ack_commit == H5M_ACK_NONE || closing_.has_waited_enough()) return;
  const auto acked = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.IsFinalAcked(config_.ack_commit);
  };
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return acked() || tickets_.IsFinalLost() || !may_be_answered();
  };
  // The file's lock is free: another program may have changed it.
  const auto cut = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!FileIsAsClosed()) return false;
    CloseCut(CutKind::kCommit, config_.comment);
    return true;
  };
  AwaitFinal(settled, acked, cut);
}

void Session::AwaitLastCut() {
  // A program may fail before the server has answered its first write.
  const bool is_away = link_.is_none() && !standing_.is_connecting();
  if (is_away || tickets_.IsLost(tickets_.last()) || !may_be_answered()) return;
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.Acked(tickets_.last(), H5M_ACK_APPLIED) || tickets_.IsLost(tickets_.last()) ||
           !may_be_answered();
  };
  BeginWait();
  Await(settled, host_.Now());
}

}  // namespace h5mirror::vfd
