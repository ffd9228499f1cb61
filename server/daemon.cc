#include "server/daemon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/human.h"
#include "base/memory_group.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/version.h"
#include "onion_store/store.h"
#include "server/door/front_door.h"
#include "server/mirror_server.h"
#include "server/open_archive.h"
#include "server/open_cluster.h"
#include "server/root_env.h"
#include "server/settings/logging.h"
#include "server/settings/memory.h"
#include "server/settings/secret_file.h"
#include "server/state/store_watch.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// The time that a store has to close, where a worker hangs past stop_timeout. With stop_timeout it
// is below the TimeoutStopSec= of the unit.
constexpr absl::Duration kCloseGrace = absl::Seconds(10);

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

ExitCode CodeOfStoreError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kNoRoot;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kRootReadOnly;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kRootInUse;
    default:
      return ExitCode::kFailed;
  }
}

// The way out of an error of the root: the end of its message.
std::string_view WayOut(ExitCode code, const absl::Status& error) {
  if (code == ExitCode::kNoRoot) return "; make that directory, or set another root";
  if (code != ExitCode::kRootReadOnly) return "";
  return absl::EndsWith(error.message(), strerror(EROFS))
             ? "; mount it for writing, or set another root"
             : "; give it to the user that h5mirrord runs as";
}

// Another server may have the root already. So nothing is finished, given back or waited for.
[[noreturn]] void StopFenced(const std::string& why) {
  spdlog::critical("fenced: {}. Nothing that was acked is lost. Stopping at once", why);
  spdlog::default_logger_raw()->flush();
  sd_notify(0, "STOPPING=1\nSTATUS=fenced off from the root");
  _Exit(static_cast<int>(ExitCode::kFenced));
}

// Other servers have taken over, or are about to.
[[noreturn]] void StopGivenUp(const absl::Status& why) {
  spdlog::critical("given up: {}. Nothing that was acked is lost. Stopping at once",
                   ToStd(why.message()));
  spdlog::default_logger_raw()->flush();
  sd_notify(0, "STOPPING=1\nSTATUS=the cluster has gone on without this server");
  _Exit(static_cast<int>(ExitCode::kGivenUp));
}

ExitCode CodeOfRootError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    default:
      return CodeOfStoreError(status);
  }
}

store::StoreOptions OptionsFor(const Config& config) {
  store::StoreOptions options;
  options.root = config.root;
  options.memory_max_bytes = ShareMemory(config.memory_max_bytes).store_bytes;
  options.page_size_bytes = config.page_size_bytes;
  options.page_compression = config.page_compression;
  options.durable_every = config.durable_every;
  options.snapshot_max_bytes = config.snapshot_max_bytes;
  options.umask_bits = config.umask_bits;
  options.group = config.group;
  options.owner_of_heads = config.owner_of_heads;
  options.background_threads = config.background_threads;
  return options;
}

absl::Status WritePortFile(const std::filesystem::path& path, const Config& config,
                           const MirrorServer& server) {
  if (path.empty()) return absl::OkStatus();
  std::string lines;
  for (size_t i = 0; i < config.listen.size(); ++i) {
    const bool is_unix = config.listen[i].reach == Reach::kUnixSocket;
    StrAppend(&lines, is_unix ? server.addresses()[i] : StrCat(server.ports()[i]), "\n");
  }
  for (size_t i = 0; i < config.http_listen.size(); ++i) {
    const bool is_unix = config.http_listen[i].reach == Reach::kUnixSocket;
    StrAppend(&lines,
              "http:", is_unix ? server.http_addresses()[i] : StrCat(server.http_ports()[i]), "\n");
  }
  return ReplaceSecretFile(path, lines);
}

// Half of systemd's WatchdogSec; a minute if it does not watch.
absl::Duration WatchdogPeriod() {
  uint64_t watchdog_us = 0;
  if (sd_watchdog_enabled(0, &watchdog_us) <= 0) return absl::Minutes(1);
  return absl::Microseconds(static_cast<int64_t>(watchdog_us / 2));
}

struct Tables {
  std::vector<AccessRule> access;
  std::vector<LimitRule> limits;
  std::vector<QuotaRule> quotas;
  std::vector<NotifyRule> notify;
};

absl::StatusOr<Tables> ReadTables(const Config& config, const std::filesystem::path& config_file) {
  H5M_ASSIGN_OR_RETURN(const std::vector<Setting> settings, ReadConfigFile(config_file));
  Tables tables;
  H5M_ASSIGN_OR_RETURN(tables.access, MakeAccessRules(settings));
  H5M_ASSIGN_OR_RETURN(tables.limits, MakeLimitRules(settings));
  H5M_ASSIGN_OR_RETURN(tables.quotas, MakeQuotaRules(settings));
  if (config.cluster) {
    H5M_RETURN_IF_ERROR(CheckWithinCells(tables.quotas, config.cluster->cells));
  }
  H5M_ASSIGN_OR_RETURN(tables.notify, MakeNotifyRules(settings));
  return tables;
}

// The tables of the configuration file that count at once, which alone of all it has are read
// again. Logs errors. Where one table cannot be read, all stay.
absl::Status ReloadTables(const Config& config, const std::filesystem::path& config_file,
                          MirrorServer& server) {
  if (config_file.empty()) return absl::OkStatus();
  absl::StatusOr<Tables> tables = ReadTables(config, config_file);
  if (!tables.ok()) {
    spdlog::error("reload: the tables of the configuration stay as they were: {}",
                  tables.status().ToString());
    return tables.status();
  }
  server.ReloadLimits(std::move(tables->limits));
  server.ReloadQuotas(std::move(tables->quotas));
  const absl::Status access = server.ReloadRules(std::move(tables->access));
  if (!access.ok()) {
    spdlog::error("reload: the [[access]] tables stay as they were: {}", access.ToString());
  }
  const absl::Status notify = server.ReloadNotify(std::move(tables->notify));
  if (!notify.ok()) {
    spdlog::error("reload: the [[notify]] tables stay as they were: {}", notify.ToString());
  }
  return access.ok() ? notify : access;
}

void Reload(const Config& config, const std::filesystem::path& config_file, MirrorServer& server) {
  if (const absl::Status status = ReopenLog(config); !status.ok()) {
    spdlog::error("reload: {}", status.ToString());
  }
  server.ReopenAudit();
  const absl::Status certificate = server.ReloadCertificate();
  const absl::Status tokens = server.ReloadTokens();
  if (!tokens.ok()) {
    spdlog::error("reload: the tokens stay as they were: {}", tokens.ToString());
  }
  const absl::Status logins = server.ReloadLogins();
  const absl::Status tables = ReloadTables(config, config_file, server);
  if (certificate.ok() && tokens.ok() && logins.ok() && tables.ok()) {
    spdlog::info("reloaded log{}{}{}{}", config.tls_cert.empty() ? "" : ", certificate",
                 config_file.empty() ? "" : ", tables",
                 config.HasLogins() ? ", keys of signed tokens" : "",
                 config.HasTokens()   ? ", tokens"
                 : config.HasLogins() ? ""
                                      : "; there is no tokens_file, so no token is asked for");
  }
}

// Until a signal says to stop. Returns it.
int WaitForStop(const Config& config, const std::filesystem::path& config_file,
                MirrorServer& server) {
  const sigset_t signals = OurSignals();
  const timespec period = absl::ToTimespec(WatchdogPeriod());
  for (;;) {
    sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", server.Summary().c_str());
    const int number = sigtimedwait(&signals, nullptr, &period);
    if (number == SIGHUP) Reload(config, config_file, server);
    if (number == SIGTERM || number == SIGINT) return number;
  }
}

// For a stop that was not done in time. A destructor would wait for what hangs.
[[noreturn]] void StopEarly() {
  spdlog::default_logger_raw()->flush();
  _Exit(static_cast<int>(ExitCode::kStoppedEarly));
}

// A second signal ends the process where it stands: cuts that were acked durable are durable. Also
// keeps systemd's watchdog quiet while the work in hand is finished.
void StopAtOnceOnSignal() {
  std::thread([] {
    pthread_setname_np(pthread_self(), "h5m-stopping");
    const sigset_t signals = OurSignals();
    const timespec period = absl::ToTimespec(WatchdogPeriod());
    for (;;) {
      sd_notify(0, "WATCHDOG=1");
      const int number = sigtimedwait(&signals, nullptr, &period);
      if (number != SIGTERM && number != SIGINT) continue;
      spdlog::warn("a second signal: stopping at once");
      StopEarly();
    }
  }).detach();
}

// The store may wait for a file that a hanging worker holds, or for the archive.
void StopEarlyAfter(absl::Duration patience) {
  std::thread([patience] {
    pthread_setname_np(pthread_self(), "h5m-stop-early");
    absl::SleepFor(patience);
    spdlog::warn("the store does not close either, the next start finishes its work");
    StopEarly();
  }).detach();
}

// A call that hangs in the archive cannot be interrupted, and neither can its waiters. So this
// bounds the whole stop, up to the end of the process.
void BoundStop(const Config& config, absl::Duration grace) {
  if (config.HasArchive()) StopEarlyAfter(config.stop_timeout + grace);
}

// Ends all calls. False: not within stop_timeout.
bool StopServing(const Config& config, MirrorServer& server) {
  const absl::Status served = server.Stop(config.stop_timeout);
  if (!served.ok()) {
    spdlog::warn("stop_timeout = {} has passed: {}; stopping without them",
                 HumanDuration(config.stop_timeout), ToStd(served.message()));
    StopEarlyAfter(kCloseGrace);
  }
  return served.ok();
}

// For the rest of stop_timeout, which began at `begun_at`.
absl::Duration RestOfStop(const Config& config, absl::Duration begun_at) {
  return std::max(begun_at + config.stop_timeout - SystemClock().Monotonic(), absl::Seconds(1));
}

ExitCode StopAll(const Config& config, MirrorServer& server, store::Store& store) {
  BoundStop(config, kCloseGrace);
  const absl::Duration begun_at = SystemClock().Monotonic();
  const bool is_served = StopServing(config, server);
  const absl::Duration left = RestOfStop(config, begun_at);
  const absl::Status status = store.Close(left);
  LogNotices(store);
  if (!status.ok()) {
    spdlog::warn("stopped before the work in hand was done, the next start finishes it: {}",
                 status.ToString());
  }
  if (!is_served) StopEarly();
  if (!status.ok()) return ExitCode::kStoppedEarly;
  spdlog::info("stopped");
  return ExitCode::kOk;
}

// The cells go to other servers, in order: when no call is in hand, each store is closed, and only
// then its cell is free. Where that fails, the process ends as it is, and the others fence it.
ExitCode StopAll(const Config& config, MirrorServer& server, Cluster& cluster) {
  // For the stores, and for the cells.
  BoundStop(config, 2 * kCloseGrace);
  const absl::Duration begun_at = SystemClock().Monotonic();
  if (!StopServing(config, server)) StopEarly();
  const absl::Status closed = cluster.store().Close(RestOfStop(config, begun_at));
  LogNotices(cluster.store());
  if (!closed.ok()) {
    spdlog::warn("stopped before the work in hand was done, the next owner finishes it: {}",
                 closed.ToString());
    StopEarly();
  }
  // A short stop_timeout is for calls: the registry has to be asked a few times in any case.
  const absl::Duration left = std::max(RestOfStop(config, begun_at), kCloseGrace);
  if (const absl::Status drained = cluster.Drain(left); !drained.ok()) {
    spdlog::warn("stopped before the cells were given away, other servers take them: {}",
                 ToStd(drained.message()));
    StopEarly();
  }
  spdlog::info("stopped");
  return ExitCode::kOk;
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = OurSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // Else nobody could say how a command has ended.
  signal(SIGXFSZ, SIG_IGN);  // A write beyond `ulimit -f` fails then, and ends its session only.
}

namespace {

void LogStart(const Config& config, const MirrorServer& server) {
  std::string addresses;
  for (const std::string& address : server.addresses()) {
    StrAppend(&addresses, addresses.empty() ? "" : ", ", address);
  }
  for (const std::string& address : server.http_addresses()) {
    StrAppend(&addresses, ", HTTP on ", address);
  }
  const bool wants_tokens = config.HasTokens() || config.HasLogins() || config.HasMunge();
  spdlog::info("h5mirrord {} serves {} on {}{}{}", kVersion, config.root.string(), addresses,
               config.HasTls() ? ", TLS" : "",
               config.access.empty() ? (wants_tokens ? ", tokens wanted" : "")
               : wants_tokens        ? ", tokens or users wanted, access by tables"
                                     : ", access by tables");
  for (const std::string& warning : WarningsOf(config)) spdlog::warn("{}", warning);
  const uint64_t memory = config.memory_max_bytes;  // And a quarter more, of what it cannot count.
  if (const auto warning =
          MemoryLimitWarning("memory_max", memory, memory / 4 * 5, MemoryLimitOfGroup())) {
    spdlog::warn("{}", *warning);
  }
}

// A server that listens, or the exit code of the failure, which is logged.
absl::StatusOr<std::unique_ptr<MirrorServer>> Listen(const Config& config, store::Store& store,
                                                     Clock& clock, Env& env,
                                                     archive::RootArchive* archive,
                                                     const std::filesystem::path& port_file,
                                                     ExitCode* code) {
  auto server = MirrorServer::Start(config, store, clock, env, archive);
  if (!server.ok()) {
    spdlog::error("{}", ToStd(server.status().message()));
    *code = absl::IsUnavailable(server.status()) ? ExitCode::kCannotListen : ExitCode::kUsage;
    return server;
  }
  if (const absl::Status status = WritePortFile(port_file, config, **server); !status.ok()) {
    spdlog::error("--port-file: {}", ToStd(status.message()));
    *code = ExitCode::kUsage;
    return status;
  }
  LogStart(config, **server);
  return server;
}

void WaitAndTell(const Config& config, const std::filesystem::path& config_file,
                 MirrorServer& server) {
  sd_notify(0, "READY=1");
  const int number = WaitForStop(config, config_file, server);
  sd_notify(0, "STOPPING=1\nSTATUS=finishing the work in hand");
  spdlog::info("signal {}: finishing the work in hand, at most {}", number,
               HumanDuration(config.stop_timeout));
  StopAtOnceOnSignal();
}

// One server, and one store.
ExitCode ServeRoot(const Config& config, const std::filesystem::path& port_file,
                   const std::filesystem::path& config_file) {
  auto root = RootEnv::Open(config, StopFenced);
  if (!root.ok()) {
    spdlog::error("{}", ToStd(root.status().message()));
    return CodeOfRootError(root.status());
  }
  const auto archive = OpenArchive(config, root->env());
  if (!archive.ok()) {
    spdlog::error("{}", ToStd(archive.status().message()));
    return CodeOfRootError(archive.status());
  }
  store::StoreOptions options = OptionsFor(config);
  options.archive = *archive;
  auto store = store::Store::Open(root->env(), options);
  if (!store.ok()) {
    const ExitCode code = CodeOfStoreError(store.status());
    spdlog::error("root = \"{}\": {}{}", config.root.string(), ToStd(store.status().message()),
                  WayOut(code, store.status()));
    return code;
  }
  StoreClock clock(**store);
  ExitCode code = ExitCode::kFailed;
  auto server = Listen(config, **store, clock, root->env(), archive->get(), port_file, &code);
  if (!server.ok()) return code;
  if (!root->SessionName().empty()) spdlog::info("CephFS: {}", root->SessionName());
  WaitAndTell(config, config_file, **server);
  return StopAll(config, **server, **store);
}

// One server of a cluster. It answers from the start: that another server has the file, or that it
// has joined none yet.
ExitCode ServeCells(const Config& config, const std::filesystem::path& port_file,
                    const std::filesystem::path& config_file) {
  const auto archive = OpenClusterArchive(config);
  if (!archive.ok()) {
    spdlog::error("{}", ToStd(archive.status().message()));
    return ExitCode::kUsage;
  }
  auto cluster = OpenCluster(config, OptionsFor(config), *archive, StopFenced, StopGivenUp);
  if (!cluster.ok()) {
    spdlog::error("{}", ToStd(cluster.status().message()));
    return absl::IsUnavailable(cluster.status()) ? ExitCode::kFailed : ExitCode::kUsage;
  }
  StoreClock clock((*cluster)->store());
  ExitCode code = ExitCode::kFailed;
  auto server =
      Listen(config, (*cluster)->store(), clock, Env::Posix(), archive->get(), port_file, &code);
  if (!server.ok()) return code;
  const std::string& address = config.cluster->address;
  const std::string http = HttpAddress(config, (*server)->http_ports());
  (*cluster)->Start(address.empty() ? (*server)->addresses().front() : address, http);
  if (config.HasHttp()) {
    spdlog::info("cluster: HTTP of this server is {}",
                 http.empty() ? "not told to the others: set http_address" : http);
  }
  WaitAndTell(config, config_file, **server);
  return StopAll(config, **server, **cluster);
}

}  // namespace

ExitCode RunDaemon(const Config& config, const std::filesystem::path& port_file,
                   const std::filesystem::path& config_file) {
  if (const absl::Status status = StartLogging(config); !status.ok()) {
    spdlog::error("{}", ToStd(status.message()));
    return ExitCode::kUsage;
  }
  if (const absl::Status status = CheckNamedThings(config); !status.ok()) {
    spdlog::error("{}", ToStd(status.message()));
    return ExitCode::kUsage;
  }
  RaiseDescriptorLimit();
  return config.cluster.has_value() ? ServeCells(config, port_file, config_file)
                                    : ServeRoot(config, port_file, config_file);
}

}  // namespace h5mirror::server
