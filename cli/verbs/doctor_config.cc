#include "cli/verbs/doctor_config.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/driver_keys.h"
#include "base/nearest_name.h"
#include "base/server_list.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::tools {
namespace {

constexpr char kName[] = "driver config";

Check UnknownKey(std::string_view key) {
  const std::string_view nearest = NearestName(key, kDriverKeys);
  return {Health::kFail, kName,
          StrCat("HDF5_DRIVER_CONFIG: the driver knows no key ", Quoted(Printable(key)),
                 ": HDF5 opens no file"),
          nearest.empty() ? "docs/reference/driver-keys.md has the keys"
                          : StrCat("did you mean ", nearest, "?")};
}

Check NoKeyAndValue(std::string_view item) {
  return {Health::kFail, kName,
          StrCat("HDF5_DRIVER_CONFIG: ", Quoted(Printable(item)),
                 " is no KEY=VALUE: HDF5 opens no file"),
          "write KEY=VALUE, with ';' between two"};
}

bool IsAmong(std::string_view server, std::string_view list) {
  const std::vector<std::string> servers = ParseServerList(list).servers;
  return std::any_of(servers.begin(), servers.end(),
                     [&](const std::string& each) { return IsSameServer(each, server); });
}

}  // namespace

Check CheckDriverConfig(std::string_view config, std::string_view server) {
  const std::string_view text = ToStd(absl::StripAsciiWhitespace(ToAbsl(config)));
  if (text.starts_with('@')) {
    return {Health::kOk, kName,
            StrCat("is in ", Printable(text.substr(1)), ", which is not read here"), ""};
  }
  std::string servers;
  for (const absl::string_view item : absl::StrSplit(ToAbsl(text), ';', absl::SkipWhitespace())) {
    if (!absl::StrContains(item, '=')) return NoKeyAndValue(ToStd(item));
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    const std::string_view key = ToStd(absl::StripAsciiWhitespace(parts.first));
    if (std::find(kDriverKeys.begin(), kDriverKeys.end(), key) == kDriverKeys.end()) {
      return UnknownKey(key);
    }
    if (key == "server") servers = std::string(absl::StripAsciiWhitespace(parts.second));
  }
  if (servers.empty() || IsAmong(server, servers)) {
    return {Health::kOk, kName, "the driver knows all keys of HDF5_DRIVER_CONFIG", ""};
  }
  return {Health::kWarn, kName,
          StrCat("HDF5_DRIVER_CONFIG has server=", Printable(servers), ", and ", server,
                 " is checked here"),
          "h5mirror --server HOST:PORT doctor checks another"};
}

}  // namespace h5mirror::tools
