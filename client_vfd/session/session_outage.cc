// What the program's calls wait for, and what they do while the server is away.
//
// The program's deadline is not the stream's: a call that has waited long enough goes on, and the
// sender gives the stream up only when the server has said nothing for longer. A disk that takes
// two seconds to sync is no outage. Nor is a link that is slower than the program. A close may be
// given longer (`linger`), and then goes on waiting only for what will be there by then.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

// The patience with a server that did not answer another session just now.
constexpr absl::Duration kShortPatience = absl::Milliseconds(300);
// A stream on which the server owes an answer for so long is given up.
constexpr absl::Duration kHungAfter = absl::Seconds(5);

// How long `left` bytes take, when it took `time` from `before` bytes to these.
absl::Duration TimeFor(uint64_t left, uint64_t before, absl::Duration time) {
  if (left == 0) return absl::ZeroDuration();
  if (left >= before) return absl::InfiniteDuration();
  return time * (static_cast<double>(left) / static_cast<double>(before - left));
}

}  // namespace

absl::Duration Session::Patience() const {
  // Who would rather wait than go on unmirrored waits for a slow answer too.
  const absl::Duration patience =
      std::max(config_.timeout, std::min(config_.outage_wait, kHungAfter));
  return host_.Suspect(config_.server.target) ? std::min(patience, kShortPatience) : patience;
}

absl::Duration Session::HungAfter() const {
  return std::max(config_.timeout, kHungAfter) + frame_size_.BuffersTake();
}

void Session::Progress() { progress_time_ = host_.Now(); }

void Session::BeginWait() {
  Progress();
  wait_time_ = progress_time_;
  wait_bytes_ = queue_.pending_bytes();
}

Session::Waited Session::Await(absl::FunctionRef<bool()> reached, absl::Time since,
                               absl::Duration linger) {
  const absl::Duration patience = Patience();
  const bool may_degrade = config_.outage_wait == absl::ZeroDuration();
  const absl::Time latest =
      may_degrade ? since + std::max(patience, linger) : absl::InfiniteFuture();
  absl::Time checked = since;
  uint64_t left = wait_bytes_;
  while (!reached()) {
    const absl::Time now = host_.Now();
    const absl::Time began = std::max(checked, wait_time_);
    const bool flows = progress_time_ > began;
    const absl::Time silent = progress_time_ + patience;
    if (now >= silent) return Waited::kSilent;
    if (now >= latest) return Waited::kTooSlow;
    if (may_degrade && flows && now >= checked + patience) {
      const uint64_t before = std::exchange(left, queue_.pending_bytes());
      if (now + TimeFor(left, before, now - began) > latest) return Waited::kTooSlow;
      checked = now;
    }
    const absl::Time next = flows ? checked + patience : silent;
    AwaitUntil(reached, may_degrade ? std::min({silent, next, latest}) : silent);
  }
  return Waited::kReached;
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
  const bool may_linger = link_ == Link::kOpen && config_.outage_wait == absl::ZeroDuration() &&
                          host_.Now() - std::max(wait_time_, flow_time_) < HungAfter();
  if (!may_linger) {
    return CutOff(absl::StrCat("no answer within ", absl::FormatDuration(waited)));
  }
  unanswered_since_ = std::min(unanswered_since_, wait_time_);
}

bool Session::IsHung(absl::Time now) const {
  if (link_ != Link::kOpen || done_) return false;
  // A closed session waits for its last answer.
  const absl::Time since = released_ ? close_time_ : unanswered_since_;
  return now - std::max(flow_time_, since) > HungAfter();
}

bool Session::RideOut(absl::FunctionRef<bool()> lost, absl::FunctionRef<bool()> cut,
                      absl::Time* give_up) {
  if (!standing_.is_behind() || done_) return false;
  // One whose silence was found late, as another mirror was waited for first, was away before.
  const absl::Time away_since = std::min(standing_.behind_since(), progress_time_ + Patience());
  *give_up = std::min(*give_up, away_since + config_.outage_wait);
  while (standing_.is_behind() && !refused_ && !done_ && host_.Now() < *give_up) {
    // With a cut that waits, the timer connects again.
    if (lost() && !cut()) return false;
    const auto changed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !standing_.is_behind() || refused_ || done_ || lost();
    };
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
  if (!may_be_answered()) return false;
  // Then the timer makes the next attempt, with this cut.
  const bool too_soon =
      link_ == Link::kNone && asked_.since < retry_time_ && !hurry_ && !standing_.is_connecting();
  asked_.ticket = CloseCut(kind, asked_.comment);
  if (!too_soon && link_ == Link::kNone && !standing_.is_connecting()) hurry_ = true;
  idle_ = false;
  asked_.is_awaited = !too_soon || config_.outage_wait > absl::ZeroDuration();
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
  absl::Time give_up = absl::InfiniteFuture();
  if (asked.ack == H5M_ACK_NONE) {
    const auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !standing_.is_connecting();
    };
    const bool waits = config_.outage_wait > absl::ZeroDuration();
    // A connection that nobody answers is an outage; else each barrier would wait for it again.
    if (waits && Await(known, asked.since) == Waited::kSilent) TimeOut();
    RideOut(lost, cut, &give_up);
    return standing_.is_mirroring() || standing_.is_connecting();
  }
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.Acked(asked.ticket, asked.ack) || lost() || !may_be_answered();
  };
  while (true) {
    if (Await(settled, asked.since) == Waited::kSilent) TimeOut();
    if (tickets_.Acked(asked.ticket, asked.ack)) return true;
    if (!RideOut(lost, cut, &give_up)) return tickets_.Acked(asked.ticket, asked.ack);
    BeginWait();
  }
}

void Session::Seal() {
  {
    absl::MutexLock lock(&mutex_);
    if (!collecting()) return;
    close_time_ = host_.Now();
    tickets_.Seal();
    CloseCut(CutKind::kCommit, config_.comment);
    if (refused_) {
      tickets_.LoseAll();  // Nobody will ask for it.
      return;
    }
    hurry_ = hurry_ || (link_ == Link::kNone && !standing_.is_connecting());
    idle_ = false;
    BeginWait();
  }
  host_.Wake(this);
}

void Session::AwaitSealed() {
  absl::MutexLock lock(&mutex_);
  if (!tickets_.sealed()) return;
  if (!refused_) AwaitHandedOver();
  ClaimToClose();
  NoteUnconfirmed();
  unlocked_ = true;
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
  const auto final_lost = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.IsFinalLost();
  };
  absl::Time give_up = absl::InfiniteFuture();
  Waited waited = Waited::kReached;
  while (true) {
    // What is still to be read is read later, and counts only if the file is as it was closed.
    waited = Await(handed_over, close_time_, config_.linger);
    if (waited == Waited::kSilent) TimeOut();
    if (!RideOut(final_lost, cut, &give_up)) break;
    BeginWait();
  }
  close_waited_out_ = waited != Waited::kReached;
  // It took long as there was much: the server gets its time to make it durable.
  const absl::Time now = host_.Now();
  if (waited == Waited::kReached && now > close_time_ + Patience()) close_time_ = now;
}

// Who opens the file from now on goes on from the close that is on its way, or sends what was left,
// whatever becomes of this program.
void Session::NoteUnconfirmed() {
  if (!claimed_ || done_ || !collecting()) return;
  // The server may lose a cut that it does not know to be durable, or never get it.
  if (!tickets_.IsFinalAcked(H5M_ACK_DURABLE)) SaveDirtyMap();
  SaveRecord(RecordState::kBehind);
}

// A barrier that goes out after the lock was given back is noted before. False: it must not go, as
// another program has opened the file. That one goes on from what was noted, where this barrier's
// cut is not; and what was read of the file since may be of none of its states.
bool Session::NoteBarrier() {
  if (!unlocked_) return true;
  if (!FileIsAsClosed()) return false;
  return SaveProgress() || !IsAnothersFile();
}

void Session::BeginClose() {
  absl::MutexLock lock(&mutex_);
  unlocked_ = true;
  BeginWait();
}

void Session::AwaitFinalCut() {
  if (config_.ack_commit == H5M_ACK_NONE || close_waited_out_) return;
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.IsFinalAcked(config_.ack_commit) || tickets_.IsFinalLost() ||
           !may_be_answered();
  };
  // The file's lock is free: another program may have changed it.
  const auto cut = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!FileIsAsClosed()) return false;
    CloseCut(CutKind::kCommit, config_.comment);
    return true;
  };
  const auto final_lost = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.IsFinalLost();
  };
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    if (Await(settled, close_time_, config_.linger) == Waited::kSilent) TimeOut();
    if (tickets_.IsFinalAcked(config_.ack_commit)) return;
    if (!RideOut(final_lost, cut, &give_up)) return;
    BeginWait();
  }
}

void Session::AwaitLastCut() {
  // A program may fail before the server has answered its first write.
  const bool is_away = link_ == Link::kNone && !standing_.is_connecting();
  if (is_away || tickets_.IsLost(tickets_.last()) || !may_be_answered()) return;
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.Acked(tickets_.last(), H5M_ACK_APPLIED) || tickets_.IsLost(tickets_.last()) ||
           !may_be_answered();
  };
  BeginWait();
  Await(settled, host_.Now());
}

}  // namespace h5mirror::vfd
