// What a cluster tells its server.
#include "server/cluster/cluster_store.h"
#include "server/metrics/cluster_gauges.h"
#include "server/mirror_server.h"

namespace h5mirror::server {
void MirrorServer::ListenToCluster() {
  auto* const cells = dynamic_cast<ClusterStore*>(&shared_.store);
  if (cells == nullptr) return;
  cells->SetRetireListener([this](const std::string& prefix) {
    services_.snapshots.LookAgainBelow(prefix);
    return services_.mirror.EndBelow(prefix);
  });
}

void MirrorServer::LeaveCluster() {
  auto* const cells = dynamic_cast<ClusterStore*>(&shared_.store);
  if (cells == nullptr) return;
  cells->SetRetireListener(nullptr);
}

void MirrorServer::SampleCluster() {
  ClusterOperations* const cluster = OperationsOf(shared_.store);
  if (cluster == nullptr) return;
  const cluster::NodeCounts counts = cluster->Counts();
  ClusterGauges::Get().Set({.cells = static_cast<double>(counts.cells_owned),
                            .beat_age_seconds = absl::ToDoubleSeconds(cluster->OwnBeatAge()),
                            .takeovers = static_cast<double>(counts.takeovers),
                            .takeover_seconds = absl::ToDoubleSeconds(counts.takeover_time),
                            .handovers = static_cast<double>(counts.handovers),
                            .drains = static_cast<double>(counts.drains),
                            .fenced = static_cast<double>(counts.fenced)});
}

}  // namespace h5mirror::server
