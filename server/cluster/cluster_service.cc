#include "server/cluster/cluster_service.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// By number of the states of records, which begin with 0.
v1::ServerState ToProto(cluster::ServerState state) {
  return static_cast<v1::ServerState>(static_cast<int>(state) + v1::SERVER_STATE_UP);
}
v1::CellState ToProto(cluster::CellState state) {
  return static_cast<v1::CellState>(static_cast<int>(state) + v1::CELL_STATE_FREE);
}
static_assert(static_cast<int>(cluster::ServerState::kFenced) + v1::SERVER_STATE_UP ==
              v1::SERVER_STATE_FENCED);
static_assert(static_cast<int>(cluster::CellState::kDraining) + v1::CELL_STATE_FREE ==
              v1::CELL_STATE_DRAINING);

void Fill(const ClusterOperations::State& state, v1::GetClusterResponse& response) {
  response.set_node(state.node);
  for (const auto& [id, record] : state.view.servers) {
    v1::ClusterServer& server = *response.add_servers();
    server.set_id(id);
    server.set_address(record.listen);
    server.set_state(ToProto(record.state));
    server.set_epoch(record.epoch);
    server.set_version(record.version);
    server.set_http(record.http);
    const auto age = state.beat_ages.find(id);
    const bool is_known = age != state.beat_ages.end() && age->second != absl::InfiniteDuration();
    if (is_known && cluster::IsAlive(record.state)) {
      server.set_beat_age_ms(absl::ToInt64Milliseconds(age->second));
    }
  }
  for (const auto& [directory, record] : state.view.cells) {
    v1::ClusterCell& cell = *response.add_cells();
    cell.set_directory(directory);
    cell.set_state(ToProto(record.state));
    cell.set_owner(record.owner);
    cell.set_epoch(record.epoch);
    const std::string to = state.view.MovesTo(directory);
    if (to != record.owner) cell.set_moves_to(to);
  }
}

absl::StatusOr<cluster::DrainWish> WishOf(v1::DrainKind kind) {
  switch (kind) {
    case v1::DRAIN_KIND_STAY:
      return cluster::DrainWish::kStay;
    case v1::DRAIN_KIND_EXIT:
      return cluster::DrainWish::kExit;
    case v1::DRAIN_KIND_UNDO:
      return cluster::DrainWish::kNone;
    default:
      return absl::InvalidArgumentError(StrCat("kind ", static_cast<int>(kind), " is none"));
  }
}

}  // namespace

grpc::Status ClusterService::Operate(
    const grpc::ServerContext& context, const char* method, std::string shown,
    absl::FunctionRef<absl::Status(ClusterOperations&, const Principal&)> body) {
  std::vector<Right> rights = {Right::kOperate};
  // Agents have the right to operate, so that they may ask about their readers.
  if (!shown.empty()) rights.push_back(Right::kDelete);
  Needs needs;
  for (const Right right : rights) needs.push_back({right, ""});
  needs[0].shown = std::move(shown);
  return RunCall(environment_, context, method, std::move(needs),
                 [&](const Principal& principal) -> absl::Status {
                   const Authenticator& authenticator = environment_.authenticator;
                   // A server has files of everybody: a right to some of them is not enough.
                   for (const Right right : rights) {
                     H5M_RETURN_IF_ERROR(authenticator.CheckAllFiles(principal, right));
                   }
                   if (cluster_ != nullptr) return body(*cluster_, principal);
                   return absl::FailedPreconditionError(
                       "this server is in no cluster: its configuration has no [cluster] table");
                 });
}

grpc::Status ClusterService::ListCells(grpc::ServerContext* context,
                                       const v1::ListCellsRequest* request,
                                       v1::ListCellsResponse* response) {
  return RunCall(environment_, *context, "ListCells", AnyFile(Right::kRead),
                 [&](const Principal& principal) -> absl::Status {
                   if (cluster_ == nullptr) return absl::OkStatus();
                   const std::string& below = request->directory();
                   H5M_ASSIGN_OR_RETURN(const auto routes, cluster_->RoutesBelow(below));
                   for (const auto& [directory, route] : routes) {
                     // Its name, and the server's address, are nothing to others.
                     const std::string& asked = below.size() > directory.size() ? below : directory;
                     if (!environment_.authenticator.MayBelow(principal, asked)) continue;
                     v1::ServedCell& cell = *response->add_cells();
                     cell.set_directory(directory);
                     cell.set_address(route.listen);
                     cell.set_is_here(route.kind == cluster::RouteKind::kServe);
                   }
                   return absl::OkStatus();
                 });
}

grpc::Status ClusterService::GetCluster(grpc::ServerContext* context,
                                        const v1::GetClusterRequest* /*request*/,
                                        v1::GetClusterResponse* response) {
  return Operate(*context, "GetCluster", "",
                 [&](ClusterOperations& cluster, const Principal&) -> absl::Status {
                   H5M_ASSIGN_OR_RETURN(const ClusterOperations::State state, cluster.Look());
                   Fill(state, *response);
                   return absl::OkStatus();
                 });
}

grpc::Status ClusterService::MoveCell(grpc::ServerContext* context,
                                      const v1::MoveCellRequest* request,
                                      v1::MoveCellResponse* response) {
  const std::string what = StrCat(request->directory(), " to ", request->server());
  return Operate(*context, "MoveCell", what,
                 [&](ClusterOperations& cluster, const Principal& principal) -> absl::Status {
                   H5M_ASSIGN_OR_RETURN(const uint64_t epoch,
                                        cluster.Move(request->directory(), request->server()));
                   response->set_epoch(epoch);
                   spdlog::info("cluster: move of the cell {} is wanted ({})", Quoted(what),
                                CallerName(principal));
                   return absl::OkStatus();
                 });
}

grpc::Status ClusterService::DrainServer(grpc::ServerContext* context,
                                         const v1::DrainServerRequest* request,
                                         v1::DrainServerResponse* /*response*/) {
  const std::string kind = v1::DrainKind_Name(request->kind());
  return Operate(*context, "DrainServer", StrCat(request->server(), " ", kind),
                 [&](ClusterOperations& cluster, const Principal& principal) -> absl::Status {
                   H5M_ASSIGN_OR_RETURN(const cluster::DrainWish wish, WishOf(request->kind()));
                   H5M_RETURN_IF_ERROR(cluster.Drain(request->server(), wish));
                   spdlog::info("cluster: {} of the server {} is wanted ({})", kind,
                                Quoted(request->server()), CallerName(principal));
                   return absl::OkStatus();
                 });
}

grpc::Status ClusterService::EvictServer(grpc::ServerContext* context,
                                         const v1::EvictServerRequest* request,
                                         v1::EvictServerResponse* /*response*/) {
  return Operate(*context, "EvictServer", request->server(),
                 [&](ClusterOperations& cluster, const Principal& principal) -> absl::Status {
                   H5M_RETURN_IF_ERROR(cluster.Evict(request->server(), request->force()));
                   spdlog::warn("cluster: the server {} is to be given up ({})",
                                Quoted(request->server()), CallerName(principal));
                   return absl::OkStatus();
                 });
}

}  // namespace h5mirror::server
