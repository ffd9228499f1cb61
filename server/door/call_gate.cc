#include "server/door/call_gate.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/strings.h"
#include "grpc/grpc.h"
#include "grpc/slice.h"

namespace h5mirror::server {
namespace {

// Marks gRPC's context of a connection with our number of it.
constexpr char kProperty[] = "h5mirror_connection";
// The same with the user of a Unix socket.
constexpr char kUserProperty[] = "h5mirror_uid";
// This many calls a second of an admitted connection may end before they reach our code: a client
// gives up a call that a busy server has not begun. Other connections get no such allowance, or
// half-open calls would add up.
constexpr double kForgivenPerSecond = 1;
constexpr double kRefusalsForgivenPerSecond = 64;
// After so long without a call a connection is taken to have ended; longer, where it left calls
// behind.
constexpr absl::Duration kForgetAfter = absl::Minutes(1);
constexpr absl::Duration kForgetWaitingAfter = absl::Minutes(10);
constexpr absl::Duration kForgetPeriod = absl::Seconds(10);
// A client that waits for one call before the next makes one or two a second then, in place of
// thousands.
constexpr absl::Duration kHoldBack = absl::Milliseconds(400);
constexpr size_t kBrakedMax = 4096;

absl::Duration Now() {
  static SystemClock clock;
  return clock.Monotonic();
}

std::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

absl::Status Stopping() {
  return absl::UnavailableError("the server is stopping; safe to retry once it runs again");
}

// The context that gRPC hands back with each call.
struct Passage {
  std::shared_ptr<CallGate> gate;
  int slot = 0;
};

// gRPC's callback: one for each call.
void ProcessHeaders(void* state, grpc_auth_context* context, const grpc_metadata* headers,
                    size_t count, grpc_process_auth_metadata_done_cb done, void* user_data) {
  const Passage& passage = *static_cast<Passage*>(state);
  CallGate::Arrival arrival{*context, passage.slot};
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = TextOf(headers[i].key), value = TextOf(headers[i].value);
    if (key == "authorization") arrival.authorization = value;
    if (key == ":path") {
      arrival.method = value.substr(value.rfind('/') + 1);
      arrival.is_probe = value.starts_with("/grpc.health.v1.Health/");
    }
  }
  // gRPC keeps the call until it was told, also when its client has gone.
  passage.gate->Enter(arrival, [done, user_data](const absl::Status& status) {
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         status.ok() ? nullptr : std::string(status.message()).c_str());
  });
}

void DestroyState(void* state) { delete static_cast<Passage*>(state); }

class Gated final : public grpc::ServerCredentials {
 public:
  Gated(grpc_server_credentials* credentials, Passage passage) : credentials_(credentials) {
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {ProcessHeaders, DestroyState, new Passage(std::move(passage))});
  }
  ~Gated() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

namespace {

// The certificate of a connection, PEM; empty: none was shown.
std::string_view CertificateOf(const grpc_auth_context& connection) {
  grpc_auth_property_iterator properties =
      grpc_auth_context_find_properties_by_name(&connection, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* property = grpc_auth_property_iterator_next(&properties);
  if (property == nullptr) return {};
  return {property->value, property->value_length};
}

}  // namespace

void CallGate::Wait(Connection& connection, double more) {
  const double before = connection.waiting;
  connection.waiting = std::max(before + more, 0.0);
  waiting_in_all_ += connection.waiting - before;
}

void CallGate::Settle(Connection& connection, absl::Duration now) {
  const double seconds = absl::ToDoubleSeconds(now - connection.last);
  connection.last = now;
  if (connection.is_admitted) Wait(connection, -kForgivenPerSecond * seconds);
  connection.refused = std::max(connection.refused - kRefusalsForgivenPerSecond * seconds, 0.0);
}

void CallGate::ForgetIdle(absl::Duration now) {
  if (now - last_forget_ < kForgetPeriod) return;
  last_forget_ = now;
  for (auto each = connections_.begin(); each != connections_.end();) {
    const bool waits = each->second.waiting >= limits_.waiting_without_token;
    if (now - each->second.last < (waits ? kForgetWaitingAfter : kForgetAfter)) {
      ++each;
      continue;
    }
    Wait(each->second, -each->second.waiting);
    connections_.erase(each++);
  }
  for (auto each = braked_.begin(); each != braked_.end();) {
    const bool is_idle = each->second.held == 0 && now - each->second.last >= kForgetAfter;
    const auto it = each++;
    if (is_idle) braked_.erase(it);
  }
}

CallGate::Connection& CallGate::ConnectionOf(grpc_auth_context& connection, int slot,
                                             absl::Duration now) {
  grpc_auth_property_iterator properties =
      grpc_auth_context_find_properties_by_name(&connection, kProperty);
  const grpc_auth_property* property = grpc_auth_property_iterator_next(&properties);
  std::string number;
  uint64_t claimed = 0;
  if (property != nullptr) {
    number.assign(property->value, property->value_length);
  } else {
    number = StrCat(++last_number_);
    claimed = door_->Claim(slot);
    grpc_auth_context_add_property(&connection, kProperty, number.data(), number.size());
    if (const std::optional<uid_t> user = door_->UserOf(slot); user.has_value()) {
      const std::string uid = StrCat(*user);
      grpc_auth_context_add_property(&connection, kUserProperty, uid.data(), uid.size());
    }
  }
  const auto [found, is_new] = connections_.try_emplace(number);
  if (is_new) {
    found->second.last = now;
    found->second.own_number = std::move(number);
    found->second.number = claimed;
    found->second.slot = slot;
  }
  return found->second;
}

std::optional<uid_t> UserOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return std::nullopt;
  const std::vector<grpc::string_ref> values = auth->FindPropertyValues(kUserProperty);
  uid_t uid = 0;
  if (values.empty() ||
      !absl::SimpleAtoi(absl::string_view(values[0].data(), values[0].size()), &uid)) {
    return std::nullopt;
  }
  return uid;
}

std::string_view CertificateOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return {};
  const std::vector<grpc::string_ref> values =
      auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return values.empty() ? std::string_view() : std::string_view(values[0].data(), values[0].size());
}

std::string ConnectionKey(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return context.peer();
  const std::vector<grpc::string_ref> values = auth->FindPropertyValues(kProperty);
  return values.empty() ? context.peer() : std::string(values[0].data(), values[0].size());
}

CallGate::Connection* CallGate::Find(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return nullptr;
  const std::vector<grpc::string_ref> values = auth->FindPropertyValues(kProperty);
  if (values.empty()) return nullptr;
  const auto found = connections_.find(std::string(values[0].data(), values[0].size()));
  return found == connections_.end() ? nullptr : &found->second;
}

absl::Status CallGate::Refuse(Connection& connection, absl::Status why) {
  ++refused_calls_;
  ++connection.refused;
  const int allowed = connection.is_admitted ? limits_.refused : limits_.refused_without_token;
  if (connection.refused > allowed && !std::exchange(connection.is_cut, true)) {
    door_->CutForCalls(connection.grpc_peer, connection.number, connection.slot);
  }
  return why;
}

bool CallGate::is_full() const { return waiting_in_all_ >= limits_.waiting_in_all; }

bool CallGate::HasManyWaiting(const Connection& from) const {
  return from.waiting >= limits_.waiting_without_token;
}

std::optional<CallGate::Question> CallGate::QuestionFor(const Connection& from, Ask ask) {
  const bool is_crowded = HasManyWaiting(from) || (is_full() && !from.is_admitted);
  if (!is_crowded && ask == Ask::kIfCrowded) return std::nullopt;
  ++questions_;
  return Question{authenticator_, door_->UserOf(from.slot), from.grpc_peer};
}

uint64_t CallGate::CallerKey(std::string_view connection_number,
                             std::optional<std::string_view> authorization) const {
  if (authorization.has_value() && authenticator_->LooksAt(*authorization)) {
    // A user of munge makes a new credential every now and then.
    if (const auto user = authenticator_->MungeUser(*authorization); user.has_value()) {
      return absl::HashOf('m', *user);
    }
    // In any spelling of the scheme.
    return absl::HashOf('t', authorization->substr(authorization->rfind(' ') + 1));
  }
  return absl::HashOf('c', connection_number);
}

std::optional<absl::Status> CallGate::AskBrake(Connection& from, const Arrival& arrival,
                                               Tell& tell) {
  // The first call of a connection goes by: it shows the door that the caller is known.
  if (!from.is_admitted || arrival.is_probe) return absl::OkStatus();
  const uint64_t key = CallerKey(from.own_number, arrival.authorization);
  const auto found = braked_.find(key);
  if (found == braked_.end()) return absl::OkStatus();
  CallBrake::Answer answer = found->second.brake->Ask(arrival.method);
  if (answer.why.ok()) return absl::OkStatus();
  found->second.last = from.last;
  const bool has_room = held_.size() < limits_.held && found->second.held < limits_.held_of_caller;
  if (!answer.is_late) return std::move(answer.why);
  if (!has_room) return Refuse(from, std::move(answer.why));
  ++found->second.held;
  held_.push_back({from.last + kHoldBack, key, std::move(answer.why), std::move(tell)});
  return std::nullopt;
}

std::optional<absl::Status> CallGate::Book(Connection& from, const Arrival& arrival, Tell& tell) {
  if (from.waiting >= limits_.waiting || (HasManyWaiting(from) && is_full())) {
    return Refuse(from, absl::ResourceExhaustedError(
                            StrCat("this connection has ", static_cast<int64_t>(from.waiting),
                                   " calls that have not begun: wait for some of them first")));
  }
  if (!braked_.empty()) {
    std::optional<absl::Status> asked = AskBrake(from, arrival, tell);
    if (!asked.has_value() || !asked->ok()) return asked;
  }
  Wait(from, 1);
  return absl::OkStatus();
}

std::optional<absl::Status> CallGate::Pass(const Arrival& arrival, Tell& tell, Ask ask) {
  std::optional<Question> question;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return Stopping();
    const absl::Duration now = Now();
    ForgetIdle(now);
    Connection& from = ConnectionOf(arrival.connection, arrival.slot, now);
    Settle(from, now);
    question = QuestionFor(from, ask);
    if (!question) return Book(from, arrival, tell);
  }
  // Before a connection's first call has begun, its peer is not known.
  const CallerOrigin origin{.uid = question->uid,
                            .grpc_peer = question->grpc_peer,
                            .certificate_pem = CertificateOf(arrival.connection),
                            .is_peer_known = !question->grpc_peer.empty()};
  absl::Status known =
      question->authenticator->Authenticate(arrival.authorization, origin).status();
  absl::MutexLock lock(&mutex_);
  --questions_;
  if (is_stopping_) return Stopping();
  // The connection may have been forgotten meanwhile; then it begins anew.
  Connection& from = ConnectionOf(arrival.connection, arrival.slot, Now());
  if (!known.ok()) return Refuse(from, std::move(known));
  return Book(from, arrival, tell);
}

bool CallGate::Park(const Arrival& arrival, Tell& tell) {
  const Authenticator* authenticator = nullptr;
  uint64_t number = 0;
  std::string authorization;  // A call that was told has none any more.
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_ || arrival.is_probe) return false;
    if (authenticator_->KnowsCaller(arrival.authorization)) return false;
    const auto of_connection = std::count_if(parked_.begin(), parked_.end(), [&](const auto& each) {
      return each.second.connection == &arrival.connection;
    });
    // Without a place, Authenticate() answers that munged has not answered yet.
    if (parked_.size() >= limits_.parked ||
        static_cast<size_t>(of_connection) >= limits_.parked_of_connection) {
      return false;
    }
    authenticator = authenticator_;
    ++questions_;
    number = ++last_parked_;
    authorization.assign(*arrival.authorization);
    parked_.emplace(number, Parked{Now() + limits_.parked_max, &arrival.connection, arrival.slot,
                                   authorization, std::string(arrival.method), std::move(tell)});
  }
  authenticator->AwaitCaller(authorization, [gate = weak_from_this(), number] {
    if (const std::shared_ptr<CallGate> self = gate.lock()) self->Resume(number);
  });
  absl::MutexLock lock(&mutex_);
  --questions_;
  return true;
}

void CallGate::Resume(uint64_t number) {
  std::optional<Parked> parked;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = parked_.find(number);
    if (found == parked_.end()) return;
    parked = std::move(found->second);
    parked_.erase(found);
  }
  const Arrival arrival{*parked->connection, parked->slot, parked->authorization, parked->method};
  const std::optional<absl::Status> status = Pass(arrival, parked->tell, Ask::kAlways);
  if (status.has_value()) parked->tell(*status);
}

void CallGate::TellParked(bool all) {
  std::vector<Parked> due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = Now();
    while (!parked_.empty() && (all || parked_.begin()->second.due <= now)) {
      due.push_back(std::move(parked_.begin()->second));
      parked_.erase(parked_.begin());
    }
  }
  const absl::Status why = all ? Stopping()
                               : absl::UnavailableError(
                                     "munged or the name service of the server's host does not "
                                     "answer: try again, or ask the server's operator");
  for (Parked& each : due) each.tell(why);
}

void CallGate::Enter(const Arrival& arrival, Tell tell) {
  if (Park(arrival, tell)) return;
  const std::optional<absl::Status> status = Pass(arrival, tell);
  if (status.has_value()) tell(*status);
}

void CallGate::Brake(const grpc::ServerContextBase& context, std::shared_ptr<CallBrake> brake) {
  const auto& metadata = context.client_metadata();
  const auto header = metadata.find("authorization");
  std::optional<std::string_view> authorization;
  if (header != metadata.end()) authorization = {header->second.data(), header->second.size()};
  absl::MutexLock lock(&mutex_);
  if (closed_ || braked_.size() >= kBrakedMax) return;
  const uint64_t key = CallerKey(ConnectionKey(context), authorization);
  Braked& braked = braked_[key];
  braked.brake = std::move(brake);
  braked.last = Now();
}

void CallGate::OnTimer() {
  std::vector<Held> due;
  bool is_stopping = false;
  {
    absl::MutexLock lock(&mutex_);
    is_stopping = is_stopping_;
    const absl::Duration now = Now();
    while (!held_.empty() && (held_.front().due <= now || is_stopping_)) {
      if (const auto of = braked_.find(held_.front().caller); of != braked_.end()) {
        --of->second.held;
      }
      due.push_back(std::move(held_.front()));
      held_.pop_front();
    }
  }
  for (Held& each : due) each.tell(is_stopping ? Stopping() : each.why);
  TellParked(/*all=*/false);
}

void CallGate::BeginStop() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  OnTimer();
  TellParked(/*all=*/true);
}

CallGate::Connection* CallGate::TakeBegun(const grpc::ServerContextBase& context) {
  Connection* const connection = closed_ ? nullptr : Find(context);
  if (connection == nullptr) return nullptr;
  Wait(*connection, -1);
  if (connection->grpc_peer.empty()) connection->grpc_peer = context.peer();
  return connection;
}

void CallGate::Begun(const grpc::ServerContextBase& context, bool admitted) {
  absl::MutexLock lock(&mutex_);
  Connection* const connection = TakeBegun(context);
  if (connection == nullptr) return;
  if (!admitted || std::exchange(connection->is_admitted, true)) return;
  door_->Admit(connection->grpc_peer);
}

void CallGate::ProbeBegun(const grpc::ServerContextBase& context) {
  absl::MutexLock lock(&mutex_);
  const Connection* const connection = TakeBegun(context);
  if (connection == nullptr) return;
  door_->SpareProbe(connection->grpc_peer);
}

void CallGate::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = is_stopping_ = true;
  braked_.clear();
  const auto is_answered = [this]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return questions_ == 0; };
  mutex_.Await(absl::Condition(&is_answered));
  authenticator_ = nullptr;
  door_ = nullptr;
}

std::shared_ptr<grpc::ServerCredentials> GatedCredentials(grpc_server_credentials* credentials,
                                                          std::shared_ptr<CallGate> gate,
                                                          int slot) {
  return std::make_shared<Gated>(credentials, Passage{std::move(gate), slot});
}

}  // namespace h5mirror::server
