// The settings of h5mirror-agent: flags over a TOML file over defaults, wholly checked before any
// socket is opened. Every key is shown, with its default, in deploy/h5mirror-agent.toml.
#ifndef H5MIRROR_SWMR_AGENT_CONFIG_H_
#define H5MIRROR_SWMR_AGENT_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/setting_values.h"
#include "rpc/client_options.h"

namespace h5mirror::agent {

struct Config {
  enum class Users {
    kChecked,  // each reads the files that the server lets it read
    kAll,      // each reads the files of the agent's token
  };

  std::filesystem::path socket;
  uint32_t socket_mode_bits = 0600;
  Users users = Users::kChecked;
  uint64_t cache_bytes = 256 << 20;
  // A file that nobody has used for so long is not followed any more.
  absl::Duration idle = absl::Minutes(10);
  // Of each file a newer cut is taken once in so much time, or the server's tick_len if longer.
  absl::Duration tick_len = absl::ZeroDuration();
  std::string log_level = "info";
  std::vector<rpc::ClientOptions> servers;  // at least one
  // The directory for the newest cuts of published files of the first server; empty: nothing is
  // published.
  std::filesystem::path publish_directory;
  std::vector<std::string> publish_files;
};

using ConfigKey = SettingKey<Config>;

// The settings that are one text, in the order in which --help shows them.
absl::Span<const ConfigKey> ConfigKeys();

// The values of flags and file: text, not checked yet.
struct Settings {
  std::map<std::string, std::string, std::less<>> texts;  // by the names of ConfigKeys()
  std::vector<rpc::ClientSettings> servers;
  std::vector<std::string> publish_files;
};

// Errors: kInvalidArgument names file, line, key and value; kNotFound there is no such file.
absl::StatusOr<Settings> ReadConfigFile(const std::filesystem::path& path);
// Values of `flags` win.
Settings Merge(Settings file, Settings flags);
// Errors: kInvalidArgument names key, value and the allowed values; those of
// rpc::ResolveClientOptions().
absl::StatusOr<Config> MakeConfig(const Settings& settings);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CONFIG_H_
