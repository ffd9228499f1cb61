#include "rpc/cluster_calls.h"

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "rpc/mirror_stream.h"
#include "rpc/server_route.h"
#include "rpc/status.h"
#include "rpc/texts.h"

namespace h5mirror::rpc {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

class ClusterCallsImpl final : public ClusterCalls {
 public:
  ClusterCallsImpl(ClientOptions options, const std::shared_ptr<grpc::Channel>& channel)
      : options_(std::move(options)), stub_(v1::Cluster::NewStub(channel)) {}

  const ClientOptions& options() const override { return options_; }

  absl::StatusOr<v1::ListCellsResponse> ListCells(const v1::ListCellsRequest& request) override {
    return Call(&v1::Cluster::Stub::ListCells, request);
  }
  absl::StatusOr<v1::GetClusterResponse> GetCluster() override {
    return Call(&v1::Cluster::Stub::GetCluster, v1::GetClusterRequest());
  }
  absl::StatusOr<v1::MoveCellResponse> MoveCell(const v1::MoveCellRequest& request) override {
    return Call(&v1::Cluster::Stub::MoveCell, request);
  }
  absl::Status DrainServer(const v1::DrainServerRequest& request) override {
    return Call(&v1::Cluster::Stub::DrainServer, request).status();
  }
  absl::Status EvictServer(const v1::EvictServerRequest& request) override {
    return Call(&v1::Cluster::Stub::EvictServer, request).status();
  }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Cluster::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&,
                                                                          Response*),
                                const Request& request) {
    H5M_RETURN_IF_ERROR(CheckTexts(request));
    const absl::Time deadline = absl::Now() + kTimeout;
    std::string shown;
    Response response;
    absl::Status status = Attempt(method, request, deadline, response, shown);
    if (RenewCredential(options_, shown, status)) {
      response.Clear();
      status = Attempt(method, request, deadline, response, shown);
    }
    if (!status.ok()) return NameServer(options_, status);
    return response;
  }

  template <typename Request, typename Response>
  absl::Status Attempt(grpc::Status (v1::Cluster::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                       const Request& request, absl::Time deadline, Response& response,
                       std::string& shown) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    shown = Authorize(options_, context);
    return FromGrpc((*stub_.*method)(&context, request, &response));
  }

  const ClientOptions options_;
  const std::unique_ptr<v1::Cluster::Stub> stub_;
};

absl::StatusOr<std::unique_ptr<ClusterCalls>> ConnectOne(const ClientOptions& server,
                                                         absl::Duration timeout,
                                                         absl::Duration refused_max) {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(server);
  H5M_RETURN_IF_ERROR(WaitConnected(*channel, server, timeout, refused_max));
  return std::make_unique<ClusterCallsImpl>(server, channel);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterCalls>> ClusterCalls::Connect(const ClientOptions& options,
                                                                    absl::Duration connect_timeout,
                                                                    absl::Duration refused_max) {
  if (options.others.empty()) return ConnectOne(options, connect_timeout, refused_max);
  const absl::Time begun = absl::Now();
  ServerWalk walk(options, ServerRoute(), begun + connect_timeout);
  walk.SetRefusedUntil(begun + refused_max);
  for (;;) {
    ClientOptions server = walk.Server();
    server.others.clear();
    const absl::Duration limit = walk.Limit(ServerWalk::kConnectMax, absl::Now());
    auto connected = ConnectOne(server, limit, absl::ZeroDuration());
    if (connected.ok()) return connected;
    const std::optional<absl::Duration> pause = walk.Next(connected.status(), absl::Now());
    if (!pause) return walk.error();
    absl::SleepFor(*pause);
  }
}

}  // namespace h5mirror::rpc
