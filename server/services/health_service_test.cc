#include "server/services/health_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"

namespace h5mirror::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One watching client.
struct Watcher {
  Watcher(Health::Stub& stub, const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    reader = stub.Watch(&context, request);
  }
  // The next state; UNKNOWN when the call has ended.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
};

class HealthServiceTest : public ::testing::Test {
 protected:
  HealthServiceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    stub_ = Health::NewStub(server_->InProcessChannel({}));
  }
  ~HealthServiceTest() override {
    health_.StopServing();
    server_->Shutdown();
  }
  grpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Check(&context, request, response);
  }

  HealthService health_{{"h5mirror.v1.Mirror"}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, CheckSaysWhetherItServes) {
  HealthCheckResponse response;
  for (const char* service : {"", "h5mirror.v1.Mirror"}) {
    ASSERT_TRUE(Check(service, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  }
  health_.StartServing();
  for (const char* service : {"", "h5mirror.v1.Mirror"}) {
    ASSERT_TRUE(Check(service, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
}

TEST_F(HealthServiceTest, UnknownServiceIsNotFound) {
  HealthCheckResponse response;
  const grpc::Status status = Check("no.such.Service", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(status.error_message().find("no.such.Service"), std::string::npos);
}

TEST_F(HealthServiceTest, WatcherIsToldEachChangeAndTheEnd) {
  Watcher watcher(*stub_, "h5mirror.v1.Mirror");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  health_.StartServing();
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVING);
  health_.StopServing();
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watcher.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, WatcherOfAnUnknownServiceIsToldSo) {
  Watcher watcher(*stub_, "no.such.Service");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  health_.StopServing();
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::UNKNOWN);
}

TEST_F(HealthServiceTest, WatchersAreLimitedAndThoseWhoLeaveMakeRoom) {
  health_.StartServing();
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < HealthService::kWatchersMax; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, ""));
    ASSERT_EQ(watchers.back()->Next(), HealthCheckResponse::SERVING);
  }
  Watcher refused(*stub_, "");
  EXPECT_EQ(refused.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(refused.reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  watchers.front()->context.TryCancel();
  watchers.front()->reader->Finish();
  for (int i = 0; i < 100; ++i) {
    Watcher next(*stub_, "");
    if (next.Next() == HealthCheckResponse::SERVING) return;
    next.reader->Finish();
    absl::SleepFor(absl::Milliseconds(50));
  }
  FAIL() << "no room after a watcher has left";
}

}  // namespace
}  // namespace h5mirror::server
