#include "server/door/front_door.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/door/auth.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr rlim_t kDescriptorsMax = 65'536;
// Descriptors kept for files, with any number of connections.
constexpr rlim_t kDescriptorsOfFiles = 128;
// Memory that a connection may take on average, and one that has shown no token.
constexpr uint64_t kMemoryPerConnection = uint64_t{256} << 10;
constexpr uint64_t kMemoryPerNewcomer = uint64_t{1} << 20;

constexpr int kEventsAtOnce = 64;
constexpr int kAcceptsAtOnce = 64;
constexpr int kTickMs = 100;
constexpr size_t kParkedMax = 256;
constexpr size_t kParkedPerUser = 16;
constexpr size_t kPacedMax = 64;
constexpr int kPacedTickMs = 10;
constexpr absl::Duration kLogPeriod = absl::Seconds(1);
// gRPC has closed a connection so long after it ended, on any machine that serves at all.
constexpr absl::Duration kClosing = absl::Seconds(1);
constexpr absl::Duration kDescriptorLook = absl::Milliseconds(2);

// The data of an epoll event: the wake-up, a listener or the number of a connection.
constexpr uint64_t kWake = 0;
constexpr uint64_t kListenerBit = uint64_t{1} << 63;
bool IsConnection(uint64_t data) { return data != kWake && (data & kListenerBit) == 0; }

absl::Duration Now() {
  static SystemClock clock;
  return clock.Monotonic();
}

std::string_view Describe(Turned turned) {
  switch (turned) {
    case Turned::kDescriptors:
      return "refused, the process has no descriptors left (LimitNOFILE= of its unit)";
    case Turned::kConnections:
      return "refused, there are as many as max_connections, memory_max and LimitNOFILE= allow";
    case Turned::kPeer:
      return "refused, max_peer_connections are open from there";
    case Turned::kNewcomers:
      return "cut for a newer one: too many have shown no token yet (max_new_connections)";
    case Turned::kTokenTimeout:
      return "cut, it has shown no valid token within token_timeout";
    case Turned::kBytes:
      return "cut, it has sent too much without a valid token";
    case Turned::kCalls:
      return "cut, it begins calls, or resets them, faster than they can be served";
    case Turned::kUsers:
      return "refused, the Unix socket has connections of as many other users as it can";
    case Turned::kAfterCuts:
      return "refused, others from there were cut for their calls, and too many wait";
  }
  return "";
}

rlim_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return std::min(limit.rlim_cur, kDescriptorsMax);
}

bool OutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

OwnedFd OpenReserve() { return OwnedFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

void Watch(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

DoorSample& DoorSample::operator+=(const DoorSample& other) {
  connections.connections += other.connections.connections;
  connections.newcomers += other.connections.newcomers;
  for (size_t i = 0; i < turned.size(); ++i) turned[i] += other.turned[i];
  refused_calls += other.refused_calls;
  return *this;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, kDescriptorsMax);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

ConnectionLimits LimitsFor(const Config& config) {
  const rlim_t descriptors = DescriptorLimit();
  // The HTTP door has half as many again.
  const auto grpc_part = [&config](uint64_t all) { return config.HasHttp() ? all / 3 * 2 : all; };
  // Two descriptors for each: gRPC's and the table's. A third of all are left to files.
  const rlim_t by_descriptors =
      descriptors > kDescriptorsOfFiles ? (descriptors - kDescriptorsOfFiles) / 3 : 0;
  const uint64_t connections =
      std::min({static_cast<uint64_t>(config.max_connections),
                std::max<uint64_t>(grpc_part(by_descriptors), 16),
                std::max<uint64_t>(grpc_part(config.memory_max_bytes / kMemoryPerConnection), 64)});
  ConnectionLimits limits;
  limits.connections = static_cast<int>(connections);
  limits.peer_connections = config.max_peer_connections;
  limits.newcomers = static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(config.max_new_connections),
                         std::max<uint64_t>(config.memory_max_bytes / kMemoryPerNewcomer, 16)));
  limits.token_timeout = config.token_timeout;
  return limits;
}

// Results of user look-ups for the door's thread. Look-ups may end after the door.
struct FrontDoor::Parking {
  // False: the user, or all together, have as many waiting connections as there may be.
  bool TakePlace(uid_t user) {
    absl::MutexLock lock(&mutex);
    if (waiting == kParkedMax) return false;
    size_t& its = waiting_of[user];
    if (its == kParkedPerUser) return false;
    ++its;
    ++waiting;
    return true;
  }
  void LeavePlace(uid_t user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    --waiting;
    const auto its = waiting_of.find(user);
    if (--its->second == 0) waiting_of.erase(its);
  }

  absl::Mutex mutex;
  size_t waiting ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<uid_t, size_t> waiting_of ABSL_GUARDED_BY(mutex);
  std::vector<Parked> ready ABSL_GUARDED_BY(mutex);
  OwnedFd wake;
};

FrontDoor::FrontDoor(const DoorSettings& settings, const Authenticator& authenticator)
    : authenticator_(authenticator),
      thread_name_(settings.thread_name),
      table_(settings.limits),
      parking_(std::make_shared<Parking>()) {}

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const Config& config,
                                                           const Authenticator& authenticator) {
  return Open(DoorSettings{.addresses = config.listen,
                           .socket_mode_bits = config.socket_mode_bits,
                           .group = config.group,
                           .limits = LimitsFor(config)},
              authenticator);
}

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const DoorSettings& settings,
                                                           const Authenticator& authenticator) {
  auto door = absl::WrapUnique(new FrontDoor(settings, authenticator));
  for (const ListenAddress& address : settings.addresses) {
    H5M_ASSIGN_OR_RETURN(ListenSocket socket,
                         ListenSocket::Open(address, settings.socket_mode_bits, settings.group));
    door->sockets_.push_back(std::move(socket));
  }
  door->acceptors_.resize(door->sockets_.size() * kUserSlots);
  door->epoll_ = OwnedFd(epoll_create1(EPOLL_CLOEXEC));
  door->wake_ = OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  door->reserve_ = OpenReserve();
  door->parking_->wake = OwnedFd(fcntl(door->wake_.get(), F_DUPFD_CLOEXEC, 0));
  if (!door->epoll_.valid() || !door->wake_.valid() || !door->reserve_.valid() ||
      !door->parking_->wake.valid()) {
    return absl::UnavailableError(StrCat("cannot listen: ", strerror(errno)));
  }
  return door;
}

FrontDoor::~FrontDoor() {
  ends_ = true;
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void FrontDoor::Attach(size_t index, int slot,
                       std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor) {
  acceptors_[static_cast<size_t>(SlotOf(index, slot))] = std::move(acceptor);
}

void FrontDoor::Start() {
  Watch(epoll_.get(), wake_.get(), EPOLLIN, kWake);
  for (size_t i = 0; i < sockets_.size(); ++i) {
    for (const OwnedFd& fd : sockets_[i].descriptors()) listeners_.emplace_back(i, fd.get());
  }
  WatchListeners();
  accepts_ = true;
  {
    absl::MutexLock lock(&closed_mutex_);
    closed_ = false;
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), thread_name_);
    Run();
  });
}

void FrontDoor::StopAccepting() {
  accepts_ = false;
  eventfd_write(wake_.get(), 1);
  absl::MutexLock lock(&closed_mutex_);
  closed_mutex_.Await(absl::Condition(&closed_));
}

void FrontDoor::WatchListeners() {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    Watch(epoll_.get(), listeners_[i].second, EPOLLIN, kListenerBit | i);
  }
}

void FrontDoor::CloseListeners() {
  listeners_.clear();
  sockets_.clear();
  absl::MutexLock lock(&closed_mutex_);
  closed_ = true;
}

void FrontDoor::Run() {
  absl::Duration next_tick = Now();
  while (!ends_) {
    const bool ticks = out_of_descriptors_ || table_.Counts().newcomers > 0;
    epoll_event events[kEventsAtOnce];
    const int wait_ms = !paced_.empty() ? kPacedTickMs : ticks ? kTickMs : -1;
    const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, wait_ms);
    if (!accepts_ && !listeners_.empty()) CloseListeners();
    // Ended connections first, because newer ones may need their descriptors.
    for (const bool is_connection : {true, false}) {
      for (int i = 0; i < count; ++i) {
        if (IsConnection(events[i].data.u64) != is_connection) continue;
        Handle(events[i].data.u64, events[i].events);
      }
    }
    TakeInPaced();
    if (Now() < next_tick) continue;
    next_tick = Now() + absl::Milliseconds(kTickMs);
    Tick();
  }
  if (!listeners_.empty()) CloseListeners();
}

void FrontDoor::Handle(uint64_t data, uint32_t events) {
  if (data == kWake) {
    eventfd_t woken = 0;
    eventfd_read(wake_.get(), &woken);
    TakeInParked();
  } else if (IsConnection(data)) {
    // Both directions have ended: gRPC has closed its descriptor, or is about to.
    if ((events & EPOLLHUP) != 0) table_.Remove(data, Now());
  } else if (const size_t listener = data & ~kListenerBit; listener < listeners_.size()) {
    AcceptFrom(listeners_[listener].first, listeners_[listener].second);
  }
}

void FrontDoor::RemoveEnded() {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    if (IsConnection(events[i].data.u64)) Handle(events[i].data.u64, events[i].events);
  }
}

void FrontDoor::Tick() {
  if (out_of_descriptors_ && !listeners_.empty()) {
    out_of_descriptors_ = false;
    reserve_ = OpenReserve();
    WatchListeners();
  }
  for (const ConnectionTable::CutOne& cut : table_.CutOverdue(Now())) {
    Note(cut.turned, cut.peer.Name());
  }
}

void FrontDoor::AcceptFrom(size_t index, int listener) {
  for (int i = 0; i < kAcceptsAtOnce && accepts_; ++i) {
    if (!AcceptOne(index, listener)) return;
  }
}

bool FrontDoor::AcceptOne(size_t index, int listener) {
  OwnedFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) {
    TakeIn(index, listener, std::move(fd));
    return true;
  }
  if (errno == EINTR || errno == ECONNABORTED) return true;
  if (!OutOfDescriptors(errno)) return false;
  if (AwaitDescriptor() || RefuseWithReserve(listener)) return true;
  // Other threads were quicker. The connection waits until a descriptor is there.
  for (const auto& [socket, descriptor] : listeners_) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  out_of_descriptors_ = true;
  return false;
}

bool FrontDoor::AwaitDescriptor() {
  RemoveEnded();
  const absl::Duration now = Now();
  // Descriptors of open files and lasting connections do not become free.
  if (table_.LastEnd() + kClosing < now) return false;
  // Once: a flood of connections ends some all the time.
  if (patient_until_ + kClosing < now) patient_until_ = now + kClosing;
  if (patient_until_ < now) return false;
  absl::SleepFor(kDescriptorLook);
  return true;
}

OwnedFd FrontDoor::Duplicate(int fd) {
  for (;;) {
    OwnedFd second(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (second.valid() || !OutOfDescriptors(errno) || !AwaitDescriptor()) return second;
  }
}

bool FrontDoor::RefuseWithReserve(int listener) {
  if (!reserve_.valid()) return false;
  reserve_.Reset();
  OwnedFd refused(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!refused.valid()) {
    const bool was_none = errno == EAGAIN || errno == ECONNABORTED;
    reserve_ = OpenReserve();
    return was_none && reserve_.valid();
  }
  const std::optional<Peer> peer = PeerOf(refused.get());
  Note(Turned::kDescriptors, peer.has_value() ? peer->Name() : "a peer that has gone");
  shutdown(refused.get(), SHUT_RDWR);
  // At once: the next connection would be taken in with it, and those after it could not be
  // refused.
  refused.Reset();
  reserve_ = OpenReserve();
  return true;
}

std::optional<Peer> FrontDoor::Examine(int fd) {
  std::optional<Peer> peer = PeerOf(fd);
  if (!peer.has_value()) return std::nullopt;
  // Also one whose name service fails: each uid of its own would have a slot of its own.
  if (HasNoName(*peer)) peer->uid = kNamelessUid;
  if (const std::optional<Turned> refused = table_.Refuses(*peer); refused.has_value()) {
    Note(*refused, peer->Name());
    return std::nullopt;
  }
  return peer;
}

void FrontDoor::TakeIn(size_t index, int listener, OwnedFd fd) {
  const std::optional<Peer> peer = Examine(fd.get());
  if (!peer.has_value()) return;
  if (Park(*peer, index, listener, fd) || Pace(*peer, index, listener, fd)) return;
  HandOver(*peer, index, listener, std::move(fd));
}

void FrontDoor::HandOver(const Peer& peer, size_t index, int listener, OwnedFd fd) {
  const std::optional<int> slot =
      peer.kind == Peer::Kind::kUnixSocket
          ? table_.ChooseUserSlot(peer.uid, SlotOf(index, 0), kUserSlots, Now())
          : table_.ChooseSlot(SlotOf(index, 0), kSlots, Now());
  if (!slot.has_value()) return Note(Turned::kUsers, peer.Name());
  OwnedFd second = Duplicate(fd.get());
  if (!second.valid()) return Note(Turned::kDescriptors, peer.Name());
  std::optional<Peer> cut;
  const int watched = second.get();
  const uint64_t number = table_.Add(peer, std::move(second), *slot, Now(), cut);
  if (cut.has_value()) Note(Turned::kNewcomers, cut->Name());
  // Only EPOLLHUP and EPOLLERR, once each.
  Watch(epoll_.get(), watched, EPOLLET, number);
  if (receiver_) return receiver_(std::move(fd));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd.Release();
  acceptors_[static_cast<size_t>(*slot)]->HandleNewConnection(&connection);
}

bool FrontDoor::Pace(const Peer& peer, size_t index, int listener, OwnedFd& fd) {
  const std::string name = peer.Name();
  const absl::Duration now = Now();
  const std::optional<absl::Duration> turn = pacer_.TakeTurn(name, now);
  if (turn.has_value() && *turn <= now) return false;
  if (turn.has_value() && paced_.size() < kPacedMax) {
    paced_.emplace(*turn, Parked{index, listener, std::move(fd)});
  } else {
    Note(Turned::kAfterCuts, name);
    fd.Reset();
  }
  return true;
}

void FrontDoor::TakeInPaced() {
  while (!paced_.empty() && paced_.begin()->first <= Now()) {
    Parked each = std::move(paced_.extract(paced_.begin()).mapped());
    if (!accepts_) continue;
    // It may have gone while it waited, and others may have come.
    const std::optional<Peer> peer = Examine(each.fd.get());
    if (!peer.has_value()) continue;
    HandOver(*peer, each.index, each.listener, std::move(each.fd));
  }
}

bool FrontDoor::HasNoName(const Peer& peer) const {
  if (peer.kind != Peer::Kind::kUnixSocket || !authenticator_.has_rules()) return false;
  const std::optional<UnixUsers::Found> known = authenticator_.users().Peek(peer.uid);
  return known.has_value() && !known->ok();
}

bool FrontDoor::Park(const Peer& peer, size_t index, int listener, OwnedFd& fd) {
  if (peer.kind != Peer::Kind::kUnixSocket || !authenticator_.has_rules()) return false;
  UnixUsers& users = authenticator_.users();
  if (peer.uid == kNamelessUid || users.Peek(peer.uid).has_value()) return false;
  if (!parking_->TakePlace(peer.uid)) {
    Note(Turned::kUsers, peer.Name());
    fd.Reset();
    return true;
  }
  auto parked = std::make_shared<Parked>(Parked{index, listener, std::move(fd)});
  users.Await(peer.uid, [parking = parking_, parked, uid = peer.uid] {
    absl::MutexLock lock(&parking->mutex);
    parking->LeavePlace(uid);
    parking->ready.push_back(std::move(*parked));
    eventfd_write(parking->wake.get(), 1);
  });
  return true;
}

void FrontDoor::TakeInParked() {
  std::vector<Parked> ready;
  {
    absl::MutexLock lock(&parking_->mutex);
    ready.swap(parking_->ready);
  }
  if (!accepts_) return;
  for (Parked& each : ready) TakeIn(each.index, each.listener, std::move(each.fd));
}

void FrontDoor::TendUsers() {
  std::vector<uid_t> users = authenticator_.MungeUsers();
  if (!authenticator_.has_rules() && users.empty()) return;
  const std::vector<uid_t> connected = table_.Users();
  users.insert(users.end(), connected.begin(), connected.end());
  authenticator_.users().Tend(users);
}

void FrontDoor::Admit(const std::string& grpc_peer) {
  if (const auto peer = ParseGrpcPeer(grpc_peer); peer.has_value()) table_.Admit(*peer);
}

void FrontDoor::SpareProbe(const std::string& grpc_peer) {
  if (const auto peer = ParseGrpcPeer(grpc_peer); peer.has_value()) table_.SpareProbe(*peer);
}

uint64_t FrontDoor::Claim(int slot) { return table_.Claim(slot, Now()); }

void FrontDoor::CutForCalls(const std::string& grpc_peer, uint64_t number, int slot) {
  if (const auto peer = ParseGrpcPeer(grpc_peer); peer.has_value()) {
    table_.Cut(*peer);
    return NoteCutForCalls(*peer);
  }
  if (number != 0) {
    const std::optional<Peer> peer = table_.CutNumber(number);
    if (peer.has_value()) NoteCutForCalls(*peer);
    return;
  }
  for (const Peer& peer : table_.CutUnclaimed(slot)) NoteCutForCalls(peer);
}

void FrontDoor::NoteCutForCalls(const Peer& peer) {
  pacer_.NoteCut(peer.Name(), Now());
  Note(Turned::kCalls, peer.Name());
}

std::array<uint64_t, kTurnedCount> FrontDoor::Turns() const {
  std::array<uint64_t, kTurnedCount> turns{};
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = turns_[i];
  return turns;
}

void FrontDoor::Note(Turned turned, std::string_view name) {
  turns_[static_cast<size_t>(turned)].fetch_add(1);
  uint64_t more = 0;
  {
    absl::MutexLock lock(&log_mutex_);
    if (Now() - last_log_ < kLogPeriod) {
      ++unlogged_;
      return;
    }
    last_log_ = Now();
    more = std::exchange(unlogged_, 0);
  }
  if (more == 0) {
    spdlog::warn("connection from {}: {}", name, Describe(turned));
  } else {
    spdlog::warn("connection from {}: {}; {} more were refused or cut since the last such line",
                 name, Describe(turned), more);
  }
}

}  // namespace h5mirror::server
