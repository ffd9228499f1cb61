#include "swmr_agent/user_servers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "h5mirror/v1/versions.grpc.pb.h"

namespace h5mirror::agent {
namespace {

Config WithoutServers() {
  Config config;
  config.servers.emplace_back();
  config.servers.back().target = "dns:///127.0.0.1:1";
  return config;
}

class UserServersTest : public testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/h5m-users-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    ASSERT_EQ(chmod(directory, 0755), 0);
  }
  void TearDown() override {
    servers_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Listen(size_t users_max = UserServers::kUsersMax) {
    auto servers = UserServers::Listen(path(), 0666, agent_, users_max);
    ASSERT_TRUE(servers.ok()) << servers.status();
    servers_ = *std::move(servers);
  }
  std::string path() const { return directory_ + "/agent.sock"; }
  // A call that says no server: its answer comes from the agent itself.
  grpc::Status Call() const {
    // Not one that gRPC has connected before.
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel("unix:" + path(), grpc::InsecureChannelCredentials(), own);
    const auto stub = v1::Versions::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::FindVersionResponse response;
    return stub->FindVersion(&context, {}, &response);
  }
  // Connects as another user, and waits until the agent hangs up (true), or `stays` a while.
  bool IsHungUpOnAs(uid_t uid) const {
    const pid_t child = fork();
    if (child == 0) {
      if (setresuid(uid, uid, uid) != 0) _exit(2);
      const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::strcpy(name.sun_path, path().c_str());
      if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) _exit(2);
      // A server of gRPC begins with its SETTINGS.
      char byte;
      _exit(recv(fd, &byte, 1, 0) == 1 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_NE(WEXITSTATUS(status), 2);
    return WEXITSTATUS(status) == 1;
  }

  std::string directory_;
  Agent agent_{WithoutServers()};
  std::unique_ptr<UserServers> servers_;
};

TEST_F(UserServersTest, AUserHasOneServerForAllConnections) {
  Listen();
  EXPECT_EQ(servers_->user_count(), 0);
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Call();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  }
  EXPECT_EQ(servers_->user_count(), 1);
}

TEST_F(UserServersTest, EachUserHasItsOwnAndTooManyAreHungUpOn) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to be other users";
  Listen(/*users_max=*/2);
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(IsHungUpOnAs(4711));
  EXPECT_EQ(servers_->user_count(), 2);
  EXPECT_TRUE(IsHungUpOnAs(4712)) << "nobody has been idle for long";
  EXPECT_FALSE(IsHungUpOnAs(4711));
  EXPECT_EQ(servers_->user_count(), 2);
}

TEST_F(UserServersTest, AfterItsEndNobodyIsServed) {
  Listen();
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  servers_->Shutdown(absl::Now() + absl::Seconds(1));
  EXPECT_EQ(servers_->user_count(), 0);
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace h5mirror::agent
