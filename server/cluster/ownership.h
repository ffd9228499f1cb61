// Which cells this server owns, and whether it may answer for them: the node of a cluster, as the
// stores see it.
#ifndef H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_
#define H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cluster/cells.h"

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
  // cluster::AckGuard::Check(): by memory alone.
  virtual absl::Status Check(std::string_view cell, uint64_t epoch) = 0;
  // cluster::AckGuard::BeforeAck(): one read of the registry, shared by callers. May wait for it.
  virtual absl::Status BeforeAck(std::string_view cell, uint64_t epoch) = 0;
  // Null: this is no cluster that could be asked. Lives as long as this.
  virtual ClusterOperations* operations() { return nullptr; }
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_OWNERSHIP_H_
