#include "cluster/rados/rados_cluster.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cluster/rados/ceph_fencer.h"
#include "cluster/rados/connection.h"
#include "cluster/rados/rados_registry.h"

namespace h5mirror::cluster {
namespace {

class Opened final : public RadosCluster {
 public:
  explicit Opened(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), registry_(*connection_), fencer_(*connection_) {}

  RadosRegistry& registry() override { return registry_; }
  Fencer& fencer() override { return fencer_; }
  std::vector<std::string> Addresses() override { return connection_->Addresses(); }

 private:
  const std::unique_ptr<Connection> connection_;
  RadosRegistry registry_;
  CephFencer fencer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RadosCluster>> OpenRadosCluster(const RadosPlace& place) {
  H5M_ASSIGN_OR_RETURN(auto connection, Connection::Open(place));
  auto opened = std::make_unique<Opened>(std::move(connection));
  H5M_RETURN_IF_ERROR(opened->registry().Prepare());
  return std::unique_ptr<RadosCluster>(std::move(opened));
}

}  // namespace h5mirror::cluster
