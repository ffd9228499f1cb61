#include "swmr_agent/config.h"

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/setting_values.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/swmr_fields.h"
#include "base/toml_file.h"
#include "rpc/agent_socket.h"

namespace h5mirror::agent {
namespace {

absl::Status Refuse(std::string_view where, std::string_view why) {
  return absl::InvalidArgumentError(StrCat(where, ": ", why));
}

absl::StatusOr<std::string> Text(const toml::node& node, std::string_view where) {
  if (const auto* text = node.as_string()) return text->get();
  return Refuse(where, "must be a text in quotes");
}

absl::StatusOr<rpc::ClientSettings> ServerTable(const toml::node& node, const std::string& where) {
  if (!node.is_table()) return Refuse(where, "write it in two brackets, [[server]]");
  rpc::ClientSettings server;
  for (const auto& [key, value] : *node.as_table()) {
    const std::string name(key.str());
    H5M_ASSIGN_OR_RETURN(std::string text, Text(value, StrCat(where, ": ", name)));
    if (name == "address") {
      server.server = std::move(text);
    } else if (name == "ca") {
      server.ca = std::move(text);
    } else if (name == "token") {
      server.token = std::move(text);
    } else {
      return Refuse(where, StrCat("unknown key \"", name, "\"; there are address, ca, token"));
    }
  }
  if (!server.server) return Refuse(where, "the address is missing");
  return server;
}

absl::Status PublishTable(const toml::node& node, const std::string& where, Settings& settings) {
  if (!node.is_table()) return Refuse(where, "write it in brackets, [publish]");
  for (const auto& [key, value] : *node.as_table()) {
    const std::string name(key.str()), place = StrCat(where, ": ", name);
    if (name == "directory") {
      H5M_ASSIGN_OR_RETURN(settings.publish_directory, Text(value, place));
    } else if (name == "files" && value.is_array()) {
      for (const toml::node& file : *value.as_array()) {
        H5M_ASSIGN_OR_RETURN(std::string text, Text(file, place));
        settings.publish_files.push_back(std::move(text));
      }
    } else {
      return Refuse(place, "unknown; there are directory = \"DIR\" and files = [\"NAME\", ...]");
    }
  }
  return absl::OkStatus();
}

absl::Status SetKey(const std::string& name, const toml::node& node, const std::string& where,
                    Settings& settings) {
  const std::pair<const char*, std::optional<std::string>*> texts[] = {
      {"socket", &settings.socket},     {"socket_mode", &settings.socket_mode},
      {"cache", &settings.cache},       {"idle", &settings.idle},
      {"tick_len", &settings.tick_len}, {"log_level", &settings.log_level}};
  for (const auto& [known, value] : texts) {
    if (name != known) continue;
    if (const auto* number = node.as_integer(); number != nullptr && name == "tick_len") {
      *value = StrCat(number->get());
      return absl::OkStatus();
    }
    H5M_ASSIGN_OR_RETURN(*value, Text(node, StrCat(where, ": ", name)));
    return absl::OkStatus();
  }
  if (name == "publish") return PublishTable(node, where, settings);
  if (name != "server") {
    const std::string advice = AdviceOnSwmrField(name);
    return Refuse(where, StrCat("unknown key \"", name, "\"; ",
                                advice.empty() ? "there are socket, socket_mode, cache, idle, "
                                                 "tick_len, log_level, [[server]] and [publish]"
                                               : advice));
  }
  if (!node.is_array()) return Refuse(where, "write it in two brackets, [[server]]");
  for (const toml::node& table : *node.as_array()) {
    H5M_ASSIGN_OR_RETURN(rpc::ClientSettings server, ServerTable(table, where));
    settings.servers.push_back(std::move(server));
  }
  return absl::OkStatus();
}

// Below the directory that it is published in.
absl::Status CheckPublished(const std::string& name) {
  const std::filesystem::path path(name);
  const bool is_below = !name.empty() && path.is_relative() && !path.filename().empty() &&
                        std::none_of(path.begin(), path.end(),
                                     [](const auto& part) { return part == ".." || part == "."; });
  if (is_below) return absl::OkStatus();
  return Refuse(StrCat("publish = \"", name, "\""),
                "must be a file's name on the server, without '.', '..' and a leading '/'");
}

absl::Status SetNumbers(const Settings& settings, Config& config) {
  if (settings.socket_mode) {
    const absl::StatusOr<uint32_t> mode = ParseOctal(*settings.socket_mode, 0777);
    if (!mode.ok()) {
      return Refuse(StrCat("socket_mode = \"", *settings.socket_mode, "\""),
                    ToStd(mode.status().message()));
    }
    config.socket_mode_bits = *mode;
  }
  if (settings.cache) {
    const absl::StatusOr<uint64_t> bytes = ParseBytes(*settings.cache);
    if (!bytes.ok() || *bytes < (16 << 20) || *bytes > uint64_t{1} << 42) {
      return Refuse(StrCat("cache = \"", *settings.cache, "\""), "must be 16 MiB..4 TiB");
    }
    config.cache_bytes = *bytes;
  }
  if (settings.idle) {
    const absl::StatusOr<absl::Duration> idle = ParseDuration(*settings.idle);
    if (!idle.ok() || *idle < absl::Seconds(1) || *idle > absl::Hours(24)) {
      return Refuse(StrCat("idle = \"", *settings.idle, "\""), "must be 1 s..24 h");
    }
    config.idle = *idle;
  }
  if (settings.tick_len) {
    const absl::StatusOr<absl::Duration> tick = ParseTickLen(*settings.tick_len);
    if (!tick.ok() || *tick > absl::Seconds(1)) {  // An open waits two for the newest cut.
      return Refuse(StrCat("tick_len = \"", *settings.tick_len, "\""),
                    "must be 0..1 s; without a unit, tenths of a second");
    }
    config.tick_len = *tick;
  }
  return absl::OkStatus();
}

absl::Status SetSocket(const Settings& settings, Config& config) {
  config.socket = settings.socket.value_or(rpc::UserAgentSocket());
  if (config.socket.empty()) {
    return Refuse("socket",
                  "there is neither XDG_RUNTIME_DIR nor HOME to put it in: name one with --socket");
  }
  // The size of sockaddr_un::sun_path, with its last zero and the end of the other socket's name.
  if (!config.socket.is_absolute() || rpc::CutMapSocket(config.socket.string()).size() > 107) {
    return Refuse(StrCat("socket = \"", config.socket.string(), "\""),
                  "must be an absolute path of at most 102 bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> ReadConfigFile(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const toml::table table, ReadTomlFile(path));
  Settings settings;
  for (const auto& [key, node] : table) {
    const std::string where = StrCat(path.string(), ":", node.source().begin.line);
    H5M_RETURN_IF_ERROR(SetKey(std::string(key.str()), node, where, settings));
  }
  return settings;
}

Settings Merge(Settings file, Settings flags) {
  const auto take = [](auto& from, auto& to) {
    if (from) to = std::move(from);
  };
  take(flags.socket, file.socket);
  take(flags.socket_mode, file.socket_mode);
  take(flags.cache, file.cache);
  take(flags.idle, file.idle);
  take(flags.tick_len, file.tick_len);
  take(flags.log_level, file.log_level);
  take(flags.publish_directory, file.publish_directory);
  if (!flags.servers.empty()) file.servers = std::move(flags.servers);
  if (!flags.publish_files.empty()) file.publish_files = std::move(flags.publish_files);
  return file;
}

absl::StatusOr<Config> MakeConfig(const Settings& settings) {
  Config config;
  H5M_RETURN_IF_ERROR(SetSocket(settings, config));
  H5M_RETURN_IF_ERROR(SetNumbers(settings, config));
  config.log_level = settings.log_level.value_or(config.log_level);
  if (const absl::Status bad = CheckLogLevel(config.log_level); !bad.ok()) {
    return Refuse(StrCat("log_level = \"", config.log_level, "\""), ToStd(bad.message()));
  }
  std::vector<rpc::ClientSettings> servers = settings.servers;
  if (servers.empty()) servers.emplace_back();
  for (const rpc::ClientSettings& server : servers) {
    H5M_ASSIGN_OR_RETURN(rpc::ClientOptions options, rpc::ResolveClientOptions(server));
    config.servers.push_back(std::move(options));
  }
  config.publish_directory = settings.publish_directory.value_or("");
  config.publish_files = settings.publish_files;
  if (config.publish_files.empty() != config.publish_directory.empty()) {
    return Refuse("publish", "wants both a directory and files: --publish DIR NAME...");
  }
  for (const std::string& name : config.publish_files) H5M_RETURN_IF_ERROR(CheckPublished(name));
  return config;
}

}  // namespace h5mirror::agent
