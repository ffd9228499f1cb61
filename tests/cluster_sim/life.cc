#include "tests/cluster_sim/life.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "tests/cluster_sim/faults.h"
#include "tests/cluster_sim/life_parts.h"

namespace h5mirror::cluster_sim {
namespace {

// A call in hand, of a store that must not be closed under it.
class InHand {
 public:
  explicit InHand(int& count) : count_(count) { ++count_; }
  ~InHand() { --count_; }
  InHand(const InHand&) = delete;

 private:
  int& count_;
};

}  // namespace

Life::Life(Site& site, const std::string& id, int number, double clock_rate,
           std::function<void()> on_end)
    : site_(site),
      world_(site.world),
      id_(id),
      name_(StrCat(id, "-", number)),
      clock_rate_(clock_rate),
      on_end_(std::move(on_end)) {}

Life::~Life() { world_.Kill(this); }

void Life::Begin() {
  is_alive_ = true;
  session_ = site_.disk.Mount(name_, [this] { return is_alive_ && !is_paused_; });
  clock_ = std::make_unique<LifeClock>(*this);
  client_ = std::make_unique<Client>(*this);
  evictor_ = std::make_unique<Evictor>(*this);
  host_ = std::make_unique<Host>(*this);
  cluster::NodeEvents events;
  events.on_gone = [this](const absl::Status& why) {
    world_.Trace(name_, ": gone: ", why.ToString());
    // A fiber of this life makes the call, so the life ends later.
    world_.After(absl::ZeroDuration(), [self = shared_from_this()] {
      if (self->is_alive_) self->on_end_();
    });
  };
  // A SIGTERM to itself.
  events.on_exit_wanted = [this] { node_->Drain(); };
  events.on_note = [this](const std::string& line) { world_.Trace(name_, ": ", line); };
  node_ = std::make_unique<cluster::Node>(
      *client_, *evictor_, *host_, *clock_, cluster::Timing(),
      cluster::ServerIdentity{id_, id_, name_, {StrCat("address of ", name_)}}, std::move(events));
  world_.Trace(name_, ": starts");
  Spawn([this] { Loop([this] { node_->Beat(); }); });
  Spawn([this] { Loop([this] { node_->Step(); }); });
}

void Life::Kill() {
  if (!is_alive_) return;
  world_.Trace(name_, ": ends");
  is_alive_ = false;
  site_.disk.Forget(*session_);
  world_.Kill(this);
}

void Life::Wait(std::function<bool()> condition, absl::Time deadline) {
  world_.Wait(std::move(condition), deadline);
  if (is_paused_) world_.Wait([this] { return !is_paused_; }, absl::InfiniteFuture());
}

void Life::Sleep(absl::Duration least, absl::Duration most) {
  Wait([] { return false; }, world_.Now() + world_.Between(least, most));
}

void Life::Spawn(std::function<void()> body) {
  world_.Spawn(this, [this, body = std::move(body)] {
    if (is_paused_) world_.Wait([this] { return !is_paused_; }, absl::InfiniteFuture());
    body();
  });
}

// As cluster/runner.cc.
void Life::Loop(const std::function<void()>& turn) {
  const absl::Duration every = cluster::Timing().beat_every;
  while (node_->phase() != cluster::NodePhase::kGone) {
    const absl::Duration begun_at = clock_->Monotonic();
    turn();
    const absl::Duration rest = begun_at + every - clock_->Monotonic();
    if (rest > absl::ZeroDuration()) {
      Wait([] { return false; }, world_.Now() + rest / clock_rate_);
    } else {
      Breathe();
    }
  }
}

// ---- Stores ----

Life::Store* Life::StoreOf(const std::string& cell, uint64_t epoch) {
  const auto found = stores_.find(cell);
  if (found == stores_.end() || !found->second.is_open || found->second.epoch != epoch) {
    return nullptr;
  }
  return &found->second;
}

absl::Status Life::OpenStore(const std::string& cell, uint64_t epoch, cluster::Recovery recovery) {
  site_.golden.Owns(cell, epoch, name_);
  if (recovery == cluster::Recovery::kNeeded) {
    Sleep(absl::Milliseconds(5), absl::Milliseconds(300));
    if (!Is(Fault::kOldMapAtOpen)) site_.disk.TakeNewestMap(*session_);
  }
  Store opened;
  opened.epoch = epoch;
  for (int number = 0; number < kObjects; ++number) {
    Breathe();
    const auto value = site_.disk.Read(*session_, {cell, number}, epoch);
    if (!value.has_value()) return absl::InternalError("this client is fenced");
    opened.values[number] = *value;
  }
  if (world_.Chance(site_.weather.opening_fails)) return absl::UnavailableError("no memory");
  opened.is_open = true;
  stores_[cell] = std::move(opened);
  return absl::OkStatus();
}

absl::Status Life::MakeDurable() {
  const bool is_synced =
      site_.disk.Sync(session_, [this](std::function<bool()> condition, absl::Time deadline) {
        Wait(std::move(condition), deadline);
      });
  Breathe();
  const bool has_size = Is(Fault::kNoSizeGuard) || site_.disk.AskSize(*session_);
  if (is_synced && has_size) return absl::OkStatus();
  return absl::InternalError("its session has been ended");
}

absl::Status Life::CloseStore(const std::string& cell) {
  Store& store = stores_[cell];
  store.is_open = false;
  Wait([&store] { return store.in_hand == 0; }, absl::InfiniteFuture());
  H5M_RETURN_IF_ERROR(MakeDurable());
  stores_.erase(cell);
  return absl::OkStatus();
}

// ---- Calls ----

void Life::Deliver(const Request& request) {
  if (!is_alive_) return;
  Spawn([this, request] {
    const Answer answer = Handle(request);
    request.answer(answer);
  });
}

Answer Life::Handle(const Request& request) {
  const std::string& cell = request.object.cell;
  const cluster::Route route = node_->Find(cell, request.seen_epoch);
  if (route.kind == cluster::RouteKind::kRedirect) {
    return {AnswerKind::kRedirect, route.epoch, 0, route.listen};
  }
  if (route.kind != cluster::RouteKind::kServe) return {};
  Store* const store = StoreOf(cell, route.epoch);
  if (store == nullptr) return {};
  return HandleAt(request, route.epoch, *store);
}

Answer Life::HandleAt(const Request& request, uint64_t epoch, Store& store) {
  const InHand in_hand(store.in_hand);
  const Object& object = request.object;
  uint64_t& value = store.values[object.number];
  if (request.value == 0) {
    // First the bytes, then the guard.
    const uint64_t told = value;
    Breathe();
    if (!node_->guard().Check(object.cell, epoch).ok()) return {};
    return {AnswerKind::kDone, epoch, told, ""};
  }
  if (request.value < value) return {};  // A late request: its client has gone on.
  if (request.value > value) {
    value = request.value;
    site_.disk.Write(*session_, object, epoch, value);
  }
  Breathe();
  if (const absl::Status durable = MakeDurable(); !durable.ok()) {
    node_->End(durable);
    return {};
  }
  Breathe();
  if (!node_->guard().BeforeAck(object.cell, epoch).ok()) return {};
  Breathe();
  site_.golden.Acked(object, request.value);
  return {AnswerKind::kDone, epoch, 0, ""};
}

}  // namespace h5mirror::cluster_sim
