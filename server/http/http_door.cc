#include "server/http/http_door.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/server_address.h"
#include "server/http/request_parts.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// A request line, its headers, and those of the answer share this much of a connection. A signed
// token has 16 KiB at most.
constexpr size_t kConnectionBytes = 32 << 10;
// A connection on which nothing comes or goes for so long is closed, unless a worker is at it.
constexpr unsigned kIdleSeconds = 60;
// Of a query. Each takes some 60 bytes of the connection's memory.
constexpr int kArgumentsMax = 100;
constexpr int kThreadsMax = 4;
// With more, the oldest one's connections end.
constexpr size_t kDaemonsMax = 4;
constexpr char kPriorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

std::string TooManyArguments() {
  const std::string body =
      StrCat(R"({"error":{"code":"INVALID_ARGUMENT","message":"a query has at most )",
             kArgumentsMax, R"( arguments"}})");
  return StrCat("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json",
                "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

unsigned ThreadCount() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp(cores / 2, 2, kThreadsMax));
}

ConnectionLimits HttpLimits(const Config& config) {
  ConnectionLimits limits = LimitsFor(config);
  limits.connections = std::max(limits.connections / 2, 16);
  limits.newcomers = std::max(limits.newcomers / 2, 4);
  return limits;
}

MHD_Result QueueNow(MHD_Connection* connection, HttpAnswer answer) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      answer.text.size(), answer.text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  MHD_add_response_header(response, "Connection", "close");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

struct HttpDoor::Daemon {
  ~Daemon() { StopLibrary(); }
  void StopLibrary() {
    for (MHD_Daemon* const each : threads) MHD_stop_daemon(each);
    threads.clear();
  }
  unsigned connection_count() const {
    unsigned count = 0;
    for (MHD_Daemon* const each : threads) {
      const auto* info = MHD_get_daemon_info(each, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
      if (info != nullptr) count += info->num_connections;
    }
    return count;
  }

  HttpDoor* door = nullptr;
  KeyAndCertificate pair;  // empty: no TLS
  std::string authority;   // PEM
  std::atomic<bool> stopping{false};
  // The library's own pool chooses a thread by the number of the descriptor. Those of the front
  // door's connections are all even, or all odd.
  std::vector<MHD_Daemon*> threads;
  size_t next = 0;  // of `threads`
};

struct HttpDoor::Callbacks {
  static MHD_Result OnRequest(void* daemon, MHD_Connection* connection, const char* url,
                              const char* method, const char*, const char*, size_t* upload_size,
                              void** holder) {
    *upload_size = 0;
    Daemon& self = *static_cast<Daemon*>(daemon);
    return self.door->OnRequest(self, connection, url, method, holder) == MHD_YES ? MHD_YES
                                                                                  : MHD_NO;
  }

  static void OnCompleted(void* daemon, MHD_Connection*, void** holder,
                          MHD_RequestTerminationCode why) {
    const std::unique_ptr<std::shared_ptr<Exchange>> exchange(
        static_cast<std::shared_ptr<Exchange>*>(std::exchange(*holder, nullptr)));
    if (exchange == nullptr) return;
    (*exchange)->Finish(why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    static_cast<Daemon*>(daemon)->door->Remove(exchange->get());
  }

  // The table of the front door has a second descriptor, so a close alone would end nothing.
  static void OnConnection(void*, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) shutdown(DescriptorOf(connection), SHUT_RDWR);
  }

  // Arguments take the memory of a connection, and the library does not answer when it has none
  // left. So a connection with too many is cut. It gets an answer before that: the library has sent
  // the answers to earlier requests by now.
  static void* OnUri(void*, const char* uri, MHD_Connection* connection) {
    const std::string_view text = uri;
    if (std::count(text.begin(), text.end(), '&') < kArgumentsMax) return nullptr;
    SendNow(connection, TooManyArguments());
    shutdown(DescriptorOf(connection), SHUT_RDWR);
    return nullptr;
  }

  // The path comes as it was sent: an encoded '@' belongs to a name.
  static size_t OnUnescape(void*, MHD_Connection*, char* text) { return strlen(text); }
};

HttpDoor::HttpDoor(const Config& config, const ServiceEnvironment& environment,
                   ServerCertificate* certificate, const ClientCertificates* clients,
                   Exchange::Handler handler)
    : config_(config),
      environment_(environment),
      certificate_(certificate),
      clients_(clients),
      handler_(std::move(handler)) {}

absl::StatusOr<std::unique_ptr<HttpDoor>> HttpDoor::Open(const Config& config,
                                                         const ServiceEnvironment& environment,
                                                         ServerCertificate* certificate,
                                                         const ClientCertificates* clients,
                                                         Exchange::Handler handler) {
  auto door =
      absl::WrapUnique(new HttpDoor(config, environment, certificate, clients, std::move(handler)));
  H5M_ASSIGN_OR_RETURN(door->door_,
                       FrontDoor::Open(DoorSettings{.addresses = config.http_listen,
                                                    .socket_mode_bits = config.socket_mode_bits,
                                                    .group = config.group,
                                                    .limits = HttpLimits(config),
                                                    .thread_name = "h5m-http-door"},
                                       environment.authenticator));
  for (size_t i = 0; i < config.http_listen.size(); ++i) {
    door->ports_.push_back(door->door_->port(i));
    door->addresses_.push_back(config.http_listen[i].WithPort(door->ports_[i]));
  }
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<Daemon> daemon, door->StartDaemon());
  absl::MutexLock lock(&door->daemons_mutex_);
  door->daemons_.push_back(std::move(daemon));
  return door;
}

absl::StatusOr<std::unique_ptr<HttpDoor::Daemon>> HttpDoor::StartDaemon() {
  auto daemon = std::make_unique<Daemon>();
  daemon->door = this;
  unsigned flags =
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  std::vector<MHD_OptionItem> tls;
  if (certificate_ != nullptr) {
    flags |= MHD_USE_TLS;
    daemon->pair = certificate_->current();
    tls.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, daemon->pair.key_pem.data()});
    tls.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, daemon->pair.certificate_pem.data()});
    tls.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kPriorities)});
    if (clients_ != nullptr) {
      daemon->authority = clients_->authority_pem();
      tls.push_back({MHD_OPTION_HTTPS_MEM_TRUST, 0, daemon->authority.data()});
    }
  }
  tls.push_back({MHD_OPTION_END, 0, nullptr});
  // The front door keeps the limit; the library has room for connections that are just ending.
  const auto connections = static_cast<unsigned>(2 * HttpLimits(config_).connections + 64);
  const unsigned count = ThreadCount();
  while (daemon->threads.size() < count) {
    MHD_Daemon* const thread =
        MHD_start_daemon(flags, 0, nullptr, nullptr, &Callbacks::OnRequest, daemon.get(),  //
                         MHD_OPTION_CONNECTION_LIMIT, connections,                         //
                         MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,                      //
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,             //
                         MHD_OPTION_STRICT_FOR_CLIENT, 1,                                  //
                         MHD_OPTION_URI_LOG_CALLBACK, &Callbacks::OnUri, nullptr,          //
                         MHD_OPTION_UNESCAPE_CALLBACK, &Callbacks::OnUnescape, nullptr,    //
                         MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::OnCompleted, daemon.get(),
                         MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::OnConnection, nullptr,  //
                         MHD_OPTION_ARRAY, tls.data(), MHD_OPTION_END);
    if (thread == nullptr) {
      return absl::InternalError(
          "http_listen: libmicrohttpd did not start; with tls_cert, use a pair that GnuTLS can "
          "read");
    }
    daemon->threads.push_back(thread);
  }
  return daemon;
}

HttpDoor::~HttpDoor() {
  BeginStop();
  AwaitEnd(absl::InfiniteDuration()).IgnoreError();  // Without a limit there is none.
}

void HttpDoor::Start() {
  door_->SetReceiver([this](OwnedFd fd) { TakeIn(std::move(fd)); });
  door_->Start();
}

void HttpDoor::BeginStop() {
  if (stopping_.exchange(true)) return;
  if (door_ != nullptr) door_->StopAccepting();  // null: Open() has failed.
  std::list<std::unique_ptr<Daemon>> daemons;
  {
    absl::MutexLock lock(&daemons_mutex_);
    daemons.swap(daemons_);
  }
  for (const std::unique_ptr<Daemon>& daemon : daemons) StopDaemon(*daemon);
}

absl::Status HttpDoor::AwaitEnd(absl::Duration timeout) {
  const size_t left = alive_->AwaitNone(timeout);
  if (left == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(
      StrCat("requests of HTTP still wait for a disk that does not answer: ", left));
}

void HttpDoor::StopDaemon(Daemon& daemon) {
  daemon.stopping = true;
  // The library aborts the process if a connection is suspended now. An exchange that has ended
  // suspends none, and one that begins now sees `stopping`.
  const absl::Status why = absl::UnavailableError("the server stops, or renews its certificate");
  for (const std::shared_ptr<Exchange>& exchange : Running(&daemon)) exchange->End(why);
  daemon.StopLibrary();
}

void HttpDoor::TakeIn(OwnedFd fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getpeername(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    shutdown(fd.get(), SHUT_RDWR);
    return;
  }
  // A program may pause between two reads of a body. The library ends what stands still for long.
  const unsigned patience_ms = kIdleSeconds * 1000;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
  const OwnedFd second(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  absl::MutexLock lock(&daemons_mutex_);
  bool is_taken = false;
  if (!daemons_.empty()) {
    Daemon& newest = *daemons_.back();
    MHD_Daemon* const thread = newest.threads[newest.next++ % newest.threads.size()];
    // Takes the descriptor, also where it fails.
    is_taken = MHD_add_connection(thread, fd.Release(), reinterpret_cast<const sockaddr*>(&name),
                                  length) == MHD_YES;
  }
  if (!is_taken && second.valid()) shutdown(second.get(), SHUT_RDWR);
}

void HttpDoor::RenewDaemon() {
  if (certificate_ == nullptr || stopping_) return;
  const KeyAndCertificate pair = certificate_->current();
  const std::string authority = clients_ == nullptr ? "" : clients_->authority_pem();
  if (refused_ == StrCat(pair.certificate_pem, authority)) return;
  {
    absl::MutexLock lock(&daemons_mutex_);
    if (daemons_.empty()) return;
    const Daemon& newest = *daemons_.back();
    if (newest.pair.certificate_pem == pair.certificate_pem &&
        newest.pair.key_pem == pair.key_pem && newest.authority == authority) {
      return;
    }
  }
  absl::StatusOr<std::unique_ptr<Daemon>> renewed = StartDaemon();
  if (!renewed.ok()) {
    refused_ = StrCat(pair.certificate_pem, authority);
    spdlog::error("the certificate of HTTP stays: {}", renewed.status().ToString());
    return;
  }
  std::list<std::unique_ptr<Daemon>> retired;
  {
    absl::MutexLock lock(&daemons_mutex_);
    daemons_.push_back(*std::move(renewed));
    if (daemons_.size() > kDaemonsMax) retired.splice(retired.end(), daemons_, daemons_.begin());
  }
  for (const std::unique_ptr<Daemon>& daemon : retired) StopDaemon(*daemon);
}

void HttpDoor::DropIdleDaemons() {
  std::list<std::unique_ptr<Daemon>> idle;
  {
    absl::MutexLock lock(&daemons_mutex_);
    while (daemons_.size() > 1 && daemons_.front()->connection_count() == 0) {
      idle.splice(idle.end(), daemons_, daemons_.begin());
    }
  }
  for (const std::unique_ptr<Daemon>& daemon : idle) StopDaemon(*daemon);
}

void HttpDoor::OnTimer() {
  const bool is_slow_round = ++rounds_ % kRenewRounds == 0;
  for (const std::shared_ptr<Exchange>& exchange : Running(nullptr)) {
    exchange->OnTimer();
    if (is_slow_round) exchange->EndIfGone();
  }
  if (!is_slow_round) return;
  // In this order: the library may not have counted the last connection of one that was the newest.
  DropIdleDaemons();
  RenewDaemon();
}

int HttpDoor::OnRequest(Daemon& daemon, MHD_Connection* connection, const char* url,
                        const char* method, void** holder) {
  if (*holder == nullptr) {
    const std::string_view name = method;
    if (name != "GET" && name != "HEAD") {
      HttpAnswer answer =
          ErrorAnswer(405, absl::UnimplementedError("only GET and HEAD are served here"));
      answer.headers.emplace_back("Allow", "GET, HEAD");
      return QueueNow(connection, std::move(answer));
    }
    if (RepeatsAHeader(connection)) {
      return QueueNow(
          connection,
          ErrorAnswer(400, absl::InvalidArgumentError("a header that counts once comes twice")));
    }
    if (HasBody(connection)) {
      return QueueNow(connection,
                      ErrorAnswer(413, absl::InvalidArgumentError("a request here has no body")));
    }
    auto exchange = std::make_shared<Exchange>(LiveCount::Hold(alive_), environment_, connection,
                                               DescriptorOf(connection));
    Add(exchange, &daemon);
    *holder = new std::shared_ptr<Exchange>(std::move(exchange));
    return MHD_YES;
  }
  const std::shared_ptr<Exchange>& exchange = *static_cast<std::shared_ptr<Exchange>*>(*holder);
  if (daemon.stopping) return MHD_NO;
  if (exchange->has_started()) return exchange->Answer() ? MHD_YES : MHD_NO;
  return Begin(exchange, connection, url, method);
}

int HttpDoor::Begin(const std::shared_ptr<Exchange>& exchange, MHD_Connection* connection,
                    const char* url, const char* method) {
  const int fd = DescriptorOf(connection);
  std::optional<Peer> peer = PeerOf(fd);
  if (!peer) return MHD_NO;
  Target target = TargetOf(url);
  if (!IsForUs(HeaderOf(connection, "Host"), *peer) || !IsForUs(target.authority, *peer)) {
    return QueueNow(connection, ErrorAnswer(421, absl::PermissionDeniedError(
                                                     "this server has no such host name: ask for "
                                                     "localhost, or have it want tokens")));
  }
  // As the front door does. Otherwise each uid without a name would count as another user.
  if (peer->kind == Peer::Kind::kUnixSocket && environment_.authenticator.has_rules()) {
    const auto known = environment_.authenticator.users().Peek(peer->uid);
    if (known && !known->ok()) peer->uid = kNamelessUid;
  }
  HttpIdentity identity{.authorization = HeaderOf(connection, "Authorization"),
                        .peer = *peer,
                        .connection_key = StrCat("http ", GrpcPeerText(*peer), " ", peer->Name()),
                        .certificates = CertificatesOf(connection)};
  auto source = std::make_shared<const HttpCallSource>(
      std::move(identity), clients_,
      [door = door_, text = GrpcPeerText(*peer)] { door->Admit(text); },
      [weak = exchange->weak_from_this()] {
        if (const auto self = weak.lock(); self != nullptr) self->Cut();
      });
  HttpRequest request{.path = std::move(target.path),
                      .query = QueryOf(connection),
                      .is_head = std::string_view(method) == "HEAD",
                      .is_tls = certificate_ != nullptr,
                      .range = HeaderOf(connection, "Range"),
                      .last_event_id = HeaderOf(connection, "Last-Event-ID"),
                      .conditions = ConditionsOf(connection),
                      .source = source};
  return exchange->Start(std::move(request), std::move(source), handler_) ? MHD_YES : MHD_NO;
}

// Without tokens, a page of another site could make a browser of this host read files, by a name
// that it lets point here.
bool HttpDoor::IsForUs(const std::optional<std::string>& host, const Peer& peer) const {
  const bool is_open = !environment_.authenticator.wants_tokens() && clients_ == nullptr;
  if (!is_open || peer.kind == Peer::Kind::kUnixSocket) return true;
  return !host || rpc::IsLoopback(WithoutPort(*host));
}

void HttpDoor::Add(const std::shared_ptr<Exchange>& exchange, const Daemon* daemon) {
  absl::MutexLock lock(&mutex_);
  running_[exchange.get()] = {exchange, daemon};
}

void HttpDoor::Remove(const Exchange* exchange) {
  absl::MutexLock lock(&mutex_);
  running_.erase(exchange);
}

std::vector<std::shared_ptr<Exchange>> HttpDoor::Running(const Daemon* daemon) {
  std::vector<std::shared_ptr<Exchange>> running;
  absl::MutexLock lock(&mutex_);
  for (const auto& [address, each] : running_) {
    if (daemon != nullptr && each.daemon != daemon) continue;
    if (auto exchange = each.exchange.lock(); exchange != nullptr) {
      running.push_back(std::move(exchange));
    }
  }
  return running;
}

}  // namespace h5mirror::server
