// The table of settings: name, help, parser with its range.
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/human.h"
#include "base/setting_values.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/swmr_fields.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

absl::Status SetBytes(std::string_view text, uint64_t min, uint64_t max, uint64_t& target) {
  H5M_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
  if (bytes < min || bytes > max) {
    return absl::InvalidArgumentError(
        StrCat("must be in ", HumanBytes(min), "..", HumanBytes(max)));
  }
  target = bytes;
  return absl::OkStatus();
}

absl::Status SetDuration(std::string_view text, absl::Duration min, absl::Duration max,
                         absl::Duration& target) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(text));
  if (duration < min || duration > max) {
    return absl::InvalidArgumentError(
        StrCat("must be in ", HumanDuration(min), "..", HumanDuration(max)));
  }
  target = duration;
  return absl::OkStatus();
}

absl::Status SetTickLen(std::string_view text, Config& config) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration tick, ParseTickLen(text));
  if (tick < absl::Milliseconds(1) || tick > absl::Hours(1)) {
    return absl::InvalidArgumentError("must be in 1 ms..1 h; without a unit, tenths of a second");
  }
  config.tick_len = tick;
  return absl::OkStatus();
}

absl::Status SetInt(std::string_view text, int min, int max, int& target) {
  int value = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &value) || value < min || value > max) {
    return absl::InvalidArgumentError(StrCat("must be a whole number in ", min, "..", max));
  }
  target = value;
  return absl::OkStatus();
}

absl::Status SetOctal(std::string_view text, uint32_t max, uint32_t& target) {
  H5M_ASSIGN_OR_RETURN(target, ParseOctal(text, max));
  return absl::OkStatus();
}

absl::Status SetPath(std::string_view text, std::filesystem::path& target) {
  if (text.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("must not hold a NUL byte");
  }
  target = text.empty() ? std::filesystem::path()
                        : std::filesystem::absolute(std::string(text)).lexically_normal();
  return absl::OkStatus();
}

absl::Status SetPageSize(std::string_view text, Config& config) {
  uint64_t bytes = 0;
  H5M_RETURN_IF_ERROR(SetBytes(text, 512, 65536, bytes));
  if ((bytes & (bytes - 1)) != 0) {
    return absl::InvalidArgumentError("must be a power of two in 512 B..64 KiB");
  }
  config.page_size_bytes = static_cast<uint32_t>(bytes);
  return absl::OkStatus();
}

absl::Status SetPageCompression(std::string_view text, Config& config) {
  if (text != "zstd" && text != "none") {
    return absl::InvalidArgumentError("must be zstd or none");
  }
  config.page_compression =
      text == "zstd" ? store::PageCompression::kZstd : store::PageCompression::kNone;
  return absl::OkStatus();
}

absl::Status SetMetricsListen(std::string_view text, Config& config) {
  config.metrics_listen.clear();
  if (text.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(text));
  if (address.reach != Reach::kLoopback) {
    return absl::InvalidArgumentError(
        "metrics are served as plain text without a token, so only on a loopback address, e.g. "
        "127.0.0.1:9447; let an agent or a TLS proxy on this host pass them on");
  }
  config.metrics_listen = address.GrpcTarget();
  return absl::OkStatus();
}

absl::Status SetLogLevel(std::string_view text, Config& config) {
  H5M_RETURN_IF_ERROR(CheckLogLevel(text));
  config.log_level = std::string(text);
  return absl::OkStatus();
}

absl::Status SetPruneEvery(std::string_view text, Config& config) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration every, ParseLongDuration(text));
  if (every != absl::ZeroDuration() &&
      (every < absl::Seconds(1) || every > absl::Hours(366 * 24))) {
    return absl::InvalidArgumentError("must be 0 (never) or in 1 s..366 d");
  }
  config.prune_every = every;
  return absl::OkStatus();
}

absl::Status SetMinFree(std::string_view text, Config& config) {
  MinFree min_free;
  if (!text.empty() && text.back() == '%') {
    text.remove_suffix(1);
    if (!SetInt(text, 0, 90, min_free.percent).ok()) {
      return absl::InvalidArgumentError("must be a size, or in 0%..90%");
    }
  } else {
    H5M_RETURN_IF_ERROR(SetBytes(text, 0, uint64_t{1} << 50, min_free.bytes));
  }
  config.min_free = min_free;
  return absl::OkStatus();
}

absl::Status SetCallerShare(std::string_view text, Config& config) {
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  int percent = 0;
  if (!SetInt(text, 1, 100, percent).ok()) {
    return absl::InvalidArgumentError("must be in 1%..100%");
  }
  config.caller_share_percent = percent;
  return absl::OkStatus();
}

std::string DescribeMinFree(const MinFree& min_free) {
  return min_free.percent > 0 ? StrCat(min_free.percent, "%") : HumanBytes(min_free.bytes);
}

struct WindowProbeName {
  WindowProbe probe;
  std::string_view name;
};
constexpr WindowProbeName kWindowProbes[] = {
    {WindowProbe::kAuto, "auto"}, {WindowProbe::kOn, "on"}, {WindowProbe::kOff, "off"}};

absl::Status SetWindowProbe(std::string_view text, Config& config) {
  for (const WindowProbeName& known : kWindowProbes) {
    if (text != known.name) continue;
    config.window_probe = known.probe;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("must be one of auto, on, off");
}

absl::Status SetReflection(std::string_view text, Config& config) {
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError("must be true or false");
  }
  config.reflection = text == "true";
  return absl::OkStatus();
}

std::string_view NameOf(WindowProbe probe) {
  for (const WindowProbeName& known : kWindowProbes) {
    if (probe == known.probe) return known.name;
  }
  return "";
}

constexpr ConfigKey kKeys[] = {
    {"root", "DIR", "The directory whose files are served. It must exist.",
     [](std::string_view text, Config& config) { return SetPath(text, config.root); }},
    {"listen", "ADDRESS,...",
     "Addresses to serve: HOST:PORT, [IPV6]:PORT, unix:PATH; port 0 takes a free one. Any but a "
     "loopback address or a Unix socket wants TLS and tokens.",
     [](std::string_view text, Config& config) {
       auto addresses = ParseListenList(text);
       if (addresses.ok()) config.listen = *std::move(addresses);
       return addresses.status();
     }},
    {"memory_max", "SIZE", "Memory that the process may take, whatever clients do.",
     [](std::string_view text, Config& config) {
       return SetBytes(text, 64 * kMiB, uint64_t{1} << 42, config.memory_max_bytes);
     }},
    {"durable_every", "TIME", "A flushed state survives a crash of the server after this long.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::Milliseconds(100), absl::Hours(1), config.durable_every);
     }},
    {"page_size", "SIZE", "Unit of copy-on-write of new files: a power of two.", SetPageSize},
    {"page_compression", "zstd|none",
     "How pages of older versions are saved; zstd: compressed, where they become an eighth "
     "smaller.",
     SetPageCompression},
    {"umask", "OCTAL", "Heads get the local file's mode under this umask.",
     [](std::string_view text, Config& config) { return SetOctal(text, 0777, config.umask_bits); }},
    {"group", "NAME", "Group of heads and Unix sockets; empty: the process's own.",
     [](std::string_view text, Config& config) {
       config.group = std::string(text);
       return absl::OkStatus();
     }},
    {"socket_mode", "OCTAL", "Permissions of Unix sockets.",
     [](std::string_view text, Config& config) {
       return SetOctal(text, 0777, config.socket_mode_bits);
     }},
    {"lease_ttl", "TIME", "A writer that is silent for this long loses its file to others.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::Seconds(1), absl::Hours(1), config.lease_ttl);
     }},
    {"max_sessions", "N", "Files that may be written at once.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 1, 100000, config.max_sessions);
     }},
    {"caller_share", "N%",
     "Part of max_sessions, and of the calls that memory_max has room for, that one token may have "
     "while no other needs them; 100%: all. Without tokens_file, one connection.",
     SetCallerShare},
    {"max_connections", "N", "Connections at once; fewer with a small memory_max or LimitNOFILE=.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 16, 20000, config.max_connections);
     }},
    {"max_peer_connections", "N",
     "The same from one address of the network, or of one user on a Unix socket; loopback "
     "addresses have no such limit.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 1, 20000, config.max_peer_connections);
     }},
    {"max_new_connections", "N",
     "Connections that have shown no valid token yet; when more come, the oldest of them is cut.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 4, 20000, config.max_new_connections);
     }},
    {"token_timeout", "TIME", "A connection that shows no valid token for this long is cut.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::Seconds(1), absl::Hours(1), config.token_timeout);
     }},
    {"reflection", "true|false",
     "Tell clients with a token which services and messages there are (gRPC reflection).",
     SetReflection},
    {"queue_threads", "N", "Threads that receive writes; 0: one for two cores, at most 4.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 0, 64, config.queue_threads);
     }},
    {"window_probe", "auto|on|off",
     "Let receive windows follow the delay of each connection; auto: if a listener can be reached "
     "from the network. Turn it on for writers that come through ssh -L.",
     SetWindowProbe},
    {"background_threads", "N", "Threads that make cuts durable and move heads on.",
     [](std::string_view text, Config& config) {
       return SetInt(text, 1, 64, config.background_threads);
     }},
    {"stop_timeout", "TIME", "Longest time that a stop may take to finish the work in hand.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::Seconds(1), absl::Hours(1), config.stop_timeout);
     }},
    {"removed_keep", "TIME", "Removed files can be undeleted for this long, then they are gone.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::ZeroDuration(), absl::Hours(100 * 366 * 24),
                          config.removed_keep);
     }},
    {"tick_len", "TIME",
     "Followers of a file get its newest cut once in so much time; without a unit, tenths of a "
     "second.",
     SetTickLen},
    {"max_lag", "N", "As snapshot_keep, in ticks, 3 at least; the longer one counts.",
     [](std::string_view text, Config& config) {
       return SetInt(text, kMaxLagMin, 1'000'000, config.max_lag);
     }},
    {"snapshot_keep", "TIME",
     "A cut that a reader has open can be read for this long after the next one.",
     [](std::string_view text, Config& config) {
       return SetDuration(text, absl::Seconds(1), absl::Hours(24), config.snapshot_keep);
     }},
    {"snapshot_max", "SIZE",
     "Disk that cuts which readers have open may take, for each file; then the oldest expire.",
     [](std::string_view text, Config& config) {
       return SetBytes(text, 0, uint64_t{1} << 50, config.snapshot_max_bytes);
     }},
    {"prune_every", "TIME",
     "How often the [[retention]] tables of the configuration file are applied; 0: never.",
     SetPruneEvery},
    {"min_free", "SIZE|N%",
     "With less than this free on the root's file system, history gives way to heads; 0: never.",
     SetMinFree},
    {"tls_cert", "FILE", "The server's certificate chain, PEM. With tls_key it turns TLS on.",
     [](std::string_view text, Config& config) { return SetPath(text, config.tls_cert); }},
    {"tls_key", "FILE", "The private key of tls_cert, PEM, mode 0600.",
     [](std::string_view text, Config& config) { return SetPath(text, config.tls_key); }},
    {"tokens_file", "FILE", "Tokens and their rights; when set, every call wants a token.",
     [](std::string_view text, Config& config) { return SetPath(text, config.tokens_file); }},
    {"metrics_listen", "ADDRESS", "Loopback HOST:PORT for Prometheus; empty: no metrics.",
     SetMetricsListen},
    {"log_level", "LEVEL", "debug, info, warn or error.", SetLogLevel},
    {"log_file", "FILE", "Log to this file (reopened on SIGHUP) instead of stderr.",
     [](std::string_view text, Config& config) { return SetPath(text, config.log_file); }},
};

}  // namespace

absl::Span<const ConfigKey> ConfigKeys() { return kKeys; }

const ConfigKey* FindConfigKey(std::string_view name) {
  for (const ConfigKey& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string DescribeConfig(const Config& config) {
  std::string listen;
  for (const ListenAddress& address : config.listen) {
    StrAppend(&listen, listen.empty() ? "" : ",", address.text);
  }
  std::string rules;
  for (const RetentionRule& rule : config.retention) StrAppend(&rules, "\n", Describe(rule));
  return StrCat(
      "root = ", config.root.string(), "\nlisten = ", listen,
      "\nmemory_max = ", HumanBytes(config.memory_max_bytes),
      "\ndurable_every = ", HumanDuration(config.durable_every),
      "\npage_size = ", HumanBytes(config.page_size_bytes), "\npage_compression = ",
      config.page_compression == store::PageCompression::kZstd ? "zstd" : "none",
      absl::StrFormat("\numask = %04o", config.umask_bits), "\ngroup = ", config.group,
      absl::StrFormat("\nsocket_mode = %04o", config.socket_mode_bits),
      "\nlease_ttl = ", HumanDuration(config.lease_ttl), "\nmax_sessions = ", config.max_sessions,
      "\ncaller_share = ", config.caller_share_percent, "%",
      "\nmax_connections = ", config.max_connections,
      "\nmax_peer_connections = ", config.max_peer_connections,
      "\nmax_new_connections = ", config.max_new_connections,
      "\ntoken_timeout = ", HumanDuration(config.token_timeout),
      "\nreflection = ", config.reflection ? "true" : "false",
      "\nqueue_threads = ", config.queue_threads, "\nwindow_probe = ", NameOf(config.window_probe),
      "\nbackground_threads = ", config.background_threads,
      "\nstop_timeout = ", HumanDuration(config.stop_timeout),
      "\nremoved_keep = ", HumanDuration(config.removed_keep),
      "\ntick_len = ", HumanDuration(config.tick_len), "\nmax_lag = ", config.max_lag,
      "\nsnapshot_keep = ", HumanDuration(config.snapshot_keep),
      "\nsnapshot_max = ", HumanBytes(config.snapshot_max_bytes),
      "\nprune_every = ", HumanDuration(config.prune_every),
      "\nmin_free = ", DescribeMinFree(config.min_free), "\ntls_cert = ", config.tls_cert.string(),
      "\ntls_key = ", config.tls_key.string(), "\ntokens_file = ", config.tokens_file.string(),
      "\nmetrics_listen = ", config.metrics_listen, "\nlog_level = ", config.log_level,
      "\nlog_file = ", config.log_file.string(), "\n", rules);
}

}  // namespace h5mirror::server
