#include "rpc/cluster_calls.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "rpc/grpc_threads.h"
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
    return FromServer((*stub_.*method)(&context, request, &response));
  }

  const ClientOptions options_;
  const std::unique_ptr<v1::Cluster::Stub> stub_;
};

absl::StatusOr<std::unique_ptr<ClusterCalls>> ConnectOne(const ClientOptions& server,
                                                         absl::Duration timeout,
                                                         absl::Duration refused_max) {
  H5M_RETURN_IF_ERROR(CheckGrpcThreads());
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(server);
  H5M_RETURN_IF_ERROR(WaitConnected(*channel, server, timeout, refused_max));
  return std::make_unique<ClusterCallsImpl>(server, channel);
}

absl::StatusOr<std::unique_ptr<ClusterCalls>> ConnectAny(const ClientOptions& options,
                                                         absl::Duration connect_timeout,
                                                         absl::Duration refused_max) {
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

// Of several servers that which has answered last. Where it stops, or is lost, a question is asked
// again at another one. A wish is told once, to a server that has just answered: repeated, it could
// be of another life of its server than the one that was meant.
class AnyServerCalls final : public ClusterCalls {
 public:
  AnyServerCalls(ClientOptions cluster, absl::Duration connect_timeout, absl::Duration refused_max,
                 std::shared_ptr<ClusterCalls> first)
      : cluster_(std::move(cluster)),
        connect_timeout_(connect_timeout),
        refused_max_(refused_max),
        calls_(std::move(first)) {}

  const ClientOptions& options() const override { return cluster_; }

  absl::StatusOr<v1::ListCellsResponse> ListCells(const v1::ListCellsRequest& request) override {
    return Ask([&](ClusterCalls& server) { return server.ListCells(request); });
  }
  absl::StatusOr<v1::GetClusterResponse> GetCluster() override {
    return Ask([](ClusterCalls& server) { return server.GetCluster(); });
  }
  absl::StatusOr<v1::MoveCellResponse> MoveCell(const v1::MoveCellRequest& request) override {
    return Listener()->MoveCell(request);
  }
  absl::Status DrainServer(const v1::DrainServerRequest& request) override {
    return Listener()->DrainServer(request);
  }
  absl::Status EvictServer(const v1::EvictServerRequest& request) override {
    return Listener()->EvictServer(request);
  }

 private:
  template <typename Call>
  std::invoke_result_t<Call, ClusterCalls&> Ask(Call call) {
    auto answer = call(*Server());
    if (!absl::IsUnavailable(answer.status())) return answer;
    auto other = ConnectAny(cluster_, connect_timeout_, refused_max_);
    if (!other.ok()) return answer;
    {
      absl::MutexLock lock(&mutex_);
      calls_ = *std::move(other);
    }
    return call(*Server());
  }
  // One that answers, where any does.
  std::shared_ptr<ClusterCalls> Listener() {
    GetCluster().IgnoreError();
    return Server();
  }
  std::shared_ptr<ClusterCalls> Server() {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }

  const ClientOptions cluster_;
  const absl::Duration connect_timeout_;
  const absl::Duration refused_max_;
  absl::Mutex mutex_;
  std::shared_ptr<ClusterCalls> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterCalls>> ClusterCalls::Connect(const ClientOptions& options,
                                                                    absl::Duration connect_timeout,
                                                                    absl::Duration refused_max) {
  if (options.others.empty()) return ConnectOne(options, connect_timeout, refused_max);
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<ClusterCalls> first,
                       ConnectAny(options, connect_timeout, refused_max));
  return std::make_unique<AnyServerCalls>(options, connect_timeout, refused_max, std::move(first));
}

}  // namespace h5mirror::rpc
