#include "swmr_agent/config.h"

#include <algorithm>
#include <utility>

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
      H5M_ASSIGN_OR_RETURN(settings.texts["publish"], Text(value, place));
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

absl::Status ServerTables(const toml::node& node, const std::string& where, Settings& settings) {
  if (!node.is_array()) return Refuse(where, "write it in two brackets, [[server]]");
  for (const toml::node& table : *node.as_array()) {
    H5M_ASSIGN_OR_RETURN(rpc::ClientSettings server, ServerTable(table, where));
    settings.servers.push_back(std::move(server));
  }
  return absl::OkStatus();
}

bool IsKey(std::string_view name) {
  const absl::Span<const ConfigKey> keys = ConfigKeys();
  return std::any_of(keys.begin(), keys.end(),
                     [name](const ConfigKey& key) { return key.name == name; });
}

absl::Status SetKey(const std::string& name, const toml::node& node, const std::string& where,
                    Settings& settings) {
  if (name == "publish") return PublishTable(node, where, settings);
  if (name == "server") return ServerTables(node, where, settings);
  if (!IsKey(name)) {
    const std::string_view advice = AdviceOnSwmrField(name);
    return Refuse(where,
                  StrCat("unknown key \"", name, "\"; ",
                         advice.empty() ? "there are socket, socket_mode, users, cache, idle, "
                                          "tick_len, log_level, [[server]] and [publish]"
                                        : advice));
  }
  if (const auto* number = node.as_integer(); number != nullptr && name == "tick_len") {
    settings.texts[name] = StrCat(number->get());
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(settings.texts[name], Text(node, StrCat(where, ": ", name)));
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

absl::StatusOr<std::filesystem::path> ParseSocket(std::string_view text) {
  std::filesystem::path socket(text);
  // The size of sockaddr_un::sun_path, with its last zero and the end of the other socket's name.
  if (socket.is_absolute() && rpc::CutMapSocket(socket.string()).size() <= 107) return socket;
  return absl::InvalidArgumentError("must be an absolute path of at most 102 bytes");
}

absl::StatusOr<absl::Duration> ParseTick(std::string_view text) {
  const absl::StatusOr<absl::Duration> tick = ParseTickLen(text);
  if (tick.ok() && *tick <= absl::Seconds(1)) return tick;  // An open waits two for the newest cut.
  return absl::InvalidArgumentError("must be 0..1 s; without a unit, tenths of a second");
}

// `value`, with one sentence for each refusal.
SettingValue<Config> Only(SettingValue<Config> value, std::string sentence) {
  value.set = [set = std::move(value.set), sentence = std::move(sentence)](std::string_view text,
                                                                           Config& config) {
    return set(text, config).ok() ? absl::OkStatus() : absl::InvalidArgumentError(sentence);
  };
  return value;
}

std::vector<ConfigKey> MakeKeys() {
  const auto show_path = [](const std::filesystem::path& path) { return path.string(); };
  return {
      {"socket", "PATH",
       "Where readers find it; $XDG_RUNTIME_DIR/h5mirror/agent.sock unless given, or "
       "~/.local/state/h5mirror/agent.sock without XDG_RUNTIME_DIR",
       ParsedBy(&Config::socket, ParseSocket, show_path)},
      {"socket_mode", "OCTAL", "Permissions of the socket; 0600 unless given",
       Permissions(&Config::socket_mode_bits)},
      {"users", "WHICH",
       "checked: other users read the files that the server lets them read; all: all files of the "
       "agent's token; checked unless given",
       OneOf(&Config::users, {"checked", "all"}, {Config::Users::kChecked, Config::Users::kAll})},
      {"cache", "SIZE", "Memory that readers share; 256MiB unless given",
       Only(BytesIn(&Config::cache_bytes, 16 << 20, uint64_t{1} << 42), "must be 16 MiB..4 TiB")},
      {"idle", "TIME", "An unused file is followed for this long; 10m unless given",
       Only(DurationIn(&Config::idle, absl::Seconds(1), absl::Hours(24)), "must be 1 s..24 h")},
      {"tick_len", "TIME",
       "Take a newer cut of a file at most once in this time; the server's tick_len unless longer",
       ParsedBy(&Config::tick_len, ParseTick, HumanDuration)},
      {"publish", "DIR", "Keep the newest cut of the named files there, as plain .h5 files",
       ParsedBy(
           &Config::publish_directory,
           [](std::string_view text) {
             return absl::StatusOr<std::filesystem::path>(std::filesystem::path(text));
           },
           show_path)},
      {"log_level", "LEVEL", "debug, info, warn or error", LogLevel(&Config::log_level)},
  };
}

}  // namespace

absl::Span<const ConfigKey> ConfigKeys() {
  static const auto* keys = new std::vector<ConfigKey>(MakeKeys());
  return *keys;
}

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
  for (auto& [key, text] : flags.texts) file.texts[key] = std::move(text);
  if (!flags.servers.empty()) file.servers = std::move(flags.servers);
  if (!flags.publish_files.empty()) file.publish_files = std::move(flags.publish_files);
  return file;
}

absl::StatusOr<Config> MakeConfig(const Settings& settings) {
  auto texts = settings.texts;
  if (texts.try_emplace("socket", rpc::UserAgentSocket()).first->second.empty()) {
    return Refuse("socket",
                  "there is neither XDG_RUNTIME_DIR nor HOME to put it in: name one with --socket");
  }
  Config config;
  for (const ConfigKey& key : ConfigKeys()) {
    const auto given = texts.find(key.name);
    if (given == texts.end()) continue;
    if (const absl::Status bad = key.value.set(given->second, config); !bad.ok()) {
      return Refuse(StrCat(key.name, " = \"", given->second, "\""), ToStd(bad.message()));
    }
  }
  std::vector<rpc::ClientSettings> servers = settings.servers;
  if (servers.empty()) servers.emplace_back();
  for (const rpc::ClientSettings& server : servers) {
    H5M_ASSIGN_OR_RETURN(rpc::ClientOptions options, rpc::ResolveClientOptions(server));
    config.servers.push_back(std::move(options));
  }
  config.publish_files = settings.publish_files;
  if (config.publish_files.empty() != config.publish_directory.empty()) {
    return Refuse("publish", "wants both a directory and files: --publish DIR NAME...");
  }
  for (const std::string& name : config.publish_files) H5M_RETURN_IF_ERROR(CheckPublished(name));
  return config;
}

}  // namespace h5mirror::agent
