#include "client_vfd/session/reader_calls.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "base/owned_fd.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/read_ahead.h"

namespace h5mirror::vfd {
namespace {

// Longer than a trial, and than a server gets that has just been waited for in vain.
constexpr absl::Duration kSlow = absl::Milliseconds(500);
constexpr absl::Duration kTimeout = absl::Minutes(1);

// Answers slowly, or refuses all.
class SlowServer final : public v1::Versions::Service {
 public:
  SlowServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    running_ = builder.BuildAndStart();
  }
  ~SlowServer() override { running_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Refuse(grpc::StatusCode code) {
    absl::MutexLock lock(&mutex_);
    code_ = code;
  }
  // For the file `name`.
  int calls(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    return calls_[name];
  }

  grpc::Status ReadVersion(grpc::ServerContext* /*context*/, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override {
    {
      absl::MutexLock lock(&mutex_);
      ++calls_[request->name()];
      if (code_ != grpc::StatusCode::OK) return {code_, "no"};
    }
    absl::SleepFor(kSlow);
    v1::ReadVersionResponse answer;
    answer.set_offset(request->offset());
    answer.set_data(std::string(request->length_bytes(), 'x'));
    writer->Write(answer);
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  absl::Mutex mutex_;
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  grpc::StatusCode code_ ABSL_GUARDED_BY(mutex_) = grpc::StatusCode::OK;
  std::unique_ptr<grpc::Server> running_;
};

class ReaderCallsTest : public ::testing::Test {
 protected:
  ReaderCallsTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "h5m-calls-XXXXXX").string();
    directory_ = mkdtemp(path.data());
    // An agent that stands still: connections are made, and nobody takes them.
    const std::string name = directory_ / "agent.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof(address.sun_path) - 1);
    agent_ = OwnedFd(socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_EQ(bind(agent_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(agent_.get(), 16), 0);
    direct_.server = server_.address();
    direct_.target = "dns:///" + server_.address();
    direct_.loopback = true;
    direct_.agent = name;
    direct_.passes_agent = true;
  }
  ~ReaderCallsTest() override { std::filesystem::remove_all(directory_); }

  static absl::Status Read(ReaderCalls& calls, const ReaderServer& server, const std::string& file,
                           rpc::CallCanceller* canceller = nullptr) {
    v1::ReadVersionRequest request;
    request.set_name(file);
    request.set_version(1);
    request.set_length_bytes(100);
    uint64_t bytes = 0;
    const absl::Status status = calls.ReadVersion(
        server, request, kTimeout,
        [&](const v1::ReadVersionResponse& answer) {
          bytes += answer.data().size();
          return absl::OkStatus();
        },
        canceller);
    EXPECT_EQ(bytes, status.ok() ? 100 : 0);
    return status;
  }

  std::filesystem::path directory_;
  OwnedFd agent_;
  SlowServer server_;
  ReaderServer direct_;
};

TEST_F(ReaderCallsTest, ASlowServerHasAllOfItsTimeWhereTheAgentIsSilentToo) {
  ReaderCalls calls({.agent = absl::Milliseconds(100)});
  EXPECT_TRUE(Read(calls, direct_, "a.h5").ok());
  EXPECT_TRUE(Read(calls, direct_, "b.h5").ok());
  EXPECT_EQ(server_.calls("b.h5"), 1) << "it is known as slow";
}

TEST_F(ReaderCallsTest, AStreamThatIsTooSlowIsNoSignOfALostServer) {
  ReaderCalls calls({.agent = absl::Milliseconds(100)});
  rpc::CallCanceller canceller;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Read(calls, direct_, "a.h5", &canceller)));
  ReaderServer plain = direct_;
  plain.agent = "off";
  plain.passes_agent = false;
  EXPECT_TRUE(Read(calls, plain, "b.h5").ok());
  EXPECT_TRUE(Read(calls, direct_, "c.h5").ok());
  EXPECT_EQ(server_.calls("c.h5"), 1) << "after the stream it is not tried again";
}

TEST_F(ReaderCallsTest, AServerThatRefusesAUserIsNotAskedAgainWithThatToken) {
  ReaderCalls calls({.agent = kTimeout, .not_direct = absl::ZeroDuration()});
  direct_.agent = "off";
  direct_.token = "h5m_none";
  server_.Refuse(grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(absl::IsPermissionDenied(Read(calls, direct_, "a.h5")));
  EXPECT_EQ(server_.calls("a.h5"), 2) << "the second one in place of the agent";
  EXPECT_TRUE(absl::IsPermissionDenied(Read(calls, direct_, "b.h5")));
  EXPECT_EQ(server_.calls("b.h5"), 1);
  direct_.token = "h5m_new";
  EXPECT_TRUE(absl::IsPermissionDenied(Read(calls, direct_, "c.h5")));
  EXPECT_EQ(server_.calls("c.h5"), 2);
}

}  // namespace
}  // namespace h5mirror::vfd
