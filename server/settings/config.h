// The settings of one h5mirrord: read once, wholly checked before any file or socket is
// opened, then constant. A flag wins over the environment, that over the file, that over
// the default. Every key is shown, with unit and default, in deploy/h5mirrord.toml.
#ifndef H5MIRROR_SERVER_SETTINGS_CONFIG_H_
#define H5MIRROR_SERVER_SETTINGS_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/setting_values.h"
#include "onion_store/store.h"
#include "server/settings/access_rules.h"
#include "server/settings/cluster_settings.h"
#include "server/settings/limit_rules.h"
#include "server/settings/listen_address.h"
#include "server/settings/notify_rules.h"
#include "server/settings/quota_rules.h"
#include "server/settings/retention_rules.h"

namespace h5mirror::server {

// Whether the windows of connections follow their measured delay. A fixed window allows 1 MiB in
// flight, which limits a connection from a delay of some 100 us on. Probing costs a tenth where the
// delay is smaller.
enum class WindowProbe {
  kAuto,  // where a listener can be reached from the network
  kOn,
  kOff,
};

// Whether the root may lie on a file system that cannot fence a server that was taken for dead
// (docs/how-to/serve-a-root-on-ceph.md).
enum class RootFencing {
  kAuto,  // not on a filesystem that several machines mount
  kNone,  // anywhere; one server alone will ever serve it
};

// The free space to leave on the root's file system: bytes, or a part of its size.
struct MinFree {
  uint64_t bytes = 0;
  int percent = 0;  // 1..90; 0: `bytes` counts

  bool is_set() const { return bytes > 0 || percent > 0; }
  // For a file system of `disk_bytes`.
  uint64_t BytesOf(uint64_t disk_bytes) const {
    return percent > 0 ? disk_bytes / 100 * static_cast<uint64_t>(percent) : bytes;
  }
};

struct Config {
  std::filesystem::path root;  // or the URL of a root in CephFS (ceph/root_url.h)
  RootFencing root_fencing = RootFencing::kAuto;
  std::vector<ListenAddress> listen;
  std::vector<ListenAddress> http_listen;  // empty: no HTTP
  uint64_t memory_max_bytes = uint64_t{1} << 30;
  absl::Duration durable_every = absl::Seconds(10);
  uint32_t page_size_bytes = 4096;
  store::PageCompression page_compression = store::PageCompression::kZstd;
  uint32_t umask_bits = 0027;
  std::string group;
  store::HeadOwner owner_of_heads = store::HeadOwner::kServer;
  uint32_t socket_mode_bits = 0660;
  absl::Duration lease_ttl = absl::Seconds(10);
  int max_sessions = 1024;
  int max_connections = 4096;
  int max_peer_connections = 1024;
  int max_new_connections = 256;  // without a valid token
  absl::Duration token_timeout = absl::Seconds(20);
  bool reflection = false;
  int caller_share_percent = 50;  // 1..100
  int queue_threads = 0;          // 0: one for two cores, at most 4
  WindowProbe window_probe = WindowProbe::kAuto;
  int background_threads = 2;
  absl::Duration stop_timeout = absl::Seconds(30);
  absl::Duration removed_keep = absl::Hours(30 * 24);
  absl::Duration tick_len = absl::Milliseconds(100);
  int max_lag = 10;                                  // ticks
  absl::Duration snapshot_keep = absl::Seconds(60);  // at least max_lag ticks
  uint64_t snapshot_max_bytes = uint64_t{1} << 30;   // for each file
  std::vector<RetentionRule> retention;              // the first that matches counts
  std::vector<AccessRule> access;                    // the same; empty: all callers may do all
  std::vector<LimitRule> limits;                     // the same; empty: nothing is counted
  std::vector<QuotaRule> quotas;                     // the same; empty: no file has a limit
  std::vector<NotifyRule> notify;                    // each that matches is told
  std::optional<ClusterSettings> cluster;            // nullopt: this server is none of a cluster
  absl::Duration prune_every = absl::Hours(24);      // 0: never
  MinFree min_free;                                  // not set: nothing is dropped for it
  std::string archive;                               // its URL; empty: there is none
  absl::Duration archive_after = absl::Hours(7 * 24);
  uint64_t archive_local_bytes = uint64_t{1} << 30;  // of a file that has had newer versions
  absl::Duration archive_every = absl::Hours(1);
  bool archive_heads = false;        // copies of heads and indexes go there too
  uint64_t archive_rate = 64 << 20;  // bytes a second; 0: no limit
  std::filesystem::path tls_cert;
  std::filesystem::path tls_key;
  std::filesystem::path tls_client_ca;   // empty: clients are asked for no certificate
  std::filesystem::path tls_client_crl;  // empty: none is revoked
  std::vector<std::string> tls_client_names = {"cn:${user}"};  // NamePattern
  std::filesystem::path tokens_file;
  std::filesystem::path jwt_keys;  // empty: tokens of no issuer count
  std::string jwt_issuer;
  std::string jwt_audience;
  std::string jwt_user_claim = "sub";
  std::string jwt_groups_claim = "groups";
  absl::Duration jwt_grace = absl::ZeroDuration();
  std::filesystem::path munge_socket;  // empty: credentials of munge do not count
  std::string metrics_listen;          // HOST:PORT; empty: no metrics
  std::string log_level = "info";
  std::filesystem::path log_file;   // empty: stderr, the journal under systemd
  std::filesystem::path audit_log;  // empty: none is kept

  bool HasTls() const { return !tls_cert.empty(); }
  bool HasHttp() const { return !http_listen.empty(); }
  bool HasTokens() const { return !tokens_file.empty(); }
  bool HasClientCertificates() const { return !tls_client_ca.empty(); }
  bool HasLogins() const { return !jwt_keys.empty(); }
  bool HasArchive() const { return !archive.empty(); }
  bool HasMunge() const { return !munge_socket.empty(); }
  // The effect of window_probe with these listeners.
  bool ProbesWindows() const;
};

// One setting. The key `tls_cert` is the environment variable H5MIRRORD_TLS_CERT too.
using ConfigKey = SettingKey<Config>;

// All settings, in the order in which --help and the sample show them.
absl::Span<const ConfigKey> ConfigKeys();

// nullptr: no such key.
const ConfigKey* FindConfigKey(std::string_view name);

// One value and its source: "--lease-ttl", "/etc/h5mirror/h5mirrord.toml:12".
struct Setting {
  std::string key;
  std::string text;
  std::string source;
  // For a table, as "retention" or "access": its keys; those of an array one
  // by one.
  std::vector<Setting> parts = {};
  bool is_empty_array = false;  // of a part: `allow = []`
};

// The settings of a TOML file. Numbers and booleans may stand without quotes, `listen` may
// be an array; tables, as [[retention]] or [[access]], may follow. kInvalidArgument names file and
// line for bad TOML and for unknown keys, and says which key is meant where the spelling is close.
// kNotFound, kPermissionDenied.
absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::filesystem::path& path);

// Applies the settings in order (later ones win) over the defaults, and checks the result.
// kInvalidArgument names key, value, source and the allowed range.
absl::StatusOr<Config> MakeConfig(absl::Span<const Setting> settings);

// The rule of one [[retention]] table. kInvalidArgument names its source, key and value.
absl::StatusOr<RetentionRule> MakeRetentionRule(const Setting& table);

// The rules of the [[access]] tables among `settings`. Errors: as MakeAccessRule().
absl::StatusOr<std::vector<AccessRule>> MakeAccessRules(absl::Span<const Setting> settings);

// The same of the [[quota]] tables. Errors: as MakeQuotaRule().
absl::StatusOr<std::vector<QuotaRule>> MakeQuotaRules(absl::Span<const Setting> settings);
// The rules of the [[notify]] tables among `settings`. kInvalidArgument: as MakeNotifyRule(), or
// there are too many.
absl::StatusOr<std::vector<NotifyRule>> MakeNotifyRules(absl::Span<const Setting> settings);

// The error for an unknown key of [[table]], whose keys are `names`.
absl::Status UnknownTableKey(std::string_view table, const Setting& part,
                             absl::Span<const std::string_view> names, std::string_view otherwise);

// `key` may be one of `names`, misspelt: "did you mean ...?"; else `otherwise`.
std::string SuggestKey(std::string_view key, absl::Span<const std::string_view> names,
                       std::string_view otherwise);

// Settings that are allowed and possibly not meant, for the log and --check-config.
std::vector<std::string> WarningsOf(const Config& config);

// One "key = value" line for each setting, for --check-config.
std::string DescribeConfig(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_CONFIG_H_
