#include "swmr_agent/upstream.h"

#include <atomic>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "rpc/elsewhere.h"
#include "rpc/status.h"

namespace h5mirror::agent {
namespace {

// One server of a cluster: tells rights, or sends callers to another one.
class Node final : public v1::Agents::Service {
 public:
  Node() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    running_ = builder.BuildAndStart();
  }
  ~Node() override { running_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Give(const std::string& other) {
    absl::MutexLock lock(&mutex_);
    other_ = other;
  }

  grpc::Status CheckReader(grpc::ServerContext* /*context*/,
                           const v1::CheckReaderRequest* /*request*/,
                           v1::CheckReaderResponse* response) override {
    ++calls;
    absl::MutexLock lock(&mutex_);
    if (!other_.empty()) return rpc::ToGrpc(rpc::ElsewhereError({other_, "", 1}));
    response->set_may_read(true);
    return grpc::Status::OK;
  }
  std::atomic<int> calls = 0;

 private:
  int port_ = 0;
  absl::Mutex mutex_;
  std::string other_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> running_;
};

rpc::ClientOptions OptionsOf(const std::string& server) {
  rpc::ClientOptions options;
  options.server = server;
  options.target = "dns:///" + server;
  options.loopback = true;
  return options;
}

// No machine is too slow for them.
UpstreamTimes Times() {
  return {.connect = absl::Minutes(5), .check = absl::Minutes(5), .sleep = [](absl::Duration) {}};
}

v1::CheckReaderRequest Request() {
  v1::CheckReaderRequest request;
  request.set_name("a.h5");
  request.set_user("u");
  return request;
}

TEST(UpstreamTest, RightsAreAskedForAtTheServerThatHasTheFile) {
  Node a, b;
  a.Give(b.address());
  Upstream upstream(OptionsOf(a.address()), Times());
  for (int i = 0; i < 2; ++i) {
    const auto answer = upstream.CheckReader(Request());
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(answer->may_read());
  }
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(b.calls, 2);
}

TEST(UpstreamTest, ACircleIsAnError) {
  Node a, b;
  a.Give(b.address());
  b.Give(a.address());
  Upstream upstream(OptionsOf(a.address()), Times());
  const absl::Status status = upstream.CheckReader(Request()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("in a circle"));
}

TEST(UpstreamTest, ReadersMayMeanAnyServerOfTheList) {
  rpc::ClientOptions options = OptionsOf("a:1");
  options.others = {{"dns:///b:2", false}};
  const Upstream upstream(options);
  EXPECT_TRUE(upstream.Has("dns:///a:1"));
  EXPECT_TRUE(upstream.Has("dns:///b:2"));
  EXPECT_FALSE(upstream.Has("dns:///c:3"));
}

}  // namespace
}  // namespace h5mirror::agent
