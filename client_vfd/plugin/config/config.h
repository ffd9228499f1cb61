// The driver's configuration: the config string, a TOML file, or defaults.
//
//   HDF5_DRIVER_CONFIG='server=node7:7447;root=/data;exclude=*.tmp.h5'
//   HDF5_DRIVER_CONFIG='@/etc/beamline/h5mirror.toml'
//
// Keys left out come from ~/.config/h5mirror/client.toml, then /etc/h5mirror/client.toml (TOML,
// the same keys), then the defaults below.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace h5mirror::vfd {

enum class Mode {
  kMirror,
  kRemote,  // read and write the server's file, with no local one
  kReader,  // a version from the server, read-only
  kOff
};
// The driver of the host library for the local I/O.
enum class UnderDriver { kSec2, kDirect, kLog, kMpio };
// The barrier of an H5Fflush.
enum class FlushKind { kTick, kSync };
// How far a cut must come before a barrier returns.
enum class Ack { kNone, kApplied, kDurable };
// The effect of a server that is away.
enum class OnOutage {
  kDegrade,  // the program goes on locally, and the mirror catches up
  kWait,     // barriers wait for some time, then as kDegrade
  kFail      // flushes fail
};
// The effect of a change that a program without the driver has made to a closed file.
enum class OnOutsideChange {
  kAdopt,  // it becomes a version, where the server has not moved
  kAsk     // file and mirror have diverged until the user decides
};
// The place of metadata until the next cut.
enum class MetadataPlace { kFile, kMemory };
enum class Checksum { kAuto, kOn, kOff };
// The senders of a file with kMpio.
enum class ParallelSenders {
  kRank0,  // it sends for all
  kNode    // the first rank of each node, what that node's ranks have written
};

struct Config {
  // HOST[:PORT] or unix:PATH, several with commas; or "embedded"; empty: h5mirror's client defaults
  // decide.
  std::string server;
  Mode mode = Mode::kMirror;
  UnderDriver under = UnderDriver::kSec2;
  std::string root;                  // names are relative to it; files outside pass through
  std::string name;                  // the name under the server's root, instead of a derived one
  std::vector<std::string> include;  // globs; empty: every file
  std::vector<std::string> exclude;  // globs; they win over `include`
  FlushKind flush = FlushKind::kTick;
  Ack ack_tick = Ack::kNone;
  Ack ack_commit = Ack::kDurable;
  uint64_t window_bytes = 64 << 20;  // per process, for copies of bytes not yet sent
  uint32_t timeout_ms = 0;           // 0: not given, see TimeoutMs()
  uint32_t linger_ms = 0;            // how long a close may go on while data flows
  OnOutage on_outage = OnOutage::kDegrade;
  uint32_t outage_wait_ms = 30'000;  // of kWait
  OnOutsideChange on_outside_change = OnOutsideChange::kAdopt;
  uint64_t bandwidth_bytes_per_second = 0;  // of each file; 0: no limit
  std::string ca;
  std::string token;
  uint32_t page_size_bytes = 0;  // for new files; 0: the server decides
  std::string comment;           // of the version that a close makes
  // A flush makes a version if the newest one is this old; 0: flushes make none.
  uint32_t version_every_ms = 0;
  // A close makes no version if the newest one is younger than this; 0: every close makes one.
  uint32_t version_min_interval_ms = 0;
  std::string spool;  // mode=remote: the spool's directory; empty: $TMPDIR, or /tmp
  std::string log;    // a file; dated lines are appended
  // mode=reader: N, tag:NAME, latest, latest-K or a time; empty: not given.
  std::string version;
  uint64_t cache_bytes = 64 << 20;  // per process, for readers
  // The agent of readers: "auto", h5mirror-agent if it is there; "off"; or the path of its socket.
  std::string agent = "auto";
  Checksum frame_checksum = Checksum::kAuto;
  MetadataPlace metadata = MetadataPlace::kFile;
  uint64_t metadata_memory_bytes = 256 << 20;  // per process, of kMemory
  ParallelSenders parallel_senders = ParallelSenders::kRank0;

  // server=embedded: no server, the history lies beside the file.
  bool IsEmbedded() const { return server == "embedded"; }
  // One for each mirror, at least one; "": h5mirror's client defaults decide.
  std::vector<std::string> Servers() const;
  // In mode=remote the server has the only copy. So flushes and closes at least wait until it has
  // the bytes, and lost bytes are an error.
  void SettleRemote();
  // How long one HDF5 call waits at most. The default depends on whether the program can go on
  // without the answer.
  uint32_t TimeoutMs() const {
    if (timeout_ms != 0) return timeout_ms;
    return mode == Mode::kMirror && !IsEmbedded() ? 1000 : 5000;
  }
};

// The reason why a value or file was refused, as a text for the user. Unset: it was accepted.
using Problem = std::optional<std::string>;

using KeyValue = std::pair<std::string, std::string>;

// Splits "key=value;key=value". Spaces around keys and values and empty items are ignored.
Problem SplitConfigString(std::string_view text, std::vector<KeyValue>* items);

// Sets one key. The problem names the key, the value and the values that are allowed.
Problem SetConfigKey(const std::string& key, const std::string& value, Config* config);

// The top-level keys of a TOML file as strings; arrays are joined with commas.
// A missing file is a problem only if `required`.
enum class Missing { kAllowed, kRefused };
Problem ReadConfigFile(const std::string& path, Missing missing, std::vector<KeyValue>* items);

// Makes a Config of the driver's config string, with all of the above. `home` may be empty.
Problem MakeConfig(std::string_view text, const std::string& home, Config* config);

// MakeConfig once per distinct string; the answer lives as long as the process. Thread-safe.
Problem CachedConfig(const std::string& text, std::shared_ptr<const Config>* config);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_H_
