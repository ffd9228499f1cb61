#include "cluster/node.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cluster/claims.h"

namespace h5mirror::cluster {
namespace {

// Beats of another process under this ID before it counts as one that runs. The earlier life of a
// server may still be on its way out.
constexpr int kRivalBeatsMax = 10;
// Own beats over which the beat of a server that is evicted without force must stand still.
constexpr uint64_t kEvictBeats = 2;
constexpr std::string_view kSilent = "is silent";
// Of the times between tries to hand a cell over, which double.
constexpr int kRetireBackOffMax = 8;

// Whether the server that has a cell was not given up.
bool IsServed(const ClusterView& view, const CellRecord& record) {
  if (record.state != CellState::kServed) return false;
  const ServerRecord* const owner = view.FindServer(record.owner);
  return owner != nullptr && owner->epoch == record.owner_epoch && IsAlive(owner->state);
}

}  // namespace

Node::Node(Registry& registry, Fencer& fencer, CellHost& host, Clock& clock, const Timing& timing,
           ServerIdentity identity, NodeEvents events)
    : registry_(registry),
      fencer_(fencer),
      host_(host),
      clock_(clock),
      timing_(timing),
      events_(std::move(events)),
      guard_(clock, timing.valid_for, [this] { return member_.Confirm(); }),
      member_(registry, clock, guard_, identity),
      cells_(identity.id),
      watcher_(clock, timing) {}

NodePhase Node::phase() const {
  absl::MutexLock lock(&mutex_);
  return phase_;
}

bool Node::wants_drain() const {
  absl::MutexLock lock(&mutex_);
  return wants_drain_;
}

void Node::SetPhase(NodePhase phase) {
  absl::MutexLock lock(&mutex_);
  if (phase_ != NodePhase::kGone) phase_ = phase;
}

void Node::Note(const std::string& line) {
  if (events_.on_note != nullptr) events_.on_note(line);
}

void Node::Tell(NodeEvent::Kind kind, const std::string& subject) {
  if (events_.on_event != nullptr) events_.on_event({kind, subject});
}

NodeCounts Node::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void Node::End(const absl::Status& why) {
  guard_.Close(why.ok() ? absl::InternalError("this server has given its cells away") : why);
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == NodePhase::kGone) return;
    phase_ = NodePhase::kGone;
  }
  if (events_.on_gone != nullptr) events_.on_gone(why);
}

void Node::Drain() {
  {
    absl::MutexLock lock(&mutex_);
    wants_drain_ = true;
  }
  results_->news.Wake();
}

void Node::Evict(const ClusterView& view, const std::string& id, Eviction kind) {
  const ServerRecord* const server = view.FindServer(id);
  if (server == nullptr) return;
  const auto beat = view.beats.find(id);
  const WantedEviction wanted = {server->epoch, kind,
                                 beat == view.beats.end() ? BeatRecord() : beat->second,
                                 member_.own_beats()};
  absl::MutexLock lock(&mutex_);
  evictions_[id] = wanted;
}

void Node::Beat() {
  if (phase() == NodePhase::kGone || member_.epoch() == 0) return;
  if (const absl::Status beaten = member_.Beat(); absl::IsInternal(beaten)) End(beaten);
}

absl::StatusOr<ClusterView> Node::ReadView() {
  H5M_ASSIGN_OR_RETURN(RegistryView texts, registry_.ReadAll());
  H5M_ASSIGN_OR_RETURN(ClusterView view, DecodeView(std::move(texts)));
  cells_.Update(view);
  return view;
}

void Node::Step() {
  if (phase() == NodePhase::kGone) return;
  auto view = ReadView();
  if (!view.ok()) {
    ++looks_.failed;
    if (absl::IsInternal(view.status())) return End(member_.EndFor(view.status()));
    return Note(StrCat("the registry cannot be read: ", ToStd(view.status().message())));
  }
  ++looks_.succeeded;
  if (member_.epoch() == 0) return Start(*view);
  if (const absl::Status looked = member_.Look(*view); absl::IsInternal(looked)) return End(looked);
  StepJoined(*view);
}

void Node::Start(ClusterView& view) {
  // Nothing is to be given away.
  if (wants_drain()) return End(absl::OkStatus());
  const absl::Status joined = member_.Join(view);
  if (joined.ok()) {
    cells_.SetOwnEpoch(member_.epoch());
    watcher_.Forget();  // It counted looks until now, and counts beats from now on.
    SetPhase(NodePhase::kJoined);
    return Note(
        StrCat("joined the cluster as ", member_.identity().id, ", epoch ", member_.epoch()));
  }
  if (absl::IsInternal(joined)) return End(joined);
  if (!absl::IsAlreadyExists(joined)) return;
  if (HasRival(view)) {
    return End(
        absl::AlreadyExistsError(StrCat("another server runs under the ID ", member_.identity().id,
                                        "; give each server a `node` of its own")));
  }
  // Its own earlier life is watched as that of any other server.
  GiveUp(view, watcher_.Observe(view, "", looks_), kSilent);
  FenceDead(view);
}

bool Node::HasRival(const ClusterView& view) {
  const auto beat = view.beats.find(member_.identity().id);
  if (beat == view.beats.end() || beat->second == rival_beat_) return false;
  rival_beat_ = beat->second;
  return ++rival_beats_ > kRivalBeatsMax;
}

void Node::StepJoined(ClusterView& view) {
  if (wants_drain()) {
    SetPhase(NodePhase::kDraining);
    const absl::Status set = member_.SetState(ServerState::kDraining);
    if (absl::IsInternal(set)) return End(set);
    if (!set.ok()) return;
  } else if (!TakeWish(view)) {
    return;
  }
  const auto silent = watcher_.Observe(view, member_.identity().id, member_.own_beats());
  NoteBeats(view);
  if (!wants_drain()) {
    if (!silent.empty()) SetPhase(NodePhase::kClaiming);
    GiveUp(view, silent, kSilent);
    GiveUp(view, TakeEvictions(view), "is evicted");
    FenceDead(view);
    // The last server takes what is nobody's, whatever was wanted of it.
    if (!stands_aside_ || !HasOtherUp(view)) Claim(view);
  }
  Tend(view);
  if (wants_drain()) return EndDrain(view);
  SetPhase(stands_aside_ ? NodePhase::kDraining : NodePhase::kOwning);
}

bool Node::TakeWish(const ClusterView& view) {
  const DrainWish wish = view.WishFor(member_.identity().id);
  const bool stands_aside = wish != DrainWish::kNone;
  // Each time: the answer to an earlier change may be lost, and the change come late.
  const absl::Status set =
      stands_aside ? member_.SetState(ServerState::kDraining) : member_.Resume();
  if (absl::IsInternal(set)) End(set);
  if (!set.ok()) return false;
  if (stands_aside != std::exchange(stands_aside_, stands_aside)) {
    is_drained_ = false;
    Note(stands_aside ? "hands its cells over, as it was asked to" : "takes cells again");
    absl::MutexLock lock(&mutex_);
    if (stands_aside) ++counts_.drains;
  }
  if (wish == DrainWish::kExit && !std::exchange(is_exit_told_, true)) {
    Note("ends in order, as it was asked to");
    if (events_.on_exit_wanted != nullptr) events_.on_exit_wanted();
  }
  return true;
}

void Node::NoteBeats(const ClusterView& view) {
  std::map<std::string, SeenBeat> seen = watcher_.SeenBeats();
  uint64_t owned = 0;
  uint64_t unserved = 0;
  bool has_cell = false;
  for (const auto& [cell, record] : view.cells) {
    if (!IsServed(view, record)) ++unserved;
    if (!IsOwn(record) || record.state == CellState::kFree) continue;
    has_cell = true;
    if (record.state == CellState::kServed) ++owned;
  }
  {
    absl::MutexLock lock(&mutex_);
    beats_seen_.swap(seen);
    looked_at_ = clock_.Monotonic();
    counts_.cells_owned = owned;
    counts_.cells_unserved = unserved;
  }
  if (!stands_aside_ || has_cell || std::exchange(is_drained_, true)) return;
  Note("has handed over its last cell");
  Tell(NodeEvent::Kind::kDrained, member_.identity().id);
}

// ---- Servers ----

bool Node::SetServer(ClusterView& view, const std::string& id, ServerState state,
                     std::vector<Expectation> expected) {
  const std::string name = ServerName(id);
  ServerRecord record = view.servers[id];
  record.state = state;
  expected.push_back({name, TextOf(view.texts, name)});
  const std::string text = Encode(record);
  const absl::Status set = registry_.CompareAndSet(expected, {{name, text}});
  if (absl::IsInternal(set)) End(member_.EndFor(set));
  if (!set.ok()) return false;
  view.servers[id] = record;
  view.texts[name] = text;
  cells_.Update(view);
  return true;
}

std::vector<std::string> Node::TakeEvictions(const ClusterView& view) {
  const OwnBeats own = member_.own_beats();
  std::vector<std::string> ready;
  std::vector<std::string> spared;
  {
    absl::MutexLock lock(&mutex_);
    for (auto each = evictions_.begin(); each != evictions_.end();) {
      auto& [id, wanted] = *each;
      const ServerRecord* const server = view.FindServer(id);
      const auto beat = view.beats.find(id);
      // The life that the operator saw is over.
      bool is_over = server == nullptr || server->epoch != wanted.epoch || !IsAlive(server->state);
      if (!is_over && wanted.kind == Eviction::kIfSilent) {
        const bool beats = beat != view.beats.end() && beat->second != wanted.beat;
        if (beats) spared.push_back(id);
        is_over = beats;
      }
      if (is_over) {
        each = evictions_.erase(each);
        continue;
      }
      if (wanted.since.failed != own.failed) wanted.since = own;
      if (wanted.kind == Eviction::kForced ||
          own.succeeded - wanted.since.succeeded >= kEvictBeats) {
        ready.push_back(id);
      }
      ++each;
    }
  }
  for (const std::string& id : spared) Note(StrCat("the server ", id, " beats: it is not evicted"));
  return ready;
}

void Node::GiveUp(ClusterView& view, const std::vector<std::string>& ids, std::string_view why) {
  for (const std::string& id : ids) {
    // It may beat at this moment: then nothing happens.
    const std::string beat = BeatName(id);
    if (!SetServer(view, id, ServerState::kDead, {{beat, TextOf(view.texts, beat)}})) continue;
    given_up_.insert(view.servers[id].session);
    if (why == kSilent) dead_at_[view.servers[id].session] = -absl::InfiniteDuration();
    Note(StrCat("the server ", id, " ", why, ", and is given up"));
    absl::ReleasableMutexLock lock(&mutex_);
    const bool is_wanted = evictions_.erase(id) > 0;
    if (is_wanted) ++counts_.evictions;
    lock.Release();
    if (is_wanted) Tell(NodeEvent::Kind::kEvicted, id);
  }
}

// ---- Cells ----

bool Node::IsOwn(const CellRecord& record) const {
  return record.owner == member_.identity().id && record.owner_epoch == member_.epoch();
}

bool Node::SetCell(ClusterView& view, const std::string& cell, CellRecord record) {
  const std::string name = CellName(cell);
  record.seq = view.cells[cell].seq + 1;
  const std::string text = Encode(record);
  const absl::Status set = registry_.CompareAndSet(
      {{name, TextOf(view.texts, name)}, member_.OwnExpectation()}, {{name, text}});
  if (absl::IsInternal(set)) End(member_.EndFor(set));
  // Unknown or refused: the next look shows which.
  if (!set.ok()) return false;
  view.cells[cell] = record;
  view.texts[name] = text;
  cells_.Put(cell, record);
  return true;
}

bool Node::MayClaim(const ClusterView& view, const std::string& cell, const CellRecord& record) {
  // A free cell has its last owner's name, too.
  if (IsOwn(record) && record.state != CellState::kFree) return false;
  if (!IsClaimable(view, record)) {
    claimable_at_.erase(cell);
    return false;
  }
  const absl::Duration now = clock_.Monotonic();
  const absl::Duration since = claimable_at_.try_emplace(cell, now).first->second;
  if (const auto later = reopen_at_.find(cell); later != reopen_at_.end()) {
    if (now < later->second) return false;
    reopen_at_.erase(later);
  }
  return now - since >= PatienceFor(view, cell, record);
}

absl::Duration Node::PatienceFor(const ClusterView& view, const std::string& cell,
                                 const CellRecord& record) const {
  const std::string& self = member_.identity().id;
  const std::string to = record.state == CellState::kFree ? view.MovesTo(cell) : "";
  if (to == self) return absl::ZeroDuration();
  const auto place = static_cast<double>(PlaceOf(cell, self, view));
  // The server that it moves to may not come.
  return place * timing_.claim_patience +
         (to.empty() ? absl::ZeroDuration() : timing_.reopen_after);
}

void Node::Claim(ClusterView& view) {
  // What could not be answered for need not be claimed.
  if (!guard_.is_open()) return;
  std::vector<std::string> wanted;
  for (const auto& [cell, record] : view.cells) {
    if (MayClaim(view, cell, record)) wanted.push_back(cell);
  }
  for (const std::string& cell : wanted) {
    SetPhase(NodePhase::kClaiming);
    const CellRecord before = view.cells[cell];
    const CellRecord claimed = Claimed(before, member_.identity().id, member_.epoch());
    if (!SetCell(view, cell, claimed)) continue;
    // Where another server, or this one, could not open it, the cell is free, and was not closed.
    if (before.state == CellState::kFree && before.is_clean) {
      taken_since_.erase(cell);
    } else {
      const auto lost = lost_at_.find(view.servers[before.owner].session);
      taken_since_.try_emplace(cell, lost == lost_at_.end() ? claimable_at_[cell] : lost->second);
    }
    claimable_at_.erase(cell);
    Note(StrCat("owns the cell \"", cell, "\", epoch ", claimed.epoch));
  }
}

CellHost::Done Node::Then(const std::string& cell, uint64_t epoch, Stage stage) {
  return [results = results_, cell, epoch, stage](absl::Status status) {
    {
      absl::MutexLock lock(&results->mutex);
      results->list.push_back({cell, epoch, stage, std::move(status)});
    }
    results->news.Wake();
  };
}

void Node::TakeResults() {
  std::vector<Results::Result> list;
  {
    absl::MutexLock lock(&results_->mutex);
    list.swap(results_->list);
  }
  for (Results::Result& result : list) {
    const auto held = held_.find(result.cell);
    if (held == held_.end() || held->second.epoch != result.epoch) continue;
    held->second.stage = result.status.ok() ? result.stage : Stage::kFailed;
    held->second.error = std::move(result.status);
  }
}

bool Node::TendOpening(ClusterView& view, const std::string& cell, CellRecord record, Held& held) {
  if (held.stage == Stage::kNone) {
    held.stage = Stage::kOpening;
    host_.Open(cell, record.epoch, record.is_clean ? Recovery::kNone : Recovery::kNeeded,
               Then(cell, record.epoch, Stage::kOpened));
    return true;
  }
  if (held.stage == Stage::kOpened) {
    record.state = CellState::kServed;
    record.is_clean = false;
    if (!SetCell(view, cell, record)) return false;
    Note(StrCat("serves the cell \"", cell, "\", epoch ", record.epoch));
    TellServed(cell);
    return true;
  }
  if (held.stage != Stage::kFailed) return false;
  Note(StrCat("the cell \"", cell, "\" cannot be opened: ", ToStd(held.error.message())));
  if (absl::IsInternal(held.error)) {
    End(held.error);
    return false;
  }
  record.state = CellState::kFree;
  record.is_clean = false;
  reopen_at_[cell] = clock_.Monotonic() + timing_.reopen_after;
  return SetCell(view, cell, record);
}

void Node::TellServed(const std::string& cell) {
  const auto since = taken_since_.find(cell);
  if (since == taken_since_.end()) return;
  const absl::Duration took = clock_.Monotonic() - since->second;
  taken_since_.erase(since);
  {
    absl::MutexLock lock(&mutex_);
    ++counts_.takeovers;
    counts_.takeover_time += took;
  }
  Tell(NodeEvent::Kind::kTakenOver, cell);
}

void Node::Serve(const std::string& cell, Held& held) {
  guard_.Add(cell, held.epoch);
  if (!std::exchange(held.is_told, true)) host_.Served(cell, held.epoch);
}

void Node::TellGiven(const std::string& cell) {
  {
    absl::MutexLock lock(&mutex_);
    ++counts_.handovers;
  }
  Note(StrCat("has given the cell \"", cell, "\" away"));
  Tell(NodeEvent::Kind::kHandedOver, cell);
}

bool Node::IsToGive(const ClusterView& view, const std::string& cell) const {
  if (wants_drain()) return true;
  const std::string& self = member_.identity().id;
  if (const std::string to = view.MovesTo(cell); !to.empty() && to != self) return true;
  // A cell that nobody could take stays.
  return stands_aside_ && HasOtherUp(view);
}

bool Node::HasOtherUp(const ClusterView& view) const {
  return std::any_of(view.servers.begin(), view.servers.end(), [this](const auto& each) {
    return each.first != member_.identity().id && each.second.state == ServerState::kUp;
  });
}

bool Node::IsGivingAnother(const std::string& cell) const {
  return std::any_of(held_.begin(), held_.end(), [&cell](const auto& each) {
    const Stage stage = each.second.stage;
    return each.first != cell && stage >= Stage::kRetiring && stage <= Stage::kClosed;
  });
}

bool Node::TendServed(ClusterView& view, const std::string& cell, CellRecord record, Held& held) {
  if (held.stage == Stage::kFailed) {  // Of a Retire().
    Note(StrCat("the cell \"", cell, "\" stays for now: ", ToStd(held.error.message())));
    held.stage = Stage::kOpened;
    held.retire_wait =
        held.retire_wait == absl::ZeroDuration()
            ? timing_.reopen_after
            : std::min(2 * held.retire_wait, kRetireBackOffMax * timing_.reopen_after);
    held.retire_at = clock_.Monotonic() + held.retire_wait;
    return false;
  }
  if (held.stage == Stage::kRetiring) return false;
  if (held.stage != Stage::kRetired && !IsToGive(view, cell)) {
    Serve(cell, held);
    return false;
  }
  // At the end of the process the calls have ended before.
  if (held.stage == Stage::kOpened && !wants_drain()) {
    Serve(cell, held);
    // Each try ends its sessions. Those that do not end must not cost all the others one a beat.
    if (clock_.Monotonic() < held.retire_at || IsGivingAnother(cell)) return false;
    held.stage = Stage::kRetiring;
    host_.Retire(cell, record.epoch, Then(cell, record.epoch, Stage::kRetired));
    return true;
  }
  record.state = CellState::kDraining;
  return SetCell(view, cell, record);
}

bool Node::TendDraining(ClusterView& view, const std::string& cell, CellRecord record, Held& held) {
  guard_.Drop(cell);
  if (held.stage == Stage::kOpened || held.stage == Stage::kRetired) {
    held.stage = Stage::kClosing;
    host_.Close(cell, record.epoch, Then(cell, record.epoch, Stage::kClosed));
    return true;
  }
  if (held.stage == Stage::kFailed) {
    End(absl::InternalError(
        StrCat("the cell \"", cell, "\" cannot be closed: ", ToStd(held.error.message()))));
    return false;
  }
  if (held.stage != Stage::kClosed) return false;
  record.state = CellState::kFree;
  record.is_clean = true;
  if (!SetCell(view, cell, record)) return false;
  TellGiven(cell);
  return true;
}

bool Node::TendCell(ClusterView& view, const std::string& cell, const CellRecord& record) {
  if (!IsOwn(record) || record.state == CellState::kFree) {
    held_.erase(cell);
    return false;
  }
  Held& held = held_[cell];
  if (held.epoch != record.epoch) held = {.epoch = record.epoch};
  TakeResults();
  switch (record.state) {
    case CellState::kOpening:
      return TendOpening(view, cell, record, held);
    case CellState::kServed:
      return TendServed(view, cell, record, held);
    case CellState::kDraining:
      return TendDraining(view, cell, record, held);
    case CellState::kFree:
      break;
  }
  return false;
}

void Node::Tend(ClusterView& view) {
  std::vector<std::string> cells;
  for (const auto& [cell, record] : view.cells) cells.push_back(cell);
  for (const std::string& cell : cells) {
    // A copy: the record changes meanwhile.
    while (phase() != NodePhase::kGone && TendCell(view, cell, CellRecord(view.cells[cell]))) {
    }
  }
}

void Node::EndDrain(const ClusterView& view) {
  for (const auto& [cell, record] : view.cells) {
    if (IsOwn(record) && record.state != CellState::kFree) return;
  }
  const absl::Status set = member_.SetState(ServerState::kGone);
  if (set.ok() || absl::IsInternal(set)) End(set);
}

}  // namespace h5mirror::cluster
