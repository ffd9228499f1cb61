// The table of settings: name, help, range and text.
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "archive/archive_url.h"
#include "base/setting_values.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/swmr_fields.h"
#include "ceph/root_url.h"
#include "server/settings/config.h"
#include "server/settings/name_pattern.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTiB = uint64_t{1} << 40;

absl::StatusOr<absl::Duration> ParseTick(std::string_view text) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration tick, ParseTickLen(text));
  if (tick >= absl::Milliseconds(1) && tick <= absl::Hours(1)) return tick;
  return absl::InvalidArgumentError("must be in 1 ms..1 h; without a unit, tenths of a second");
}

absl::StatusOr<uint32_t> ParsePageSize(std::string_view text) {
  H5M_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytesIn(text, 512, 65536));
  if ((bytes & (bytes - 1)) == 0) return static_cast<uint32_t>(bytes);
  return absl::InvalidArgumentError("must be a power of two in 512 B..64 KiB");
}

absl::StatusOr<std::string> ParseMetricsListen(std::string_view text) {
  if (text.empty()) return std::string();
  H5M_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(text));
  if (address.reach == Reach::kLoopback) return address.GrpcTarget();
  return absl::InvalidArgumentError(
      "metrics are served as plain text without a token, so only on a loopback address, e.g. "
      "127.0.0.1:9447; let an agent or a TLS proxy on this host pass them on");
}

absl::StatusOr<absl::Duration> ParsePruneEvery(std::string_view text) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration every, ParseLongDuration(text));
  const bool is_allowed = every == absl::ZeroDuration() ||
                          (every >= absl::Seconds(1) && every <= absl::Hours(366 * 24));
  if (is_allowed) return every;
  return absl::InvalidArgumentError("must be 0 (never) or in 1 s..366 d");
}

absl::StatusOr<MinFree> ParseMinFree(std::string_view text) {
  MinFree min_free;
  if (!text.empty() && text.back() == '%') {
    text.remove_suffix(1);
    const absl::StatusOr<int> percent = ParseIntIn(text, 0, 90);
    if (!percent.ok()) return absl::InvalidArgumentError("must be a size, or in 0%..90%");
    min_free.percent = *percent;
  } else {
    H5M_ASSIGN_OR_RETURN(min_free.bytes, ParseBytesIn(text, 0, 1024 * kTiB));
  }
  return min_free;
}

std::string ShowMinFree(const MinFree& min_free) {
  return min_free.percent > 0 ? StrCat(min_free.percent, "%") : HumanBytes(min_free.bytes);
}

absl::StatusOr<store::HeadOwner> ParseHeadOwner(std::string_view text) {
  if (text == "server") return store::HeadOwner::kServer;
  if (text == "acl") return store::HeadOwner::kAcl;
  if (text != "user") return absl::InvalidArgumentError("must be server or acl");
  return absl::InvalidArgumentError(
      "must be server or acl; a user who owned the head could change it, and its older versions "
      "with it");
}

std::string ShowHeadOwner(store::HeadOwner owner) {
  return owner == store::HeadOwner::kAcl ? "acl" : "server";
}

absl::StatusOr<int> ParseCallerShare(std::string_view text) {
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  const absl::StatusOr<int> percent = ParseIntIn(text, 1, 100);
  return percent.ok() ? percent : absl::InvalidArgumentError("must be in 1%..100%");
}

absl::StatusOr<std::filesystem::path> ParseRoot(std::string_view text) {
  if (!ceph::IsRootUrl(text)) return ParsePath(text);
  H5M_ASSIGN_OR_RETURN(const ceph::RootUrl url, ceph::ParseRootUrl(text));
  return std::filesystem::path(url.ToString());
}

std::string ShowRoot(const std::filesystem::path& root) { return root.string(); }

absl::StatusOr<std::string> ParseArchive(std::string_view text) {
  if (!text.empty()) H5M_RETURN_IF_ERROR(archive::ParseArchiveUrl(text).status());
  return std::string(text);
}

absl::StatusOr<absl::Duration> ParseArchiveAfter(std::string_view text) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration age, ParseLongDuration(text));
  if (age >= absl::ZeroDuration() && age <= absl::Hours(100 * 366 * 24)) return age;
  return absl::InvalidArgumentError("must be in 0 s..100 years");
}

// A slower put would not be done before its deadline.
absl::StatusOr<uint64_t> ParseArchiveRate(std::string_view text) {
  const absl::StatusOr<uint64_t> rate = ParseBytesIn(text, 0, kTiB);
  if (rate.ok() && (*rate == 0 || *rate >= 4 * kMiB)) return rate;
  return absl::InvalidArgumentError("must be 0 (no limit) or in 4MiB..1TiB");
}

absl::StatusOr<std::filesystem::path> ParsePathOrStdout(std::string_view text) {
  if (text == "-") return std::filesystem::path(text);
  return ParsePath(text);
}

absl::StatusOr<std::vector<std::string>> ParseNamePatterns(std::string_view text) {
  std::vector<std::string> patterns;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ',', absl::SkipWhitespace())) {
    const std::string pattern(absl::StripAsciiWhitespace(part));
    H5M_RETURN_IF_ERROR(NamePattern::Parse(pattern).status());
    patterns.push_back(pattern);
  }
  return patterns;
}

absl::StatusOr<std::vector<ListenAddress>> ParseHttpListen(std::string_view text) {
  if (text.empty()) return std::vector<ListenAddress>();
  return ParseListenList(text);
}

std::string ShowListen(const std::vector<ListenAddress>& addresses) {
  std::string listen;
  for (const ListenAddress& address : addresses) {
    StrAppend(&listen, listen.empty() ? "" : ",", address.text);
  }
  return listen;
}

std::vector<ConfigKey> MakeKeys() {
  const absl::Duration second = absl::Seconds(1), hour = absl::Hours(1);
  return {
      {"root", "DIR",
       "The directory whose files are served, or cephfs:/PATH?conf=FILE&id=NAME&fs=NAME. It must "
       "exist.",
       ParsedBy(&Config::root, ParseRoot, ShowRoot)},
      {"root_fencing", "auto|none",
       "auto: refuse a root on a filesystem that several machines mount; none: serve it, where no "
       "other server ever will.",
       OneOf(&Config::root_fencing, {"auto", "none"}, {RootFencing::kAuto, RootFencing::kNone})},
      {"listen", "ADDRESS,...",
       "Addresses to serve: HOST:PORT, [IPV6]:PORT, unix:PATH; port 0 takes a free one. Any but a "
       "loopback address or a Unix socket needs TLS and tokens.",
       ParsedBy(&Config::listen, ParseListenList, ShowListen)},
      {"http_listen", "ADDRESS,...",
       "Addresses for reads of files and versions by HTTP, as for listen. Empty: no HTTP.",
       ParsedBy(&Config::http_listen, ParseHttpListen, ShowListen)},
      {"memory_max", "SIZE", "Upper bound of the memory of the process, with any clients.",
       BytesIn(&Config::memory_max_bytes, 64 * kMiB, 4 * kTiB)},
      {"durable_every", "TIME", "A flushed state survives a crash of the server after this long.",
       DurationIn(&Config::durable_every, absl::Milliseconds(100), hour)},
      {"page_size", "SIZE", "Unit of copy-on-write of new files: a power of two.",
       ParsedBy(&Config::page_size_bytes, ParsePageSize, HumanBytes)},
      {"page_compression", "zstd|none",
       "How pages of older versions are saved; zstd: compressed, if they become an eighth "
       "smaller.",
       OneOf(&Config::page_compression, {"zstd", "none"},
             {store::PageCompression::kZstd, store::PageCompression::kNone})},
      {"umask", "OCTAL", "Heads get the local file's mode under this umask.",
       Permissions(&Config::umask_bits)},
      {"group", "NAME", "Group of heads and Unix sockets; empty: the process's own.",
       AnyText(&Config::group)},
      {"owner_of_heads", "server|acl",
       "The readers of a head. server: those that its mode gives; acl: also the user of this host "
       "that made the file, by an access list.",
       ParsedBy(&Config::owner_of_heads, ParseHeadOwner, ShowHeadOwner)},
      {"socket_mode", "OCTAL", "Permissions of Unix sockets.",
       Permissions(&Config::socket_mode_bits)},
      {"lease_ttl", "TIME", "A writer that is silent for this long loses its lease.",
       DurationIn(&Config::lease_ttl, second, hour)},
      {"max_sessions", "N", "Files that may be written at once.",
       IntIn(&Config::max_sessions, 1, 100000)},
      {"caller_share", "N%",
       "Part of max_sessions, and of the calls that memory_max has room for, that one token may "
       "have while no other needs them; 100%: all. Without tokens_file, one connection.",
       ParsedBy(&Config::caller_share_percent, ParseCallerShare,
                [](int percent) { return StrCat(percent, "%"); })},
      {"max_connections", "N",
       "Connections at once; fewer with a small memory_max or LimitNOFILE=.",
       IntIn(&Config::max_connections, 16, 20000)},
      {"max_peer_connections", "N",
       "The same from one address of the network, or of one user on a Unix socket; loopback "
       "addresses have no such limit.",
       IntIn(&Config::max_peer_connections, 1, 20000)},
      {"max_new_connections", "N",
       "Connections that have shown no valid token yet; when more come, the oldest of them is cut.",
       IntIn(&Config::max_new_connections, 4, 20000)},
      {"token_timeout", "TIME", "A connection that shows no valid token for this long is cut.",
       DurationIn(&Config::token_timeout, second, hour)},
      {"reflection", "true|false",
       "Tell clients with a token which services and messages there are (gRPC reflection).",
       OneOf(&Config::reflection, {"true", "false"}, {true, false})},
      {"queue_threads", "N", "Threads that receive writes; 0: one for two cores, at most 4.",
       IntIn(&Config::queue_threads, 0, 64)},
      {"window_probe", "auto|on|off",
       "Let receive windows follow the delay of each connection; auto: if a listener can be "
       "reached from the network. Turn it on for writers that come through ssh -L.",
       OneOf(&Config::window_probe, {"auto", "on", "off"},
             {WindowProbe::kAuto, WindowProbe::kOn, WindowProbe::kOff})},
      {"background_threads", "N", "Threads that make cuts durable and move heads on.",
       IntIn(&Config::background_threads, 1, 64)},
      {"stop_timeout", "TIME", "Longest time that a stop may take to finish the work in hand.",
       DurationIn(&Config::stop_timeout, second, hour)},
      {"removed_keep", "TIME", "Removed files can be undeleted for this long, then they are gone.",
       DurationIn(&Config::removed_keep, absl::ZeroDuration(), 100 * 366 * 24 * hour)},
      {"tick_len", "TIME",
       "Followers of a file get its newest cut at most once in this time; without a unit, tenths "
       "of a second.",
       ParsedBy(&Config::tick_len, ParseTick, HumanDuration)},
      {"max_lag", "N", "As snapshot_keep, in ticks, 3 at least; the longer one counts.",
       IntIn(&Config::max_lag, kMaxLagMin, 1'000'000)},
      {"snapshot_keep", "TIME",
       "A cut that a reader pins can be read for this long after the next one.",
       DurationIn(&Config::snapshot_keep, second, 24 * hour)},
      {"snapshot_max", "SIZE",
       "Disk space of the pinned cuts of one file; beyond it the oldest expire.",
       BytesIn(&Config::snapshot_max_bytes, 0, 1024 * kTiB)},
      {"prune_every", "TIME",
       "How often the [[retention]] tables of the configuration file are applied; 0: never.",
       ParsedBy(&Config::prune_every, ParsePruneEvery, HumanDuration)},
      {"min_free", "SIZE|N%",
       "With less than this free on the root's file system, history gives way to heads; 0: never.",
       ParsedBy(&Config::min_free, ParseMinFree, ShowMinFree)},
      {"archive", "URL",
       "Where pages of old versions go: dir:/PATH, or s3://BUCKET/PREFIX?KEYS with the keys "
       "endpoint, region, credentials, ca. Empty: they stay on the root's file system.",
       ParsedBy(&Config::archive, ParseArchive, [](const std::string& url) { return url; })},
      {"archive_after", "TIME",
       "The history of a file without a new version for this long goes there whole.",
       ParsedBy(&Config::archive_after, ParseArchiveAfter, HumanDuration)},
      {"archive_local", "SIZE",
       "Of the history of a file with newer versions, so much stays on the disk too.",
       BytesIn(&Config::archive_local_bytes, 0, 1024 * kTiB)},
      {"archive_every", "TIME", "How often the server looks for history to archive.",
       DurationIn(&Config::archive_every, second, 366 * 24 * hour)},
      {"archive_rate", "SIZE",
       "Bytes a second that archiving sends and reads back at most; 0: no limit.",
       ParsedBy(&Config::archive_rate, ParseArchiveRate, HumanBytes)},
      {"archive_heads", "true|false",
       "Copies of heads and indexes go to the archive too: h5mirrord restore-root needs them.",
       OneOf(&Config::archive_heads, {"true", "false"}, {true, false})},
      {"tls_cert", "FILE", "The server's certificate chain, PEM. With tls_key it turns TLS on.",
       Path(&Config::tls_cert)},
      {"tls_key", "FILE", "The private key of tls_cert, PEM, mode 0600.", Path(&Config::tls_key)},
      {"tls_client_ca", "FILE",
       "PEM of the authority whose certificates clients may show in place of a token.",
       Path(&Config::tls_client_ca)},
      {"tls_client_crl", "FILE", "PEM of that authority's revoked certificates (read on SIGHUP).",
       Path(&Config::tls_client_crl)},
      {"tls_client_names", "PATTERN,...",
       "Where a client's certificate has the user's name, the first that fits: cn:${user}, "
       "uri:TEXT${user}TEXT, dns:... or email:...; cn:${user} unless given.",
       ParsedBy(&Config::tls_client_names, ParseNamePatterns,
                [](const std::vector<std::string>& names) { return absl::StrJoin(names, ","); })},
      {"tokens_file", "FILE", "Tokens and their rights; when set, every call needs a token.",
       Path(&Config::tokens_file)},
      {"jwt_keys", "FILE",
       "JWKS of the site's issuer of tokens (JWT): its users log in with `h5mirror login`. Read "
       "again when it has changed.",
       Path(&Config::jwt_keys)},
      {"jwt_issuer", "TEXT", "The \"iss\" that its tokens must have.",
       AnyText(&Config::jwt_issuer)},
      {"jwt_audience", "TEXT", "The text that must be in the \"aud\" of its tokens.",
       AnyText(&Config::jwt_audience)},
      {"jwt_user_claim", "NAME", "The claim with the user's name, such as \"preferred_username\".",
       AnyText(&Config::jwt_user_claim)},
      {"jwt_groups_claim", "NAME", "The claim with the user's groups.",
       AnyText(&Config::jwt_groups_claim)},
      {"jwt_grace", "TIME", "Sessions and calls end this long after their token has expired.",
       DurationIn(&Config::jwt_grace, absl::ZeroDuration(), 24 * hour)},
      {"munge_socket", "PATH",
       "The munged of this host, such as /run/munge/munge.socket.2. If set, its credentials count.",
       Path(&Config::munge_socket)},
      {"metrics_listen", "ADDRESS", "Loopback HOST:PORT for Prometheus; empty: no metrics.",
       ParsedBy(&Config::metrics_listen, ParseMetricsListen,
                [](const std::string& address) { return address; })},
      {"log_level", "LEVEL", "debug, info, warn or error.", LogLevel(&Config::log_level)},
      {"log_file", "FILE", "Log to this file (reopened on SIGHUP) instead of stderr.",
       Path(&Config::log_file)},
      {"audit_log", "FILE",
       "Append a JSON line for each call to this file (reopened on SIGHUP); \"-\": to stdout.",
       ParsedBy(&Config::audit_log, ParsePathOrStdout,
                [](const std::filesystem::path& path) { return path.string(); })},
  };
}

}  // namespace

absl::Span<const ConfigKey> ConfigKeys() {
  static const auto* keys = new std::vector<ConfigKey>(MakeKeys());
  return *keys;
}

const ConfigKey* FindConfigKey(std::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string DescribeConfig(const Config& config) {
  std::string lines;
  for (const ConfigKey& key : ConfigKeys()) {
    StrAppend(&lines, key.name, " = ", key.value.show(config), "\n");
  }
  for (const RetentionRule& rule : config.retention) StrAppend(&lines, "\n", Describe(rule));
  for (const AccessRule& rule : config.access) StrAppend(&lines, "\n", Describe(rule));
  for (const LimitRule& rule : config.limits) StrAppend(&lines, "\n", Describe(rule));
  for (const QuotaRule& rule : config.quotas) StrAppend(&lines, "\n", Describe(rule));
  for (const NotifyRule& rule : config.notify) StrAppend(&lines, "\n", Describe(rule));
  if (config.cluster.has_value()) StrAppend(&lines, "\n", Describe(*config.cluster));
  return lines;
}

}  // namespace h5mirror::server
