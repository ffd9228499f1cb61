// What the user wants of the driver: the config string, a TOML file, or defaults.
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
// The driver of the host library that does the local I/O.
enum class UnderDriver { kSec2, kDirect, kLog };
// What an H5Fflush is.
enum class FlushKind { kTick, kSync };
// What the program waits for at a barrier.
enum class Ack { kNone, kApplied, kDurable };
// What the program does while the server is away.
enum class OnOutage {
  kDegrade,  // it goes on locally, and the mirror catches up
  kWait,     // its barriers wait for some time, then as kDegrade
  kFail      // its flushes fail
};
// What becomes of a closed file that a program without the driver has changed.
enum class OnOutsideChange {
  kAdopt,  // a version of its own, where the server has not moved
  kAsk     // the two have diverged until the user decides
};
// Where metadata is until the next cut.
enum class MetadataPlace { kFile, kMemory };
enum class Checksum { kAuto, kOn, kOff };

struct Config {
  // HOST[:PORT] or unix:PATH, several with commas; or "embedded"; empty: h5mirror's client defaults
  // decide.
  std::string server;
  Mode mode = Mode::kMirror;
  UnderDriver under = UnderDriver::kSec2;
  std::string root;                  // names are relative to it; files outside pass through
  std::string name;                  // the name under the server's root, instead of the rule's
  std::vector<std::string> include;  // globs; empty: every file
  std::vector<std::string> exclude;  // globs; they win over `include`
  FlushKind flush = FlushKind::kTick;
  Ack ack_tick = Ack::kNone;
  Ack ack_commit = Ack::kDurable;
  uint64_t window_bytes = 64 << 20;  // per process, for copies of bytes not yet sent
  uint32_t timeout_ms = 0;           // 0: not given, see TimeoutMs()
  uint32_t linger_ms = 0;            // that a close goes on where data flows
  OnOutage on_outage = OnOutage::kDegrade;
  uint32_t outage_wait_ms = 30'000;  // of kWait
  OnOutsideChange on_outside_change = OnOutsideChange::kAdopt;
  uint64_t bandwidth_bytes_per_second = 0;  // of each file; 0: no limit
  std::string ca;
  std::string token;
  uint32_t page_size_bytes = 0;  // for new files; 0: the server decides
  std::string comment;           // of the version that a close makes
  // A flush makes a version where the newest one is this old; 0: flushes make none.
  uint32_t version_every_ms = 0;
  // A close makes none of its own where the newest one is younger; 0: every close does.
  uint32_t version_min_interval_ms = 0;
  std::string spool;  // mode=remote: the directory of what is written; empty: $TMPDIR, or /tmp
  std::string log;    // dated lines are appended here
  // mode=reader: N, tag:NAME, latest, latest-K or a time; empty: not given.
  std::string version;
  uint64_t cache_bytes = 64 << 20;  // per process, for what readers read
  // Whether readers go through h5mirror-agent: "auto", where one is there; "off"; or its socket.
  std::string agent = "auto";
  Checksum frame_checksum = Checksum::kAuto;
  MetadataPlace metadata = MetadataPlace::kFile;
  uint64_t metadata_memory_bytes = 256 << 20;  // per process, of kMemory

  // server=embedded: no server, the history lies beside the file.
  bool IsEmbedded() const { return server == "embedded"; }
  // One for each mirror, at least one; "": h5mirror's client defaults decide.
  std::vector<std::string> Servers() const;
  // In mode=remote the server has the only copy: the least that flushes and closes wait for is that
  // it has it, and one that is lost is an error.
  void SettleRemote();
  // The longest that one HDF5 call waits. Only where a server gets a copy can the program go on
  // without the answer.
  uint32_t TimeoutMs() const {
    if (timeout_ms != 0) return timeout_ms;
    return mode == Mode::kMirror && !IsEmbedded() ? 1000 : 5000;
  }
};

// The reason why something was refused, in words for the user.
using Problem = std::optional<std::string>;

using KeyValue = std::pair<std::string, std::string>;

// Splits "key=value;key=value". Spaces around keys and values and empty items are ignored.
Problem SplitConfigString(std::string_view text, std::vector<KeyValue>* items);

// Sets one key. The problem names the key, the value and what would be right.
Problem SetConfigKey(const std::string& key, const std::string& value, Config* config);

// The top-level keys of a TOML file as strings; arrays are joined with commas.
// A missing file is a problem only if `required`.
enum class Missing { kAllowed, kRefused };
Problem ReadConfigFile(const std::string& path, Missing missing, std::vector<KeyValue>* items);

// The whole road from the driver's config string to a Config. `home` may be empty.
Problem MakeConfig(std::string_view text, const std::string& home, Config* config);

// MakeConfig once per distinct string; the answer lives as long as the process. Thread-safe.
Problem CachedConfig(const std::string& text, std::shared_ptr<const Config>* config);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_H_
