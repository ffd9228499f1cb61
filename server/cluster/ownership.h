// Which cells this server owns, and whether it may answer for them: the node of a cluster, as the
// stores see it.
#ifndef H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_
#define H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/cells.h"
#include "onion_store/store.h"

namespace h5mirror::server {

class ClusterOperations;

// Thread-safe.
class Ownership {
 public:
  virtual ~Ownership() = default;

  // cluster::Cells::has_looked().
  virtual bool has_looked() { return true; }
  // cluster::Cells::CellOf().
  virtual std::optional<std::string> CellOf(std::string_view path) = 0;
  // cluster::Node::Find(), of a caller that has heard of no epoch. May wait for the registry.
  virtual cluster::Route Find(std::string_view cell) = 0;
  // The same of a caller that was sent here as the owner at `seen_epoch`. It reads the registry
  // where this server knows of an older epoch only: once in a beat at most, and for one caller at a
  // time. It is kWait else.
  virtual cluster::Route FindSent(std::string_view cell, uint64_t seen_epoch) = 0;
  // cluster::Cells::RoutesBelow(): by memory. kUnavailable: before the first look at the registry.
  virtual absl::StatusOr<std::map<std::string, cluster::Route>> RoutesBelow(
      std::string_view directory) = 0;
  // This server's ID.
  virtual const std::string& node() = 0;
  // cluster::AckGuard::Check(): by memory alone.
  virtual absl::Status Check(std::string_view cell, uint64_t epoch) = 0;
  // cluster::AckGuard::BeforeAck(): one read of the registry, shared by callers. May wait for it.
  virtual absl::Status BeforeAck(std::string_view cell, uint64_t epoch) = 0;
  // Null: this is no cluster that could be asked. Lives as long as this.
  virtual ClusterOperations* operations() { return nullptr; }
};

// That of the cluster which `store` belongs to; null: it is no cluster's.
Ownership* OwnershipOf(store::Store& store);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_
