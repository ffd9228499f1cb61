#include "server/mirror_server.h"

#include <grp.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "grpc/grpc.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "rpc/channel.h"
#include "server/door/receive_windows.h"
#include "server/metrics/archive_gauges.h"
#include "server/settings/memory.h"
#include "server/state/root_hint.h"
#include "server/state/store_watch.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// Below the root; where the history lies beside the file, without a root, nothing is kept.
constexpr char kMirrorStates[] = ".h5mirror/mirror-states";
constexpr size_t kMirrorStatesBytesMax = 128 << 20;
constexpr absl::Duration kTimerPeriod = absl::Milliseconds(250);
constexpr int kQueueThreadsMax = 4;
// Threads of the unary calls, which may wait for a disk.
constexpr int kCallThreadsMax = 256;
// Memory of gRPC for a call that waits for a thread; 12 KiB are those of a half-open one.
constexpr uint64_t kMemoryPerWaitingCall = uint64_t{32} << 10;
// A client may open some hundred files at once, with any memory_max.
constexpr uint64_t kWaitingCallsMin = 1024;
constexpr int kReadChunkBytes = 4 << 10;
// How often a renewed certificate is looked for, in rounds of the timer.
constexpr int kCertificateRounds = 240;
// The same for changed keys of signed tokens.
constexpr int kLoginKeyRounds = 12;
// Of all calls that read and send: a disk has so many reads at once, and a writer that waits for
// one keeps those that open its file.
constexpr int kWorkers = 32;
// Threads of gRPC's that short calls leave to health checks and to gRPC itself.
constexpr int kSpareThreads = 40;

// While one thread writes a frame to disk, gRPC's own threads read the next from the socket: a
// thread for each core would be one too many.
int QueueCount(const Config& config) {
  if (config.queue_threads > 0) return config.queue_threads;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, kQueueThreadsMax);
}

// nullptr: clients are asked for no certificate.
absl::StatusOr<std::unique_ptr<ClientCertificates>> LoadClientCertificates(const Config& config) {
  if (!config.HasClientCertificates()) return nullptr;
  ClientCertificateSettings settings{config.tls_client_ca, config.tls_client_crl, {}};
  for (const std::string& text : config.tls_client_names) {
    H5M_ASSIGN_OR_RETURN(NamePattern pattern, NamePattern::Parse(text));
    settings.names.push_back(std::move(pattern));
  }
  if (settings.names.empty()) settings.names.push_back({});  // cn:${user}
  return ClientCertificates::Load(settings);
}

// nullptr: no TLS.
absl::StatusOr<std::unique_ptr<ServerCertificate>> LoadCertificate(
    const Config& config, const ClientCertificates* clients) {
  if (!config.HasTls()) return nullptr;
  return ServerCertificate::Load(config.tls_cert, config.tls_key, clients);
}

// nullptr: tokens of no issuer count.
absl::StatusOr<std::unique_ptr<JsonWebTokens>> LoadLogins(const Config& config) {
  if (!config.HasLogins()) return nullptr;
  return JsonWebTokens::Load({.keys = config.jwt_keys,
                              .issuer = config.jwt_issuer,
                              .audience = config.jwt_audience,
                              .user_claim = config.jwt_user_claim,
                              .groups_claim = config.jwt_groups_claim,
                              .grace = config.jwt_grace});
}

// nullptr: credentials of munge do not count. munged need not run yet.
absl::StatusOr<std::unique_ptr<MungeCredentials>> LoadMunge(const Config& config) {
  if (!config.HasMunge()) return nullptr;
  H5M_RETURN_IF_ERROR(CheckMungeLibrary());
  return std::make_unique<MungeCredentials>(
      [socket = config.munge_socket.native()](const std::string& credential) {
        return DecodeMunge(socket, credential);
      });
}

std::vector<std::string> ServiceNames() {
  return {"h5mirror.v1.Mirror",    "h5mirror.v1.Files",  "h5mirror.v1.Versions",
          "h5mirror.v1.Snapshots", "h5mirror.v1.Server", "h5mirror.v1.Agents",
          "h5mirror.v1.Cluster",   "h5mirror.v1.Archive"};
}

// Calls of one connection at once. A client has one stream for each open file on its connection,
// and as many other calls as it has threads.
int StreamsMax(const Config& config) { return 2 * std::max(config.max_sessions, 1024); }

CallLimits CallLimitsFor(const Config& config) {
  CallLimits limits;
  limits.waiting = StreamsMax(config);
  limits.waiting_in_all =
      static_cast<int>(std::clamp<uint64_t>(config.memory_max_bytes / 8 / kMemoryPerWaitingCall,
                                            kWaitingCallsMin, std::numeric_limits<int>::max()));
  limits.held = static_cast<size_t>(limits.waiting_in_all) / 4;
  limits.held_of_caller = limits.held / 2;
  return limits;
}

absl::StatusOr<std::unique_ptr<Authenticator>> LoadAuthenticator(const Config& config) {
  std::unique_ptr<Authenticator> authenticator;
  if (config.HasTokens()) {
    H5M_ASSIGN_OR_RETURN(authenticator, Authenticator::Load(config.tokens_file));
  } else {
    authenticator = std::make_unique<Authenticator>();
  }
  authenticator->SetRules(config.access);
  return authenticator;
}

Event NearItsQuota(const SpaceUse& use) {
  return {
      .kind = EventKind::kQuotaNear,
      .file = use.directory,
      .text = StrCat("\"", use.directory, "\" takes ", use.FullestPercent(), "% of a limit of its ",
                     use.rule.Label(), ": ", HumanBytes(use.sizes.head_bytes), " of heads, ",
                     HumanBytes(use.sizes.history_bytes), " of history, ", use.files, " files",
                     use.rule.archived_bytes == 0
                         ? ""
                         : StrCat(", ", HumanBytes(use.sizes.archived_bytes), " in the archive"),
                     use.rule.max_tags > 0 ? StrCat(", ", use.sizes.tags, " tags") : ""),
      .numbers = {{"percent", use.FullestPercent()},
                  {"head_bytes", static_cast<int64_t>(use.sizes.head_bytes)},
                  {"history_bytes", static_cast<int64_t>(use.sizes.history_bytes)},
                  {"archived_bytes", static_cast<int64_t>(use.sizes.archived_bytes)},
                  {"files", static_cast<int64_t>(use.files)},
                  {"tags", static_cast<int64_t>(use.sizes.tags)}}};
}

void SampleArchive(const ArchiveKeeper& keeper) {
  if (keeper.archive() == nullptr) return;
  const archive::ArchiveStanding standing = keeper.archive()->Standing();
  const ArchiveCounts counts = keeper.Counts();
  const bool has_answered = standing.last_success != absl::InfinitePast();
  ArchiveGauges::Get().Set(
      {.archived_bytes = counts.archived_bytes,
       .freed_bytes = counts.freed_bytes,
       .got_bytes = standing.got_bytes,
       .failed_calls = standing.failed_calls,
       .is_failing = !standing.error.empty(),
       .last_success_seconds =
           has_answered ? absl::ToDoubleSeconds(standing.last_success - absl::UnixEpoch()) : 0});
}

// The last server of a process would end gRPC with it, and wait up to ten seconds for gRPC's backup
// poller (tcp_posix.cc), which the callback API brings in. What is left ends with the process.
void KeepGrpc() {
  static const bool is_kept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(is_kept);
}

// Credentials that are missing, or that others can read.
absl::Status CheckArchiveKeys(const Config& config) {
  if (!config.HasArchive()) return absl::OkStatus();
  const absl::Status opened =
      archive::RootArchive::Open(Env::Posix(), {.url = config.archive}).status();
  if (opened.ok()) return opened;
  return absl::Status(opened.code(),
                      StrCat("archive = \"", config.archive, "\": ", ToStd(opened.message())));
}

}  // namespace

absl::Status CheckNamedThings(const Config& config) {
  if (!config.group.empty() && getgrnam(config.group.c_str()) == nullptr) {
    return absl::InvalidArgumentError(StrCat("group = \"", config.group,
                                             "\": this host has no such group; `groupadd ",
                                             config.group, "` makes it"));
  }
  H5M_ASSIGN_OR_RETURN(const auto clients, LoadClientCertificates(config));
  H5M_RETURN_IF_ERROR(LoadCertificate(config, clients.get()).status());
  H5M_RETURN_IF_ERROR(LoadLogins(config).status());
  H5M_RETURN_IF_ERROR(LoadMunge(config).status());
  H5M_RETURN_IF_ERROR(CheckSecrets(config.notify));
  H5M_RETURN_IF_ERROR(CheckArchiveKeys(config));
  return LoadAuthenticator(config).status();
}

absl::StatusOr<MirrorServer::Identity> MirrorServer::Identity::Load(const Config& config) {
  Identity identity;
  H5M_ASSIGN_OR_RETURN(identity.clients, LoadClientCertificates(config));
  H5M_ASSIGN_OR_RETURN(identity.certificate, LoadCertificate(config, identity.clients.get()));
  if (identity.certificate) identity.certificate->WarnIfOthersReadKey();
  H5M_ASSIGN_OR_RETURN(identity.authenticator, LoadAuthenticator(config));
  identity.authenticator->SetCertificates(identity.clients.get());
  H5M_ASSIGN_OR_RETURN(identity.logins, LoadLogins(config));
  identity.authenticator->SetLogins(identity.logins.get());
  H5M_ASSIGN_OR_RETURN(identity.munge, LoadMunge(config));
  identity.authenticator->SetMunge(identity.munge.get());
  if (!config.audit_log.empty()) {
    H5M_ASSIGN_OR_RETURN(identity.audit, AuditLog::Open(config.audit_log));
  }
  return identity;
}

absl::StatusOr<std::unique_ptr<MirrorServer>> MirrorServer::Start(const Config& config,
                                                                  store::Store& store, Clock& clock,
                                                                  Env& env,
                                                                  archive::RootArchive* archive) {
  H5M_ASSIGN_OR_RETURN(Identity identity, Identity::Load(config));
  H5M_ASSIGN_OR_RETURN(auto notifier, Notifier::Open(config.notify, clock));
  auto server = absl::WrapUnique(new MirrorServer(config, store, clock, env, std::move(identity),
                                                  std::move(notifier), archive));
  if (!config.metrics_listen.empty()) {
    H5M_RETURN_IF_ERROR(server->shared_.metrics.Serve(config.metrics_listen));
  }
  H5M_RETURN_IF_ERROR(server->Listen());
  return server;
}

MirrorServer::MirrorServer(const Config& config, store::Store& store, Clock& clock, Env& env,
                           Identity identity, std::unique_ptr<Notifier> notifier,
                           archive::RootArchive* archive)
    : config_(config),
      env_(env),
      identity_(std::move(identity)),
      notifier_(std::move(notifier)),
      shared_(config, store, clock, identity_, *notifier_, archive),
      services_(config, shared_, [this](const grpc::ServerContextBase& context) {
        entrance_.gate->ProbeBegun(context);
      }) {
  ListenToCluster();
  // A server of a cluster writes nothing outside of its cells.
  if (config_.cluster.has_value()) return;
  const absl::StatusOr<std::string> kept =
      ReadRootHint(env_, config_.root, kMirrorStates, kMirrorStatesBytesMax);
  if (kept.ok()) shared_.mirrors.Restore(*kept);
}

MirrorServer::Shared::Shared(const Config& config, store::Store& its_store, Clock& its_clock,
                             Identity& identity, EventSink& its_events,
                             archive::RootArchive* archive)
    : store(its_store),
      clock(its_clock),
      events(its_events),
      authenticator(*identity.authenticator),
      limits(clock),
      callers(authenticator, clock,
              CallCapacity::Of(config.memory_max_bytes, config.max_sessions,
                               kCallThreadsMax - kSpareThreads, config.caller_share_percent),
              identity.audit.get(), &limits),
      cuts(clock),
      metrics(config.memory_max_bytes),
      leases(clock, config.lease_ttl),
      quotas(config.quotas, store),
      pruner(config, store, clock, metrics, &quotas, &events),
      archive_keeper(config, store, archive, clock, &quotas.counter, &events),
      mirrors(clock),
      rates(clock),
      workers(kWorkers, "send stream") {
  callers.SetLimits(config.limits);
  authenticator.SetOwners([this](std::string_view file) { return store.OwnerOf(file); });
  store.SetOwnerListener([this](const std::string& file) { callers.LookAgainAt(file); });
  quotas.ledger.SetNearListener([this](const SpaceUse& use) { events.Notify(NearItsQuota(use)); });
}

ServiceEnvironment MirrorServer::Shared::Environment() {
  return {.store = store,
          .leases = leases,
          .clock = clock,
          .metrics = metrics,
          .authenticator = authenticator,
          .commits = commits,
          .pruner = pruner,
          .mirrors = mirrors,
          .quotas = quotas,
          .callers = &callers,
          .workers = &workers,
          .cuts = &cuts,
          .limits = &limits,
          .events = &events,
          .rates = &rates};
}

MirrorServer::Services::Services(const Config& config, Shared& shared,
                                 HealthService::Observer on_probe)
    : mirror({.store = shared.store,
              .leases = shared.leases,
              .clock = shared.clock,
              .metrics = shared.metrics,
              .memory = shared.memory,
              .commits = shared.commits,
              .pruner = &shared.pruner,
              .mirrors = &shared.mirrors,
              .rates = &shared.rates,
              .events = &shared.events,
              .authenticator = &shared.authenticator,
              .quotas = &shared.quotas},
             shared.callers),
      files(shared.Environment(), config.removed_keep),
      versions(shared.Environment()),
      snapshots(shared.Environment(), config.snapshot_keep, config.tick_len),
      server(shared.Environment(), {.root = config.root.string(),
                                    .memory_max_bytes = config.memory_max_bytes,
                                    .start_time = shared.clock.Now(),
                                    .session_count = [this] { return mirror.session_count(); }}),
      agents(shared.Environment()),
      cluster(shared.Environment()),
      archive(shared.Environment(), shared.archive_keeper, FindArchive(shared)),
      health(ServiceNames(), std::move(on_probe)),
      reflection(ServiceNames(), shared.authenticator),
      http_files(shared.Environment(), versions, snapshots, OwnershipOf(shared.store)),
      http_json(shared.Environment(), files, versions, OwnershipOf(shared.store)),
      http(http_files, http_json) {}

MirrorServer::~MirrorServer() {
  LeaveCluster();
  // The workers of a stop that fails use what this is about to destroy.
  while (!Stop(absl::Seconds(5)).ok()) {
  }
}

absl::Status MirrorServer::ReloadTokens() {
  H5M_RETURN_IF_ERROR(shared_.authenticator.Reload());
  shared_.callers.EndRevoked();
  return absl::OkStatus();
}

absl::Status MirrorServer::ReloadRules(std::vector<AccessRule> rules) {
  if (rules.empty() && shared_.authenticator.has_rules()) {
    return absl::FailedPreconditionError(
        "the configuration has no [[access]] table any more, and without one everybody may do "
        "all: restart the server, if that is meant");
  }
  shared_.authenticator.SetRules(std::move(rules));
  shared_.authenticator.users().AskAllAgain();  // Callers::OnTimer() sees what has changed.
  shared_.callers.EndRevoked();
  return absl::OkStatus();
}

void MirrorServer::EndOfTakenKeys(const absl::StatusOr<bool>& changed) {
  if (changed.ok() && *changed) shared_.callers.EndRevoked("keys of tokens changed");
}

absl::Status MirrorServer::ReloadLogins() {
  if (identity_.logins == nullptr) return absl::OkStatus();
  const absl::StatusOr<bool> changed = identity_.logins->Reload();
  EndOfTakenKeys(changed);
  return changed.status();
}

void MirrorServer::ReloadLimits(std::vector<LimitRule> rules) {
  shared_.callers.SetLimits(std::move(rules));
}

absl::Status MirrorServer::ReloadNotify(std::vector<NotifyRule> rules) {
  return notifier_->Reload(std::move(rules));
}

void MirrorServer::ReopenAudit() {
  if (identity_.audit != nullptr) identity_.audit->Reopen();
}

absl::Status MirrorServer::ReloadCertificate() {
  absl::Status clients;
  if (identity_.clients != nullptr) {
    clients = identity_.clients->Reload();
    if (!clients.ok()) spdlog::error("certificates of clients stay: {}", clients.ToString());
    // Revoked ones end.
    shared_.callers.EndRevoked("revoked certificates");
  }
  if (identity_.certificate == nullptr) return clients;
  const absl::Status own = identity_.certificate->Reload();
  return own.ok() ? clients : own;
}

void MirrorServer::ConfigureBuilder(grpc::ServerBuilder& builder) const {
  const MemoryShares shares = ShareMemory(config_.memory_max_bytes);
  builder.SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(rpc::kMaxMessageBytes);
  builder.SetResourceQuota(
      grpc::ResourceQuota("h5mirrord").Resize(shares.grpc_bytes).SetMaxThreads(kCallThreadsMax));
  // A stream's window bounds the memory that a client can make us hold. The connection's grows
  // beyond the message in hand only by probing: see receive_windows.h.
  const bool probe = config_.ProbesWindows() && BoundProbedWindows(shares.window_bytes);
  if (config_.ProbesWindows() && !probe) {
    spdlog::warn("window_probe is off: gRPC {} has no bound for probed windows", grpc::Version());
  }
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, probe ? 1 : 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, shares.lookahead_bytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, rpc::kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  // What is read at once is parsed at once, and headers of 16 bytes make calls of 10 KiB. A frame
  // that is larger is still read as a whole ("tcp_frame_size_tuning", main.cc).
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadChunkBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, StreamsMax(config_));
  // The door cuts a connection without a token before, and says so.
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(config_.token_timeout + absl::Seconds(5))));
  // A client's machine that vanished is noticed; clients that look for us are not cut off.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 4);
}

std::shared_ptr<grpc::ServerCredentials> MirrorServer::PortCredentials(int slot) {
  grpc_server_credentials* const credentials = identity_.certificate == nullptr
                                                   ? grpc_insecure_server_credentials_create()
                                                   : identity_.certificate->MakePortCredentials();
  return GatedCredentials(credentials, entrance_.gate, slot);
}

absl::Status MirrorServer::Listen() {
  KeepGrpc();
  grpc::ServerBuilder builder;
  ConfigureBuilder(builder);
  H5M_ASSIGN_OR_RETURN(entrance_.door, FrontDoor::Open(config_, shared_.authenticator));
  entrance_.gate =
      std::make_shared<CallGate>(shared_.authenticator, *entrance_.door, CallLimitsFor(config_));
  shared_.authenticator.set_gate(entrance_.gate.get());
  for (size_t i = 0; i < config_.listen.size(); ++i) {
    for (int slot = 0; slot < entrance_.door->SlotCount(i); ++slot) {
      entrance_.door->Attach(
          i, slot,
          builder.experimental().AddExternalConnectionAcceptor(
              grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
              PortCredentials(FrontDoor::SlotOf(i, slot))));
    }
    entrance_.ports.push_back(entrance_.door->port(i));
    entrance_.addresses.push_back(config_.listen[i].WithPort(entrance_.ports[i]));
  }
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &services_.mirror, &services_.files, &services_.versions, &services_.snapshots,
           &services_.server, &services_.agents, &services_.cluster, &services_.archive,
           &services_.health}) {
    builder.RegisterService(service);
  }
  if (config_.reflection) builder.RegisterService(&services_.reflection);
  services_.mirror.AddQueues(builder, QueueCount(config_));
  if (config_.HasHttp()) {
    H5M_ASSIGN_OR_RETURN(entrance_.http,
                         HttpDoor::Open(config_, shared_.Environment(), identity_.certificate.get(),
                                        identity_.clients.get(), [this](HttpRequest& request) {
                                          return services_.http.Answer(request);
                                        }));
  }
  entrance_.server = builder.BuildAndStart();
  if (entrance_.server == nullptr) return absl::InternalError("gRPC's server does not start");
  shared_.quotas.counter.Start();
  shared_.pruner.Start();
  shared_.archive_keeper.Start();
  services_.mirror.Start();
  services_.health.StartServing();
  entrance_.door->Start();
  if (entrance_.http != nullptr) entrance_.http->Start();
  timer_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-timer");
    RunTimer();
  });
  return absl::OkStatus();
}

// Not synced: a power loss leaves an older one, or none.
void MirrorServer::KeepMirrorStates() {
  if (config_.cluster.has_value()) return;
  const std::optional<std::string> news = shared_.mirrors.TakeNews();
  if (!news) return;
  const absl::Status kept = ReplaceRootHint(env_, config_.root, kMirrorStates, *news);
  if (!kept.ok() && !absl::IsNotFound(kept)) {
    spdlog::warn("mirror states are lost at the next restart: {}", kept.ToString());
  }
}

void MirrorServer::SampleMetrics() {
  shared_.metrics.mirrors().Set(shared_.mirrors.Sum());
  shared_.metrics.notify().Set(notifier_->Counts());
  DoorSample door{entrance_.door->Counts(), entrance_.door->Turns(),
                  entrance_.gate->refused_calls()};
  if (entrance_.http != nullptr) door += entrance_.http->Sample();
  shared_.metrics.door().Set(door);
  if (shared_.limits.is_on()) {
    const LimitCounts reached = shared_.limits.Counts();
    for (size_t i = 0; i < reached.size(); ++i) {
      shared_.metrics.SetLimitsReached(NameOf(static_cast<LimitKind>(i)), reached[i]);
    }
  }
  SampleCluster();
  StoreGauges::Get().Sample(shared_.store);
  SampleArchive(shared_.archive_keeper);
  shared_.metrics.Sample({ResidentBytes(), shared_.store.memory_used_bytes(),
                          shared_.store.FreeDiskBytes().value_or(0), shared_.clock.Now()});
}

void MirrorServer::RunTimer() {
  for (int round = 0;; ++round) {
    // A sleep, as a wait for `mutex_` is until a time of day, which may be set back by hours.
    absl::SleepFor(kTimerPeriod);
    {
      absl::MutexLock lock(&mutex_);
      if (timer_stopping_) return;
    }
    services_.mirror.OnTimer();
    services_.versions.OnTimer();
    services_.snapshots.OnTimer();
    shared_.callers.OnTimer();
    if (identity_.logins != nullptr && round % kLoginKeyRounds == 0) {
      EndOfTakenKeys(identity_.logins->ReloadIfChanged());
    }
    entrance_.gate->OnTimer();
    if (entrance_.http != nullptr) entrance_.http->OnTimer();
    if (round % kCertificateRounds == kCertificateRounds - 1) {
      ReloadCertificate().IgnoreError();  // Logged.
    }
    if (round % 4 == 0) {
      entrance_.door->TendUsers();
      if (entrance_.http != nullptr) entrance_.http->TendUsers();
      KeepMirrorStates();
      SampleMetrics();
    }
  }
}

std::vector<std::string> MirrorServer::http_addresses() const {
  return entrance_.http == nullptr ? std::vector<std::string>() : entrance_.http->addresses();
}

std::vector<int> MirrorServer::http_ports() const {
  return entrance_.http == nullptr ? std::vector<int>() : entrance_.http->ports();
}

std::string MirrorServer::Summary() const {
  return StrCat(services_.mirror.session_count(), " sessions, ", HumanBytes(ResidentBytes()),
                " of ", HumanBytes(config_.memory_max_bytes), " memory, ",
                HumanBytes(shared_.store.FreeDiskBytes().value_or(0)), " of disk free");
}

}  // namespace h5mirror::server
