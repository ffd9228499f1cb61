#include "rpc/cluster_calls.h"

#include <chrono>

#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

// A server of a cluster that tells its name.
class Node final : public v1::Cluster::Service {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    running_ = builder.BuildAndStart();
  }
  ~Node() override { End(); }

  void End() { running_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status GetCluster(grpc::ServerContext*, const v1::GetClusterRequest*,
                          v1::GetClusterResponse* response) override {
    if (is_stopping_) return {grpc::StatusCode::UNAVAILABLE, "the server is stopping"};
    response->set_node(name_);
    return grpc::Status::OK;
  }
  grpc::Status DrainServer(grpc::ServerContext*, const v1::DrainServerRequest* request,
                           v1::DrainServerResponse*) override {
    drained_ = request->server();
    if (!ends_unanswered_) return grpc::Status::OK;
    is_stopping_ = true;
    return {grpc::StatusCode::CANCELLED, "CANCELLED"};
  }
  const std::string& drained() const { return drained_; }
  // The next wish is carried out, and the server ends before its answer.
  void EndUnanswered() { ends_unanswered_ = true; }

 private:
  const std::string name_;
  std::string drained_;
  bool ends_unanswered_ = false;
  bool is_stopping_ = false;
  int port_ = 0;
  std::unique_ptr<grpc::Server> running_;
};

class ClusterCallsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ClusterCalls> Connect(const Node& first, const Node* second) {
    ClientOptions options;
    options.server = first.address();
    options.target = "dns:///" + options.server;
    options.loopback = true;
    if (second != nullptr) {
      options.server += "|" + second->address();
      options.others.push_back({"dns:///" + second->address(), true});
    }
    auto calls = ClusterCalls::Connect(options, absl::Seconds(60), absl::ZeroDuration());
    EXPECT_TRUE(calls.ok()) << calls.status();
    return *std::move(calls);
  }

  Node a_{"a"};
  Node b_{"b"};
};

TEST_F(ClusterCallsTest, AnotherServerIsAskedWhereOneHasStopped) {
  const auto calls = Connect(a_, &b_);
  EXPECT_EQ(calls->GetCluster()->node(), "a");
  a_.End();
  v1::DrainServerRequest request;
  request.set_server("c");
  EXPECT_TRUE(calls->DrainServer(request).ok());
  EXPECT_EQ(b_.drained(), "c");
  EXPECT_EQ(calls->GetCluster()->node(), "b");
}

TEST_F(ClusterCallsTest, AWishThatMayHaveBeenCarriedOutIsNotToldAgain) {
  const auto calls = Connect(a_, &b_);
  a_.EndUnanswered();
  v1::DrainServerRequest request;
  request.set_server("c");
  const absl::Status status = calls->DrainServer(request);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("may have been done"), status.message().npos) << status;
  EXPECT_EQ(b_.drained(), "");
}

TEST_F(ClusterCallsTest, WhereThereIsNoOtherTheErrorNamesTheServer) {
  const auto calls = Connect(a_, nullptr);
  a_.End();
  const absl::Status status = calls->GetCluster().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(a_.address()), status.message().npos) << status;
}

}  // namespace
}  // namespace h5mirror::rpc
