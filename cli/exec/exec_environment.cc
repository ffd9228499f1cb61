#include "cli/exec/exec_environment.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>;

std::string Absolute(std::string_view path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

// "PREFIXpath" with an absolute path; other texts as they are.
std::string AbsoluteAfter(std::string_view prefix, const std::string& text) {
  if (!text.starts_with(prefix)) return text;
  return StrCat(prefix, Absolute(text.substr(prefix.size())));
}

Items FlagItems(const ExecEnvironmentRequest& request) {
  Items items;
  const rpc::ClientSettings& client = request.client;
  if (client.server.has_value()) {
    // A list goes to the driver as it is, but for paths.
    std::vector<std::string> servers;
    for (absl::string_view server : absl::StrSplit(*client.server, ',')) {
      servers.push_back(AbsoluteAfter("unix:", std::string(absl::StripAsciiWhitespace(server))));
    }
    items.emplace_back("server", absl::StrJoin(servers, ","));
  }
  if (client.ca.has_value()) items.emplace_back("ca", Absolute(*client.ca));
  if (client.token.has_value()) items.emplace_back("token", AbsoluteAfter("@", *client.token));
  if (!request.root.empty()) items.emplace_back("root", Absolute(request.root));
  return items;
}

// The driver takes the last of several values of a key.
absl::StatusOr<std::string> MergeConfig(const std::string& config, const Items& items) {
  if (items.empty()) return config;
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(config), "@")) {
    return absl::InvalidArgumentError(StrCat("the config ", config, " is a file: write ",
                                             items[0].first,
                                             " there, or give --config 'key=value;...'"));
  }
  std::string merged = config;
  for (const auto& [key, value] : items) {
    if (absl::StrContains(value, ';')) {
      return absl::InvalidArgumentError(
          StrCat("--", key, " ", value, ": a ';' cannot stand in the driver's config; write ", key,
                 " into ~/.config/h5mirror/client.toml instead"));
    }
    StrAppend(&merged, merged.empty() || absl::EndsWith(merged, ";") ? "" : ";", key, "=", value);
  }
  return merged;
}

// `ours` before the user's list, once.
std::string Prepend(const std::string& ours, const std::string& users) {
  std::vector<std::string> parts{ours};
  for (absl::string_view part : absl::StrSplit(users, ':', absl::SkipEmpty())) {
    if (part != ours) parts.emplace_back(part);
  }
  return absl::StrJoin(parts, ":");
}

constexpr absl::Duration kTickMin = absl::Milliseconds(10);
constexpr absl::Duration kTickMax = absl::Hours(24);

// The value of HDF5_VOL_CONNECTOR: a name, and the connector's settings behind it.
absl::StatusOr<std::string> ConnectorText(const ExecEnvironmentRequest& request,
                                          const std::string& users) {
  if (!users.empty() && !absl::StartsWith(users, "h5mirror")) {
    return absl::InvalidArgumentError(
        StrCat("HDF5_VOL_CONNECTOR is \"", users,
               "\": --tick and --all-drivers need h5mirror's connector in its place; unset it, or "
               "name h5mirror (value 457) below yours there, without these flags"));
  }
  std::vector<std::string> settings;
  if (request.tick > absl::ZeroDuration()) {
    if (request.tick < kTickMin || request.tick > kTickMax) {
      return absl::InvalidArgumentError(
          StrCat("--tick ", absl::FormatDuration(request.tick), ": must be 10ms to 24h"));
    }
    settings.push_back(StrCat("tick=", absl::ToInt64Milliseconds(request.tick), "ms"));
  }
  if (request.all_drivers) settings.emplace_back("drivers=all");
  return StrCat("h5mirror ", absl::StrJoin(settings, ";"));
}

}  // namespace

absl::StatusOr<EnvironmentChanges> ExecEnvironment(const ExecEnvironmentRequest& request,
                                                   GetEnvironment get) {
  if (absl::StrContains(request.plugin_dir, ':')) {
    return absl::InvalidArgumentError(
        StrCat("the plugin's directory ", request.plugin_dir,
               ": a ':' ends a directory in HDF5_PLUGIN_PATH, so no program would find the plugin; "
               "install h5mirror at a path without one"));
  }
  // Where no driver is named, the config can only be meant for the one that exec names.
  const std::string driver = get("HDF5_DRIVER");
  const bool ours_already = driver.empty() || driver == "h5mirror";
  const std::string config = !request.config.empty() ? request.config
                             : ours_already          ? get("HDF5_DRIVER_CONFIG")
                                                     : "";
  EnvironmentChanges changes;
  H5M_ASSIGN_OR_RETURN(changes["HDF5_DRIVER_CONFIG"], MergeConfig(config, FlagItems(request)));
  changes["HDF5_DRIVER"] = "h5mirror";
  changes["HDF5_PLUGIN_PATH"] = Prepend(request.plugin_dir, get("HDF5_PLUGIN_PATH"));
  changes["H5MIRROR_REPORT"] = request.report_dir;
  if (request.wants_connector()) {
    H5M_ASSIGN_OR_RETURN(changes["HDF5_VOL_CONNECTOR"],
                         ConnectorText(request, get("HDF5_VOL_CONNECTOR")));
  }
  if (!request.audit_module.empty()) {
    changes["LD_AUDIT"] = Prepend(request.audit_module, get("LD_AUDIT"));
  }
  return changes;
}

}  // namespace h5mirror::tools
