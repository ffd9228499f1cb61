#include "server/settings/cluster_settings.h"

#include <algorithm>
#include <set>

#include "base/human.h"
#include "base/setting_values.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "ceph/root_url.h"
#include "cluster/claims.h"
#include "cluster/records.h"
#include "rpc/server_address.h"
#include "server/settings/config.h"
#include "server/settings/listen_address.h"

namespace h5mirror::server {
namespace {

constexpr std::string_view kRados = "rados://";
constexpr std::string_view kFile = "file:";
// A lease is renewed by a beat. Fewer in it, and one that is late would stop all answers.
constexpr int kBeatsInLeaseMin = 3;
constexpr int kSilentBeatsMin = 3;
constexpr size_t kCellsMax = 1000;

absl::Status SetRegistry(std::string_view text, ClusterSettings& cluster) {
  if (text.starts_with(kRados)) {
    const std::string_view rest = text.substr(kRados.size());
    const size_t slash = rest.find('/');
    if (slash == 0 || slash == rest.npos || slash + 1 == rest.size() ||
        rest.find_first_of("?#", 0) != rest.npos) {
      return absl::InvalidArgumentError(
          "must be rados://POOL/OBJECT; Ceph's configuration and key are those of `root`");
    }
    cluster.kind = RegistryKind::kRados;
    cluster.pool = rest.substr(0, slash);
    cluster.object = rest.substr(slash + 1);
    return absl::OkStatus();
  }
  if (text.starts_with(kFile) && text.size() > kFile.size() && text[kFile.size()] == '/') {
    cluster.kind = RegistryKind::kFile;
    cluster.directory = text.substr(kFile.size());
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "must be rados://POOL/OBJECT, or file:/DIR for several servers on one machine");
}

absl::Status SetNode(std::string_view text, ClusterSettings& cluster) {
  H5M_RETURN_IF_ERROR(cluster::CheckServerId(text));
  cluster.node = text;
  return absl::OkStatus();
}

absl::Status SetAddress(std::string_view text, ClusterSettings& cluster) {
  H5M_RETURN_IF_ERROR(rpc::ParseServerAddress(text).status());
  cluster.address = text;
  return absl::OkStatus();
}

absl::Status SetHttpAddress(std::string_view text, ClusterSettings& cluster) {
  const size_t colon = text.find("://");
  const std::string_view scheme = text.substr(0, colon == text.npos ? 0 : colon);
  const std::string_view host = scheme.empty() ? scheme : text.substr(colon + 3);
  const bool is_url = (scheme == "http" || scheme == "https") && !host.starts_with("unix:") &&
                      host.find_first_of("/?#@ ") == host.npos;
  if (!is_url || !rpc::ParseServerAddress(host).ok()) {
    return absl::InvalidArgumentError("must be https://HOST:PORT or http://HOST:PORT");
  }
  cluster.http_address = text;
  return absl::OkStatus();
}

absl::Status AddCell(std::string_view text, ClusterSettings& cluster) {
  H5M_RETURN_IF_ERROR(cluster::CheckCellDirectory(text));
  for (const std::string& other : cluster.cells) {
    if (!cluster::Overlap(text, other)) continue;
    return absl::InvalidArgumentError(
        StrCat("lies in the cell \"", other, "\", or around it: cells lie beside each other"));
  }
  if (cluster.cells.size() == kCellsMax) {
    return absl::InvalidArgumentError(StrCat("there may be ", kCellsMax, " cells at most"));
  }
  cluster.cells.emplace_back(text);
  return absl::OkStatus();
}

absl::Status SetDuration(std::string_view text, absl::Duration min, absl::Duration max,
                         absl::Duration& value) {
  H5M_ASSIGN_OR_RETURN(value, ParseDurationIn(text, min, max));
  return absl::OkStatus();
}

struct TableKey {
  std::string_view name;
  bool repeats;  // may have several values
  absl::Status (*set)(std::string_view text, ClusterSettings& cluster);
};

constexpr TableKey kKeys[] = {
    {"registry", false, SetRegistry},
    {"node", false, SetNode},
    {"address", false, SetAddress},
    {"http_address", false, SetHttpAddress},
    {"cells", true, AddCell},
    {"beat", false,
     [](std::string_view text, ClusterSettings& cluster) {
       return SetDuration(text, absl::Milliseconds(100), absl::Seconds(10), cluster.beat);
     }},
    {"lease", false,
     [](std::string_view text, ClusterSettings& cluster) {
       return SetDuration(text, absl::Milliseconds(400), absl::Minutes(1), cluster.lease);
     }},
};

absl::Status SetPart(const Setting& part, std::set<std::string>& seen, ClusterSettings& cluster) {
  const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                 [&](const TableKey& each) { return each.name == part.key; });
  if (key == std::end(kKeys)) {
    std::vector<std::string_view> names;
    for (const TableKey& each : kKeys) names.push_back(each.name);
    return absl::InvalidArgumentError(
        StrCat(part.source, ": unknown key \"", part.key, "\" in [cluster]; ",
               SuggestKey(part.key, names, "docs/how-to/run-a-cluster.md shows all keys")));
  }
  if (part.is_empty_array) {
    return absl::InvalidArgumentError(
        StrCat(part.source, ": ", part.key, " = []: names none; without the key, the root is one"));
  }
  if (!seen.insert(part.key).second && !key->repeats) {
    return absl::InvalidArgumentError(StrCat(part.source, ": ", part.key, ": has one value"));
  }
  if (const absl::Status status = key->set(part.text, cluster); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(part.source, ": ", part.key, " = \"", part.text, "\": ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterSettings> MakeOne(const Setting& table) {
  ClusterSettings cluster;
  cluster.source = table.source;
  cluster.cells.clear();
  std::set<std::string> seen;
  for (const Setting& part : table.parts) H5M_RETURN_IF_ERROR(SetPart(part, seen, cluster));
  for (const char* key : {"registry", "node"}) {
    if (seen.contains(key)) continue;
    return absl::InvalidArgumentError(StrCat(table.source, ": [cluster] has no ", key));
  }
  if (cluster.cells.empty()) cluster.cells = {""};
  if (cluster.lease < kBeatsInLeaseMin * cluster.beat) {
    return absl::InvalidArgumentError(
        StrCat(table.source, ": [cluster]: lease = ", HumanDuration(cluster.lease), " must be ",
               kBeatsInLeaseMin, " times beat = ", HumanDuration(cluster.beat), " at least"));
  }
  return cluster;
}

}  // namespace

std::string ClusterSettings::Registry() const {
  return kind == RegistryKind::kRados ? StrCat(kRados, pool, "/", object)
                                      : StrCat(kFile, directory);
}

cluster::Timing ClusterSettings::Timing() const {
  cluster::Timing timing;
  timing.beat_every = beat;
  timing.valid_for = lease;
  timing.silent_for = lease * 5 / 4;
  timing.silent_beats =
      std::max(kSilentBeatsMin, static_cast<int>(absl::FDivDuration(timing.silent_for, beat)));
  timing.fence_patience = timing.silent_for + beat;
  timing.claim_patience = 2 * beat;
  timing.reopen_after = 10 * beat;
  return timing;
}

absl::StatusOr<std::optional<ClusterSettings>> MakeClusterSettings(
    absl::Span<const Setting> settings) {
  std::optional<ClusterSettings> cluster;
  for (const Setting& setting : settings) {
    if (setting.key != "cluster") continue;
    H5M_ASSIGN_OR_RETURN(cluster, MakeOne(setting));
  }
  return cluster;
}

absl::Status CheckCluster(const Config& config) {
  if (!config.cluster.has_value()) return absl::OkStatus();
  const ClusterSettings& cluster = *config.cluster;
  const std::string registry =
      StrCat(cluster.source, ": [cluster]: registry = \"", cluster.Registry(), "\": ");
  const bool is_ceph = ceph::IsRootUrl(config.root.native());
  if (cluster.kind == RegistryKind::kRados && !is_ceph) {
    return absl::InvalidArgumentError(
        StrCat(registry, "Ceph keeps a lost server's writes off a root in CephFS only; root is \"",
               config.root.string(),
               "\". A --root of the command line, or of the unit, wins over the configuration"));
  }
  if (cluster.kind == RegistryKind::kFile && is_ceph) {
    return absl::InvalidArgumentError(
        StrCat(registry, "a root in CephFS wants rados://POOL/OBJECT: a file fences nobody"));
  }
  if (config.root_fencing == RootFencing::kNone) {
    return absl::InvalidArgumentError(
        StrCat(registry, "root_fencing = \"none\" says that one server alone serves the root"));
  }
  H5M_RETURN_IF_ERROR(CheckWithinCells(config.quotas, cluster.cells));
  if (!cluster.http_address.empty() && !config.HasHttp()) {
    return absl::InvalidArgumentError(
        StrCat(cluster.source, ": [cluster]: http_address = \"", cluster.http_address,
               "\": there is no http_listen, so nothing answers there"));
  }
  const bool is_reachable =
      !cluster.address.empty() ||
      (!config.listen.empty() && config.listen.front().reach != Reach::kNetwork);
  if (!is_reachable) {
    return absl::InvalidArgumentError(
        StrCat(cluster.source,
               ": [cluster] has no address: HOST:PORT by which clients of other "
               "servers reach this one"));
  }
  return absl::OkStatus();
}

namespace {

// That of `address`; nullopt: it is none of TCP.
std::optional<ListenAddress> AddressOf(const ClusterSettings& cluster) {
  auto address = ParseListenAddress(cluster.address);
  if (!address.ok()) address = ParseListenAddress(StrCat(cluster.address, ":0"));
  if (!address.ok() || address->reach == Reach::kUnixSocket) return std::nullopt;
  return *std::move(address);
}

}  // namespace

std::string HttpAddress(const Config& config, absl::Span<const int> ports) {
  const ClusterSettings& cluster = *config.cluster;
  if (!cluster.http_address.empty()) return cluster.http_address;
  for (size_t i = 0; i < config.http_listen.size() && i < ports.size(); ++i) {
    const ListenAddress& listen = config.http_listen[i];
    if (listen.reach == Reach::kUnixSocket) continue;
    std::string host = listen.host;
    const std::optional<ListenAddress> address = AddressOf(cluster);
    const bool is_known_afar = address.has_value() && address->reach == Reach::kNetwork;
    if (listen.reach == Reach::kNetwork) {
      // Certificates name the host that clients know.
      if (is_known_afar) host = address->host;
      if (host == "0.0.0.0" || host == "::") continue;
    } else if (is_known_afar) {
      continue;  // On a client's machine the URL would be that of any program there.
    }
    if (host.find(':') != host.npos) host = StrCat("[", host, "]");
    return StrCat(config.HasTls() ? "https://" : "http://", host, ":", ports[i]);
  }
  return "";
}

std::string Describe(const ClusterSettings& cluster) {
  std::string text =
      StrCat("[cluster]\nregistry = \"", cluster.Registry(), "\"\nnode = \"", cluster.node, "\"\n");
  if (!cluster.address.empty()) StrAppend(&text, "address = \"", cluster.address, "\"\n");
  if (!cluster.http_address.empty()) {
    StrAppend(&text, "http_address = \"", cluster.http_address, "\"\n");
  }
  StrAppend(&text, "cells = [");
  for (const std::string& cell : cluster.cells) {
    StrAppend(&text, &cell == &cluster.cells.front() ? "\"" : ", \"", cell, "\"");
  }
  StrAppend(&text, "]\nbeat = \"", absl::FormatDuration(cluster.beat), "\"\nlease = \"",
            absl::FormatDuration(cluster.lease), "\"\n");
  return text;
}

}  // namespace h5mirror::server
