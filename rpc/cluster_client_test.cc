#include "rpc/cluster_client.h"

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "rpc/client.h"
#include "rpc/elsewhere.h"
#include "rpc/server_pool.h"
#include "rpc/status.h"

namespace h5mirror::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One server of a cluster: serves all files, or sends callers to another one.
class Node final : public v1::Versions::Service {
 public:
  Node() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this).RegisterService(&snapshots_);
    running_ = builder.BuildAndStart();
  }
  ~Node() override { Stop(); }

  void Stop() { running_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // The next answers are that nobody serves the file.
  void SetNobodyServes(int answers) {
    absl::MutexLock lock(&mutex_);
    nobody_ = answers;
  }
  // From now on `other` has the files; empty: this one.
  void Give(const std::string& other) {
    absl::MutexLock lock(&mutex_);
    other_ = other;
  }

  grpc::Status GetVersion(grpc::ServerContext* /*context*/, const v1::GetVersionRequest* request,
                          v1::GetVersionResponse* response) override {
    ++calls;
    if (const grpc::Status status = Answer(); !status.ok()) return status;
    response->mutable_version()->set_version(request->version());
    response->mutable_version()->set_comment(address());
    return grpc::Status::OK;
  }
  grpc::Status ReadVersion(grpc::ServerContext* /*context*/, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override {
    if (const grpc::Status status = Answer(); !status.ok()) return status;
    v1::ReadVersionResponse response;
    response.set_data(request->name());
    writer->Write(response);
    if (breaks) return {grpc::StatusCode::UNAVAILABLE, "broken"};
    return grpc::Status::OK;
  }
  // A change that is made, and whose answer is lost.
  grpc::Status UntagVersion(grpc::ServerContext* /*context*/,
                            const v1::UntagVersionRequest* /*request*/,
                            v1::UntagVersionResponse* /*response*/) override {
    if (const grpc::Status status = Answer(); !status.ok()) return status;
    ++changes;
    return {grpc::StatusCode::UNAVAILABLE, "stopping"};
  }

  std::atomic<int> early = 0;  // waits for cuts that come before it has the file
  std::atomic<int> calls = 0;
  std::atomic<int> changes = 0;
  std::atomic<bool> breaks = false;

 private:
  class Snapshots final : public v1::Snapshots::Service {
   public:
    explicit Snapshots(Node& node) : node_(node) {}
    grpc::Status FollowFile(grpc::ServerContext* /*context*/,
                            const v1::FollowFileRequest* /*request*/,
                            grpc::ServerWriter<v1::FollowFileResponse>* writer) override {
      if (const grpc::Status status = node_.Answer(); !status.ok()) return status;
      v1::FollowFileResponse response;
      response.mutable_snapshot()->set_cut(node_.port_);
      writer->Write(response);
      return {grpc::StatusCode::UNAVAILABLE, "the server ends it"};
    }
    grpc::Status WaitForCut(grpc::ServerContext* /*context*/,
                            const v1::WaitForCutRequest* /*request*/,
                            v1::WaitForCutResponse* response) override {
      if (const grpc::Status status = node_.Answer(); !status.ok()) return status;
      ++node_.calls;
      if (node_.early > 0) {
        --node_.early;
        return ToGrpc(NobodyServesError("it is being taken over"));
      }
      if (node_.breaks) return {grpc::StatusCode::UNAVAILABLE, "broken"};
      response->set_cut(7);
      return grpc::Status::OK;
    }

   private:
    Node& node_;
  };

  grpc::Status Answer() {
    absl::MutexLock lock(&mutex_);
    if (nobody_ > 0) {
      --nobody_;
      return ToGrpc(NobodyServesError("it is being taken over"));
    }
    return other_.empty() ? grpc::Status::OK : ToGrpc(ElsewhereError({other_, "", 1}));
  }

  int port_ = 0;
  absl::Mutex mutex_;
  std::string other_ ABSL_GUARDED_BY(mutex_);
  int nobody_ ABSL_GUARDED_BY(mutex_) = 0;
  Snapshots snapshots_{*this};
  std::unique_ptr<grpc::Server> running_;
};

ClientOptions OptionsOf(const std::vector<std::string>& servers) {
  ClientOptions options;
  options.loopback = true;
  for (const std::string& server : servers) {
    if (options.server.empty()) {
      options.server = server;
      options.target = "dns:///" + server;
    } else {
      options.server += "|" + server;
      options.others.push_back({"dns:///" + server, true});
    }
  }
  return options;
}

class ClusterClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect(const std::vector<std::string>& servers) {
    auto client = Client::Connect(OptionsOf(servers), absl::Seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // Adds up the time in which nothing would be done.
  Sleep NoSleep() {
    return [this](absl::Duration pause) { slept_ += pause; };
  }
  // The address of the server that has answered, or the error.
  static std::string AskedAt(Client& client) {
    v1::GetVersionRequest request;
    request.set_name("a.h5");
    const auto version = client.GetVersion(request);
    return version.ok() ? version->comment() : std::string(version.status().message());
  }

  Node a_, b_;
  absl::Duration slept_;
};

TEST_F(ClusterClientTest, ACallGoesToTheServerThatHasTheFile) {
  a_.Give(b_.address());
  const auto client = Connect({a_.address()});
  EXPECT_EQ(AskedAt(*client), b_.address());
  EXPECT_EQ(AskedAt(*client), b_.address());
  EXPECT_EQ(a_.calls, 1) << "the second call knows where to go";
  EXPECT_EQ(client->options().server, a_.address());
}

TEST_F(ClusterClientTest, ALostOwnerIsAskedForAtTheOthers) {
  a_.Give(b_.address());
  const auto client = Connect({a_.address()});
  EXPECT_EQ(AskedAt(*client), b_.address());
  b_.Stop();
  a_.Give("");
  EXPECT_EQ(AskedAt(*client), a_.address());
}

TEST_F(ClusterClientTest, AServerOfTheListThatIsAwayIsSkipped) {
  std::vector<std::string> asked;
  const auto connect = [&](const ClientOptions& server, absl::Duration limit,
                           absl::Duration refused_max) -> absl::StatusOr<std::unique_ptr<Client>> {
    asked.push_back(server.server);
    if (server.server == a_.address())
      return ConnectDirectly(server, absl::Minutes(1), refused_max);
    EXPECT_EQ(limit, ServerWalk::kConnectMax);
    EXPECT_EQ(refused_max, absl::ZeroDuration());
    return absl::UnavailableError("no answer");
  };
  const auto client = ConnectToCluster(OptionsOf({"silent:1", a_.address()}), connect,
                                       absl::Minutes(1), absl::InfiniteDuration(), NoSleep());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(AskedAt(**client), a_.address());
  EXPECT_THAT(asked, testing::ElementsAre("silent:1", a_.address()));
}

TEST_F(ClusterClientTest, AllServersTogetherGetTheTime) {
  absl::Duration sum;
  const auto connect = [&](const ClientOptions&, absl::Duration limit,
                           absl::Duration) -> absl::StatusOr<std::unique_ptr<Client>> {
    sum += limit;
    absl::SleepFor(limit);
    return absl::UnavailableError("no answer");
  };
  const absl::Duration timeout = absl::Milliseconds(500);
  const auto client = ConnectToCluster(OptionsOf({"a:1", "b:2", "c:3"}), connect, timeout,
                                       absl::InfiniteDuration(), NoSleep());
  EXPECT_THAT(std::string(client.status().message()),
              AllOf(HasSubstr("a:1: no"), HasSubstr("b:2: no"), HasSubstr("c:3: no")));
  EXPECT_LE(sum, timeout);
}

TEST_F(ClusterClientTest, AllServersThatWereAskedAreNamed) {
  std::string dead, gone;
  {
    Node one, other;
    dead = one.address();
    gone = other.address();
  }
  const auto client =
      Client::Connect(OptionsOf({dead, gone}), absl::Seconds(5), absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(client.status()));
  EXPECT_THAT(std::string(client.status().message()),
              AllOf(HasSubstr("no connection to " + dead + " "),
                    HasSubstr("no connection to " + gone + " "), HasSubstr("no server of"),
                    HasSubstr(": Connection refused; check the addresses"),
                    Not(HasSubstr("failed to connect to all"))));
}

TEST_F(ClusterClientTest, ACircleIsAnError) {
  a_.Give(b_.address());
  b_.Give(a_.address());
  const auto connect = [](const ClientOptions& server, absl::Duration, absl::Duration refused_max) {
    return ConnectDirectly(server, absl::Minutes(5), refused_max);
  };
  const auto client = ConnectToCluster(OptionsOf({a_.address(), b_.address()}), connect,
                                       absl::Minutes(5), absl::InfiniteDuration(), NoSleep());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_THAT(AskedAt(**client), HasSubstr("in a circle: "));
  EXPECT_LT(a_.calls + b_.calls, 20);
  EXPECT_EQ(slept_, absl::Seconds(2)) << "servers may disagree for a second";
  b_.Give("");
  EXPECT_EQ(AskedAt(**client), b_.address()) << "it is over";
}

TEST_F(ClusterClientTest, AChangeThatMayHaveBeenMadeIsNotRepeated) {
  a_.Give(b_.address());
  const auto client = Connect({a_.address(), b_.address()});
  v1::UntagVersionRequest request;
  request.set_name("a.h5");
  EXPECT_TRUE(absl::IsUnavailable(client->UntagVersion(request).status()));
  EXPECT_EQ(a_.changes + b_.changes, 1);
}

TEST_F(ClusterClientTest, AChangeThatNobodyCouldMakeIsMadeLater) {
  a_.SetNobodyServes(2);
  b_.SetNobodyServes(1);
  for (const std::vector<std::string>& servers :
       {std::vector{a_.address(), b_.address()}, std::vector{a_.address()}}) {
    const int before = a_.changes + b_.changes;
    const auto client = Connect(servers);
    v1::UntagVersionRequest request;
    request.set_name("a.h5");
    EXPECT_THAT(client->UntagVersion(request).status().message(), HasSubstr("stopping"));
    EXPECT_EQ(a_.changes + b_.changes, before + 1);
    a_.SetNobodyServes(2);
  }
}

TEST_F(ClusterClientTest, AWaitBeginsAgainWhereItCameBeforeTheNextServer) {
  a_.early = 2;
  b_.Give(a_.address());
  const auto client = Connect({a_.address(), b_.address()});
  const auto answer = client->WaitForCut(v1::WaitForCutRequest(), absl::Seconds(5));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->cut(), 7);
  const int calls = a_.calls;
  EXPECT_GE(calls, 3);
  a_.breaks = true;
  EXPECT_TRUE(
      absl::IsUnavailable(client->WaitForCut(v1::WaitForCutRequest(), absl::Seconds(5)).status()));
  EXPECT_EQ(a_.calls, calls + 1) << "the caller knows how long it would wait again";
}

TEST_F(ClusterClientTest, BytesThatHaveComeDoNotComeAgain) {
  a_.Give(b_.address());
  b_.breaks = true;
  const auto client = Connect({a_.address()});
  v1::ReadVersionRequest request;
  request.set_name("a.h5");
  int messages = 0;
  const auto take = [&](const v1::ReadVersionResponse&) {
    ++messages;
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(client->ReadVersion(request, take)));
  EXPECT_EQ(messages, 1);
  b_.breaks = false;
  EXPECT_TRUE(client->ReadVersion(request, take).ok());
  EXPECT_EQ(messages, 2);
}

TEST_F(ClusterClientTest, ASubscriptionBeginsAtTheServerThatHasTheFile) {
  a_.Give(b_.address());
  const auto client = Connect({a_.address()});
  v1::FollowFileRequest request;
  request.set_name("a.h5");
  const auto stream = client->FollowFile(request);
  v1::FollowFileResponse message;
  ASSERT_TRUE(stream->Read(message)) << stream->Finish();
  EXPECT_EQ("127.0.0.1:" + std::to_string(message.snapshot().cut()), b_.address());
  EXPECT_FALSE(stream->Read(message)) << "the caller knows from where on it goes on";
  EXPECT_TRUE(absl::IsUnavailable(stream->Finish()));
}

TEST_F(ClusterClientTest, ConnectionsAreSharedAndFew) {
  size_t connects = 0;
  const auto connect = [&](const ClientOptions&, absl::Duration timeout, absl::Duration) {
    ++connects;
    return Client::Connect(OptionsOf({a_.address()}), timeout);
  };
  ServerPool pool(OptionsOf({"front"}), connect, absl::Seconds(20), absl::InfiniteDuration());
  ClientOptions server;
  const auto first = pool.ClientOf(server, absl::InfiniteDuration());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(pool.ClientOf(server, absl::InfiniteDuration())->get(), first->get());
  EXPECT_EQ(connects, 1);
  for (size_t i = 0; i < kConnectionsMax + 2; ++i) {
    server.target = "node-" + std::to_string(i);
    EXPECT_TRUE(pool.ClientOf(server, absl::InfiniteDuration()).ok());
  }
  EXPECT_EQ(connects, kConnectionsMax + 3);
  EXPECT_EQ(pool.connection_count(), kConnectionsMax);
  EXPECT_EQ(AskedAt(**first), a_.address()) << "a call goes on over a connection that was let go";
}

}  // namespace
}  // namespace h5mirror::rpc
