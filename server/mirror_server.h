// Serves a store: the five services, health and, if configured, reflection on all addresses, with
// leases, metrics and a timer. main.cc adds the process around it; tests start it in their own.
#ifndef H5MIRROR_SERVER_MIRROR_SERVER_H_
#define H5MIRROR_SERVER_MIRROR_SERVER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "archive/root_archive.h"
#include "base/env.h"
#include "grpcpp/grpcpp.h"
#include "server/calls/audit_log.h"
#include "server/calls/callers.h"
#include "server/calls/fair_pool.h"
#include "server/cluster/cluster_service.h"
#include "server/door/auth.h"
#include "server/door/call_gate.h"
#include "server/door/client_certificates.h"
#include "server/door/front_door.h"
#include "server/door/json_web_tokens.h"
#include "server/door/munge_credentials.h"
#include "server/door/server_certificate.h"
#include "server/history/archive_keeper.h"
#include "server/history/history_pruner.h"
#include "server/http/file_answers.h"
#include "server/http/http_door.h"
#include "server/http/router.h"
#include "server/live/snapshots_service.h"
#include "server/metrics/metrics.h"
#include "server/mirror/mirror_service.h"
#include "server/notify/notifier.h"
#include "server/quotas/caller_limits.h"
#include "server/quotas/space_quotas.h"
#include "server/services/agents_service.h"
#include "server/services/archive_service.h"
#include "server/services/files_service.h"
#include "server/services/health_service.h"
#include "server/services/reflection_service.h"
#include "server/services/server_service.h"
#include "server/services/versions_service.h"
#include "server/settings/config.h"
#include "server/state/cut_board.h"
#include "server/state/lease_table.h"
#include "server/state/mirror_states.h"
#include "server/state/write_rates.h"

namespace h5mirror::server {

// Thread-safe.
class MirrorServer {
 public:
  // Checks certificate and tokens, then listens and serves. `store`, `clock` and `env`, on which
  // config.root is, and `archive`, the store's, must outlive the server. Without an `archive`
  // nothing is archived. Errors: kInvalidArgument, kNotFound, kPermissionDenied  a certificate, key
  // or tokens file;
  //         kUnavailable  the server cannot listen on an address; the message says why.
  static absl::StatusOr<std::unique_ptr<MirrorServer>> Start(
      const Config& config, store::Store& store, Clock& clock, Env& env = Env::Posix(),
      archive::RootArchive* archive = nullptr);
  // Stops within 5 s, and later only where Stop() fails: then it waits.
  ~MirrorServer();

  // The addresses it listens on, in the order of config.listen, with their real ports.
  const std::vector<std::string>& addresses() const { return entrance_.addresses; }
  const std::vector<int>& ports() const { return entrance_.ports; }
  // The same of config.http_listen.
  std::vector<std::string> http_addresses() const;
  std::vector<int> http_ports() const;
  int metrics_port() const { return shared_.metrics.port(); }

  // Reads the tokens again, and ends the sessions and calls of removed ones. On an error the tokens
  // stay as they were.
  absl::Status ReloadTokens();
  // The [[access]] tables from now on. Ends the sessions and calls that they do not allow.
  // kFailedPrecondition: there are none any more, and the tables stay as they were.
  absl::Status ReloadRules(std::vector<AccessRule> rules);
  // The [[limits]] tables from now on. Running calls go on, and are counted.
  void ReloadLimits(std::vector<LimitRule> rules);
  // The [[quota]] tables from now on. No limit of them holds until all files are counted.
  void ReloadQuotas(std::vector<QuotaRule> rules) {
    shared_.quotas.ledger.SetRules(std::move(rules));
  }
  // The [[notify]] tables from now on. Errors: as Notifier::Reload(); then they stay as they were.
  absl::Status ReloadNotify(std::vector<NotifyRule> rules);
  // Opens the audit log again, after it was renamed.
  void ReopenAudit();
  // Reads the keys of signed tokens again, and ends calls with tokens of keys that have gone.
  // (The server does so within seconds after the file has changed.) On an error, which is logged,
  // the keys stay as they were.
  absl::Status ReloadLogins();
  // Looks for a renewed certificate, authority and revoked certificates now. (The server does so
  // once a minute.) Errors: as ServerCertificate::Reload() and ClientCertificates::Reload().
  absl::Status ReloadCertificate();

  // Takes no new calls, lets barriers in hand become durable, and ends all streams with
  // kUnavailable. Cancels calls that are not done within `timeout`. Clients without a call hold it
  // up for half a second at most.
  // kDeadlineExceeded: workers of HTTP are not done, or a directory of the archive hangs. What
  // writers need is done. The process is to end without the destructor, or to wait in it.
  absl::Status Stop(absl::Duration timeout);

  // Sessions and memory, for the status line of systemd.
  std::string Summary() const;

 private:
  // How callers are known, and remembered.
  struct Identity {
    static absl::StatusOr<Identity> Load(const Config& config);

    std::unique_ptr<ClientCertificates> clients;     // null: clients are asked for no certificate
    std::unique_ptr<ServerCertificate> certificate;  // null: no TLS
    std::unique_ptr<JsonWebTokens> logins;           // null: tokens of no issuer count
    std::unique_ptr<Authenticator> authenticator;
    std::unique_ptr<MungeCredentials> munge;  // null: those of munge do not count; asks the former
    std::unique_ptr<AuditLog> audit;          // null: none is kept
  };

  // Shared by the services; each may use those above it.
  struct Shared {
    Shared(const Config& config, store::Store& store, Clock& clock, Identity& identity,
           EventSink& events, archive::RootArchive* archive);
    ~Shared() { store.SetOwnerListener(nullptr); }
    ServiceEnvironment Environment();

    store::Store& store;
    Clock& clock;
    EventSink& events;
    Authenticator& authenticator;
    CallerLimits limits;
    Callers callers;
    CutBoard cuts;
    Metrics metrics;
    LeaseTable leases;
    SessionMemory memory;
    CommitBoard commits;
    SpaceQuotas quotas;
    HistoryPruner pruner;
    ArchiveKeeper archive_keeper;
    MirrorStates mirrors;
    WriteRates rates;
    FairPool workers;
  };

  // All calls of the wire.
  struct Services {
    Services(const Config& config, Shared& shared, HealthService::Observer on_probe);
    // In a cluster each cell has a part of the archive.
    static ArchiveService::Finder FindArchive(Shared& shared);

    MirrorService mirror;
    FilesService files;
    VersionsService versions;
    SnapshotsService snapshots;
    ServerService server;
    AgentsService agents;
    ClusterService cluster;
    ArchiveService archive;
    HealthService health;
    ReflectionService reflection;
    FileAnswers http_files;
    JsonAnswers http_json;
    Router http;
  };

  // The way in: connections, then calls, then gRPC. All null before Listen().
  struct Entrance {
    std::unique_ptr<FrontDoor> door;
    std::shared_ptr<CallGate> gate;
    std::unique_ptr<grpc::Server> server;
    std::unique_ptr<HttpDoor> http;  // null without http_listen too
    std::vector<std::string> addresses;
    std::vector<int> ports;
  };

  MirrorServer(const Config& config, store::Store& store, Clock& clock, Env& env, Identity identity,
               std::unique_ptr<Notifier> notifier, archive::RootArchive* archive);

  std::shared_ptr<grpc::ServerCredentials> PortCredentials(int slot);
  absl::Status Listen();
  void ConfigureBuilder(grpc::ServerBuilder& builder) const;
  void EndOfTakenKeys(const absl::StatusOr<bool>& changed);
  // What a cluster tells this server: cells that retire, and events. Nothing without one.
  void ListenToCluster();
  void LeaveCluster();
  void SampleCluster();
  void KeepMirrorStates();
  void SampleMetrics();
  void RunTimer();
  // Until all calls have ended, or `end` by the monotonic clock has come.
  void StopCalls(absl::Duration end);
  void StopTimer();

  const Config config_;
  Env& env_;  // of config_.root
  Identity identity_;
  const std::unique_ptr<Notifier> notifier_;
  Shared shared_;
  Services services_;
  Entrance entrance_;
  absl::Mutex mutex_;
  bool timer_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

// Checks the files that a configuration names: certificate and key are a pair, the tokens
// can be read, keys of web hooks are secret, and the group exists. For --check-config, and before
// any file or socket is opened.
absl::Status CheckNamedThings(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_SERVER_H_
