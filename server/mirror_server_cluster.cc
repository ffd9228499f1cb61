// What a cluster tells its server.
#include "base/strings.h"
#include "server/cluster/cluster_store.h"
#include "server/metrics/cluster_gauges.h"
#include "server/mirror_server.h"

namespace h5mirror::server {
namespace {

// Text and file of an event of the cluster.
Event OfCluster(const cluster::NodeEvent& event) {
  using Kind = cluster::NodeEvent::Kind;
  const std::string& subject = event.subject;
  const std::string cell = subject.empty() ? "the root" : StrCat("\"", subject, "\"");
  switch (event.kind) {
    case Kind::kTakenOver:
      return {.kind = EventKind::kCellTakenOver,
              .file = subject,
              .text = StrCat("the server of ", cell, " was lost, and this one serves it now")};
    case Kind::kHandedOver:
      return {.kind = EventKind::kCellMoved,
              .file = subject,
              .text = StrCat("this server has given ", cell, " to another one, in order")};
    case Kind::kDrained:
      return {.kind = EventKind::kServerDrained,
              .text = StrCat("the server ", subject, " has handed over its last cell")};
    case Kind::kEvicted:
      return {.kind = EventKind::kServerEvicted,
              .text = StrCat("the server ", subject, " was given up, as an operator wanted it")};
    case Kind::kFenced:
      break;
  }
  return {.kind = EventKind::kServerFenced,
          .text = StrCat("the server ", subject, " was lost, and can write nothing more")};
}

}  // namespace

ArchiveService::Finder MirrorServer::Services::FindArchive(Shared& shared) {
  using Found = absl::StatusOr<std::shared_ptr<store::ObjectStore>>;
  if (auto* const cells = dynamic_cast<ClusterStore*>(&shared.store); cells != nullptr) {
    return [cells](const std::string& name) -> Found { return cells->ArchiveOf(name); };
  }
  // It outlives all calls.
  return [archive = shared.archive_keeper.archive()](const std::string&) -> Found {
    return std::shared_ptr<store::ObjectStore>(std::shared_ptr<void>(), archive);
  };
}

void MirrorServer::ListenToCluster() {
  auto* const cells = dynamic_cast<ClusterStore*>(&shared_.store);
  if (cells == nullptr) return;
  cells->SetRetireListener([this](const std::string& prefix) {
    services_.snapshots.LookAgainBelow(prefix);
    return services_.mirror.EndBelow(prefix);
  });
  // The files of a cell that has come count as after a start, and those of one that has gone do
  // not.
  cells->SetCellsListener(
      [this](const std::string& cell) { shared_.quotas.ledger.CountAgain(cell); });
  if (cells->operations() == nullptr) return;
  cells->operations()->SetListener(
      [this](const cluster::NodeEvent& event) { notifier_->Notify(OfCluster(event)); });
}

void MirrorServer::LeaveCluster() {
  auto* const cells = dynamic_cast<ClusterStore*>(&shared_.store);
  if (cells == nullptr) return;
  cells->SetRetireListener(nullptr);
  cells->SetCellsListener(nullptr);
  if (cells->operations() != nullptr) cells->operations()->SetListener(nullptr);
}

void MirrorServer::SampleCluster() {
  ClusterOperations* const cluster = OperationsOf(shared_.store);
  if (cluster == nullptr) return;
  const cluster::NodeCounts counts = cluster->Counts();
  ClusterGauges::Get().Set({.cells = static_cast<double>(counts.cells_owned),
                            .cells_unserved = static_cast<double>(counts.cells_unserved),
                            .beat_age_seconds = absl::ToDoubleSeconds(cluster->OwnBeatAge()),
                            .takeovers = static_cast<double>(counts.takeovers),
                            .takeover_seconds = absl::ToDoubleSeconds(counts.takeover_time),
                            .handovers = static_cast<double>(counts.handovers),
                            .drains = static_cast<double>(counts.drains),
                            .fenced = static_cast<double>(counts.fenced),
                            .evictions = static_cast<double>(counts.evictions)});
}

}  // namespace h5mirror::server
