// The [cluster] table of the configuration: one of several servers that share a root
// (docs/how-to/run-a-cluster.md).
#ifndef H5MIRROR_SERVER_SETTINGS_CLUSTER_SETTINGS_H_
#define H5MIRROR_SERVER_SETTINGS_CLUSTER_SETTINGS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/timing.h"

namespace h5mirror::server {

struct Config;
struct Setting;

enum class RegistryKind {
  kRados,  // rados://POOL/OBJECT, for a root in CephFS
  kFile,   // file:/DIR, for several processes on one machine
};

struct ClusterSettings {
  RegistryKind kind = RegistryKind::kFile;
  std::string pool;          // of kRados
  std::string object;        // of kRados
  std::string directory;     // of kFile, absolute
  std::string node;          // the server's ID: the same at each start, of no other server
  std::string address;       // for clients; empty: the first of `listen`
  std::string http_address;  // for those of HTTP, "https://host:port"; empty: as HttpAddress() says
  std::vector<std::string> cells = {""};
  absl::Duration beat = absl::Seconds(1);
  absl::Duration lease = absl::Seconds(4);
  std::string source;  // "/etc/h5mirror/h5mirrord.toml:12"

  // "rados://POOL/OBJECT" or "file:/DIR".
  std::string Registry() const;
  // The protocol's times: a server is silent after 5/4 of `lease`.
  cluster::Timing Timing() const;
};

// The [cluster] table among `settings`; nullopt: there is none. kInvalidArgument names its source,
// key and value.
absl::StatusOr<std::optional<ClusterSettings>> MakeClusterSettings(
    absl::Span<const Setting> settings);

// Whether the other settings are those of a server of a cluster. kInvalidArgument names the key.
absl::Status CheckCluster(const Config& config);

// The URL by which other servers of the cluster send clients of HTTP here: http_address, else the
// first of http_listen on TCP, by the host of `address` if it is for other machines. One of
// loopback counts only where `address` is none of another host. Empty: there is none. `ports`:
// those that http_listen got, in its order.
std::string HttpAddress(const Config& config, absl::Span<const int> ports);

// The table as in the configuration.
std::string Describe(const ClusterSettings& cluster);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_CLUSTER_SETTINGS_H_
