#include "server/cluster/prepare_registry.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "ceph/root_url.h"
#include "cluster/claims.h"
#include "cluster/records.h"

namespace h5mirror::server {
namespace {

using Json = nlohmann::json;

// The root of all servers.
constexpr char kRootName[] = "p/root";
// The times of all servers: those of one must fit those of the others.
constexpr char kTimesName[] = "p/times";
constexpr int kTriesMax = 20;

std::string EncodeRoot(const std::string& root) {
  return Json{{"root", root}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// kDataLoss: the text has another form.
absl::StatusOr<std::string> DecodeRoot(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("root") && json["root"].is_string()) return json["root"];
  return absl::DataLossError(
      StrCat("the registry has a text of another form in ", kRootName, ": ", text));
}

absl::Status CheckRoot(const ClusterSettings& settings, const std::string& found,
                       const std::string& root) {
  H5M_ASSIGN_OR_RETURN(const std::string of_cluster, DecodeRoot(found));
  if (IsOneRoot(of_cluster, root)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(settings.source, ": [cluster]: registry = \"", settings.Registry(),
             "\" is that of the servers with root = \"", of_cluster, "\", and root = \"", root,
             "\" here: name the right one of both. Where the root was moved, stop all servers, and "
             "name another registry"));
}

absl::StatusOr<std::optional<std::string>> FoundRoot(cluster::Registry& registry) {
  H5M_ASSIGN_OR_RETURN(const cluster::RegistryView texts, registry.Read({std::string(kRootName)}));
  return cluster::TextOf(texts, kRootName);
}

// kAborted: another server has set it meanwhile.
absl::Status KeepRootOnce(cluster::Registry& registry, const ClusterSettings& settings,
                          const std::string& root) {
  H5M_ASSIGN_OR_RETURN(const std::optional<std::string> found, FoundRoot(registry));
  if (found.has_value()) return CheckRoot(settings, *found, root);
  const cluster::Expectation expected{kRootName, found};
  const cluster::NewText changed{kRootName, EncodeRoot(root)};
  return registry.CompareAndSet({&expected, 1}, {&changed, 1});
}

bool IsThere(const std::filesystem::path& root) {
  std::error_code error;
  return ceph::IsRootUrl(root.native()) || std::filesystem::exists(root, error);
}

std::string TimesOf(const ClusterSettings& settings) {
  return StrCat(R"({"beat_ms":)", absl::ToInt64Milliseconds(settings.beat), R"(,"lease_ms":)",
                absl::ToInt64Milliseconds(settings.lease), "}");
}

// beat = "1s", lease = "4s" of a text of TimesOf(); others as they are.
std::string DescribeTimes(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_number_unsigned();
  };
  if (!has("beat_ms") || !has("lease_ms")) return text;
  const auto time = [&](const char* key) {
    return absl::FormatDuration(absl::Milliseconds(json[key].get<int64_t>()));
  };
  return StrCat("beat = \"", time("beat_ms"), "\", lease = \"", time("lease_ms"), "\"");
}

// OK: the registry has these times. kAborted: it has changed meanwhile.
absl::Status SetTimes(cluster::Registry& registry, const ClusterSettings& settings) {
  H5M_ASSIGN_OR_RETURN(cluster::RegistryView texts, registry.ReadAll());
  const std::string wanted = TimesOf(settings);
  const auto found = cluster::TextOf(texts, kTimesName);
  if (found == wanted) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const cluster::ClusterView view, cluster::DecodeView(std::move(texts)));
  std::vector<cluster::Expectation> expected = {{kTimesName, found}};
  for (const auto& [id, record] : view.servers) {
    if (id != settings.node && !cluster::IsOver(record.state)) {
      return absl::InvalidArgumentError(
          StrCat(settings.source, ": [cluster]: ", DescribeTimes(wanted), " here, and ",
                 found.has_value() ? DescribeTimes(*found) : std::string("other times"),
                 " in the registry: all servers must have the same. To change them, stop all "
                 "servers; ",
                 id, " has not stopped. If it is lost, start a server with the former times, ",
                 "which gives it up, and stop that one"));
    }
    expected.push_back(
        {cluster::ServerName(id), cluster::TextOf(view.texts, cluster::ServerName(id))});
  }
  return registry.CompareAndSet(expected, {{kTimesName, wanted}});
}

absl::Status CheckCells(cluster::Registry& registry, const ClusterSettings& settings) {
  H5M_ASSIGN_OR_RETURN(cluster::RegistryView texts, registry.ReadAll());
  H5M_ASSIGN_OR_RETURN(const cluster::ClusterView view, cluster::DecodeView(std::move(texts)));
  for (const auto& [cell, record] : view.cells) {
    const auto& cells = settings.cells;
    if (std::find(cells.begin(), cells.end(), cell) != cells.end()) continue;
    return absl::InvalidArgumentError(StrCat(settings.source, ": [cluster]: the registry has the ",
                                             "cell \"", cell, "\", and `cells` does not: all ",
                                             "servers must name all cells"));
  }
  return absl::OkStatus();
}

// Repeats `attempt` while others change the registry meanwhile.
absl::Status Repeat(const std::function<absl::Status()>& attempt) {
  absl::Status status;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    status = attempt();
    if (!absl::IsAborted(status)) break;
  }
  return status;
}

}  // namespace

std::string PlaceOfRoot(const std::filesystem::path& root) {
  if (const auto url = ceph::ParseRootUrl(root.native()); url.ok()) {
    return ceph::RootUrl{url->path, "", "", url->filesystem}.ToString();
  }
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(root, error).lexically_normal();
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(place, error);
  if (!error) place = canonical;
  if (!place.has_filename() && place.has_relative_path()) place = place.parent_path();
  return place.string();
}

bool IsOneRoot(const std::string& root, const std::string& other) {
  if (root == other) return true;
  const auto one = ceph::ParseRootUrl(root);
  const auto two = ceph::ParseRootUrl(other);
  if (!one.ok() || !two.ok() || one->path != two->path) return false;
  return one->filesystem.empty() || two->filesystem.empty() || one->filesystem == two->filesystem;
}

absl::Status KeepRoot(cluster::Registry& registry, const ClusterSettings& settings,
                      const std::filesystem::path& root) {
  const std::string place = PlaceOfRoot(root);
  return Repeat([&] { return KeepRootOnce(registry, settings, place); });
}

absl::Status PrepareRegistry(cluster::Registry& registry, const ClusterSettings& settings,
                             const std::filesystem::path& root) {
  H5M_ASSIGN_OR_RETURN(const std::optional<std::string> found, FoundRoot(registry));
  if (found.has_value() && IsThere(root)) {
    H5M_RETURN_IF_ERROR(CheckRoot(settings, *found, PlaceOfRoot(root)));
  }
  H5M_RETURN_IF_ERROR(Repeat([&] { return SetTimes(registry, settings); }));
  H5M_RETURN_IF_ERROR(CheckCells(registry, settings));
  for (const std::string& cell : settings.cells) {
    const absl::Status made = cluster::CreateCell(registry, cell);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
