#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

namespace h5mirror::sim {
namespace {

constexpr absl::Duration kLatencyMin = absl::Microseconds(100);
constexpr absl::Duration kLatencyMax = absl::Milliseconds(8);
constexpr absl::Duration kLateMax = absl::Seconds(20);
constexpr absl::Duration kLongWayMax = absl::Seconds(4);
constexpr double kRepeats = 0.1;

std::string BytesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  message.Dump(&slices).IgnoreError();
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// The client's end, as the session has it.
class SimStream final : public vfd::Stream {
 public:
  explicit SimStream(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~SimStream() override {
    connection_->Abandon();
    connection_->Leave();
  }
  void Write(const grpc::ByteBuffer& message, vfd::Last last) override {
    connection_->Write(BytesOf(message), last == vfd::Last::kYes);
  }
  void HalfClose() override { connection_->HalfClose(); }
  void Cancel() override { connection_->Leave(); }
  void Abandon() override { connection_->Abandon(); }

 private:
  const std::shared_ptr<Connection> connection_;
};

}  // namespace

void Pipe::Push(absl::Duration delay, std::function<void()> deliver) {
  absl::Time time = network_.world().Now() + delay;
  if (!queue_.empty()) time = std::max(time, queue_.back().time);
  queue_.push_back({time, std::move(deliver)});
  Pump();
}

void Pipe::Hold(absl::Duration time) {
  for (Item& item : queue_) item.time += time;
}

void Pipe::Pump() {
  if (armed_ || queue_.empty()) return;
  armed_ = true;
  World& world = network_.world();
  const absl::Time time = std::max(queue_.front().time, network_.hole_until());
  world.After(time - world.Now(), [self = shared_from_this(), &world] {
    self->armed_ = false;
    if (self->queue_.empty()) return;
    const bool late = self->queue_.front().time > world.Now();
    if (late || self->network_.in_hole()) return self->Pump();
    const std::function<void()> deliver = std::move(self->queue_.front().deliver);
    self->queue_.pop_front();
    self->Pump();
    deliver();
  });
}

Connection::Connection(Network& network, vfd::StreamOwner* owner)
    : network_(network),
      owner_(owner),
      up_(std::make_shared<Pipe>(network)),
      down_(std::make_shared<Pipe>(network)),
      repeats_(!network.healed() && network.world().Chance(kRepeats)) {}

void Connection::Connect() {
  World& world = network_.world();
  const absl::Duration latency = world.Between(kLatencyMin, kLatencyMax);
  world.After(std::max(latency, network_.hole_until() - world.Now()),
              [self = shared_from_this()] { self->Begun(); });
}

void Connection::Begun() {
  if (left_ || ended_) return;
  if (network_.in_hole()) return Connect();
  if (network_.refuses() || !network_.server().accepts()) {
    return EndClient(absl::UnavailableError("failed to connect: Connection refused"));
  }
  begun_ = true;
  writing_ = false;
  World& world = network_.world();
  const std::weak_ptr<Connection> weak = weak_from_this();
  const auto answer = [weak, &world](std::function<void(Connection&)> deliver) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (self == nullptr || self->ended_ || self->left_) return;
    self->down_->Push(world.Between(kLatencyMin, kLatencyMax), [weak, deliver] {
      const std::shared_ptr<Connection> connection = weak.lock();
      if (connection != nullptr && !connection->ended_ && !connection->left_) deliver(*connection);
    });
  };
  ServerCall::Answers answers;
  answers.response = [answer](const v1::MirrorFileResponse& response) {
    answer([response](Connection& connection) {
      if (connection.owner_ != nullptr) connection.owner_->OnResponse(response);
    });
  };
  answers.ended = [answer](const absl::Status& status) {
    answer([status](Connection& connection) { connection.EndClient(status); });
  };
  // After a power loss no side is told.
  answers.vanished = [weak, &world] {
    const absl::Duration delay = world.Chance(0.3)
                                     ? world.Between(absl::Seconds(6), absl::Seconds(20))
                                     : world.Between(kLatencyMin, absl::Milliseconds(100));
    world.After(delay, [weak] {
      if (const auto self = weak.lock()) self->EndClient(absl::UnavailableError("Socket closed"));
    });
  };
  server_life_ = network_.server().life();
  call_ = ServerCall::Begin(network_.server(), std::move(answers));
  if (half_close_wanted_) HalfClose();
  if (!half_closed_ && owner_ != nullptr) owner_->OnWritable();
}

void Connection::ToServer(std::function<void(ServerCall&)> deliver) {
  up_->Push(network_.world().Between(kLatencyMin, kLatencyMax),
            [self = shared_from_this(), deliver = std::move(deliver)] { deliver(*self->call_); });
}

void Connection::Write(std::string bytes, bool last) {
  if (ended_ || left_ || !begun_) return;
  if (repeats_) sent_.push_back(bytes);
  ToServer([this, bytes = std::move(bytes)](ServerCall& call) {
    delivered_ = true;
    call.OnMessage(bytes);
  });
  if (last) return HalfClose();
  writing_ = true;
  World& world = network_.world();
  absl::Duration delay = world.Between(absl::Microseconds(50), absl::Milliseconds(3));
  // The buffers may be full.
  if (network_.in_hole() && world.Chance(0.5)) delay = network_.hole_until() - world.Now();
  world.After(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Writable();
  });
}

void Connection::Writable() {
  writing_ = false;
  if (half_close_wanted_) HalfClose();
  if (!ended_ && !left_ && !half_closed_ && owner_ != nullptr) owner_->OnWritable();
}

void Connection::HalfClose() {
  if (half_closed_ || ended_ || left_) return;
  if (writing_) {
    half_close_wanted_ = true;
    return;
  }
  half_closed_ = true;
  ToServer([](ServerCall& call) { call.OnHalfClose(); });
}

void Connection::EndClient(const absl::Status& status) {
  if (ended_) return;
  ended_ = true;
  down_->Clear();
  // A stream that never arrived cannot arrive a second time; see LeaveServer().
  if (repeats_ && delivered_ && network_.server().accepts()) {
    network_.world().After(network_.world().Between(kLatencyMin, kLateMax),
                           [self = shared_from_this()] { self->Replay(); });
  }
  if (owner_ != nullptr && !left_) std::exchange(owner_, nullptr)->OnEnded(status);
}

void Connection::Leave() {
  if (left_ || ended_) return;
  left_ = true;
  network_.world().Trace("network: the client leaves a stream");
  // If a process half-closes and ends, its kernel sends the rest.
  if (call_ != nullptr && !half_closed_) {
    LeaveServer(network_.healed() ? Fate::kToldInOrder
                                  : static_cast<Fate>(network_.world().Random(
                                        static_cast<uint64_t>(Fate::kCount))));
  } else if (call_ != nullptr) {
    LeaveServer(Fate::kToldInOrder);
  }
  EndClient(absl::CancelledError("cancelled"));
}

void Connection::LeaveServer(Fate fate) {
  World& world = network_.world();
  // If the server has not heard of a stream, its session may be over before the stream arrives, and
  // another session's work be done: a kernel delays no connection that long.
  if (!delivered_) fate = Fate::kToldAtOnce;
  if (fate == Fate::kToldAtOnce) up_->Clear();
  if (fate == Fate::kNeverTold || fate == Fate::kLateThenTold) {
    up_->Hold(world.Between(absl::ZeroDuration(), kLateMax));
  }
  if (fate != Fate::kNeverTold) return ToServer([](ServerCall& call) { call.OnBroken(); });
  // The time that a server keeps a connection on which nothing comes.
  world.After(absl::Minutes(2), [self = shared_from_this()] { self->call_->OnBroken(); });
}

void Connection::Break() {
  Break(static_cast<Fate>(network_.world().Random(static_cast<uint64_t>(Fate::kCount))));
}

void Connection::TakeTheLongWay() {
  if (!begun_ || ended_ || left_) return;
  World& world = network_.world();
  world.Trace("network: a stream takes the long way");
  const absl::Duration late = world.Between(absl::Milliseconds(20), kLongWayMax);
  up_->Push(late, [] {});  // Later messages wait behind it.
  world.After(world.Between(absl::ZeroDuration(), late), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Break(Fate::kToldInOrder);
  });
}

void Connection::Break(Fate fate) {
  if (!begun_ || ended_ || left_) return;
  World& world = network_.world();
  world.Trace("network: a stream breaks");
  left_ = true;
  LeaveServer(fate);
  world.After(world.Between(kLatencyMin, absl::Milliseconds(100)), [self = shared_from_this()] {
    if (self->ended_) return;
    self->ended_ = true;
    if (self->owner_ != nullptr) {
      std::exchange(self->owner_, nullptr)->OnEnded(absl::UnavailableError("Connection reset"));
    }
  });
}

void Connection::Clear() {
  up_->Clear();
  down_->Clear();
}

// A server that was started since remembers no streams: the network is not that slow.
void Connection::Replay() {
  Server& server = network_.server();
  if (!server.accepts() || server.life() != server_life_ || network_.healed()) return;
  World& world = network_.world();
  world.Trace("network: a stream arrives once more");
  ServerCall::Answers nobody{[](const v1::MirrorFileResponse&) {}, [](const absl::Status&) {},
                             [] {}};
  const auto call = ServerCall::Begin(server, std::move(nobody));
  absl::Duration delay = absl::ZeroDuration();
  for (const std::string& bytes : sent_) {
    delay += world.Between(kLatencyMin, kLatencyMax);
    world.After(delay, [call, bytes] { call->OnMessage(bytes); });
  }
  world.After(delay + absl::Seconds(5), [call] { call->OnBroken(); });
}

std::unique_ptr<vfd::Stream> Network::Open(vfd::StreamOwner* owner) {
  auto connection = std::make_shared<Connection>(*this, owner);
  connections_.push_back(connection);
  connection->Connect();
  return std::make_unique<SimStream>(std::move(connection));
}

std::vector<std::shared_ptr<Connection>> Network::Living() {
  std::vector<std::shared_ptr<Connection>> living;
  std::erase_if(connections_, [&](const std::weak_ptr<Connection>& weak) {
    auto connection = weak.lock();
    if (connection == nullptr) return true;
    if (!connection->ended()) living.push_back(std::move(connection));
    return false;
  });
  return living;
}

void Network::BreakOne() {
  const auto living = Living();
  if (!living.empty()) living[world_.Random(living.size())]->Break();
}

void Network::DelayOne() {
  const auto living = Living();
  if (!living.empty()) living[world_.Random(living.size())]->TakeTheLongWay();
}

void Network::BreakAll() {
  for (const auto& connection : Living()) connection->Break();
}

Network::~Network() {
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->Clear();
  }
}

void Network::Heal() {
  healed_ = true;
  hole_until_ = refused_until_ = absl::InfinitePast();
}

}  // namespace h5mirror::sim
