#include "rpc/client.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "rpc/channel.h"
#include "rpc/mirror_stream.h"
#include "rpc/status.h"

namespace h5mirror::rpc {
namespace {

using ::testing::HasSubstr;

// Tells the caller which token it sent; fails the first calls when it is told to.
class FakeServer final : public v1::Server::Service {
 public:
  grpc::Status GetServer(grpc::ServerContext* context, const v1::GetServerRequest* request,
                         v1::GetServerResponse* response) override {
    ++calls;
    if (failures-- > 0) return {failure, "stopping"};
    const auto token = context->client_metadata().find("authorization");
    if (token != context->client_metadata().end()) {
      response->set_verified_user(std::string(token->second.data(), token->second.size()));
    }
    *response->mutable_protocol() = request->protocol();
    return grpc::Status::OK;
  }
  std::atomic<int> calls = 0;
  std::atomic<int> failures = 0;
  grpc::StatusCode failure = grpc::StatusCode::UNAVAILABLE;
};

// Whose reads end as those of a server that stops.
constexpr char kCutOff[] = "cut_off.h5";

class FakeVersions final : public v1::Versions::Service {
 public:
  grpc::Status ReadVersion(grpc::ServerContext* context, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override {
    if (request->name() == kCutOff) return {grpc::StatusCode::CANCELLED, "CANCELLED"};
    if (request->name() != "a.h5") return {grpc::StatusCode::NOT_FOUND, "no such file"};
    v1::ReadVersionResponse response;
    for (uint64_t i = 0; i < 1000 && !context->IsCancelled(); ++i) {
      response.set_offset(i);
      if (!writer->Write(response)) break;
    }
    return {grpc::StatusCode::DATA_LOSS, "page 1000"};
  }
  grpc::Status RollbackVersion(grpc::ServerContext*, const v1::RollbackVersionRequest*,
                               v1::RollbackVersionResponse*) override {
    ++rollbacks;
    return {grpc::StatusCode::UNAVAILABLE, "stopping"};
  }
  std::atomic<int> rollbacks = 0;
};

// Whose stream is never answered.
constexpr char kSilent[] = "silent.h5";

// Counts bytes; answers barriers, refuses a frame with a wrong checksum.
class FakeMirror final : public v1::Mirror::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::MirrorFileResponse, v1::MirrorFileRequest>;
  grpc::Status MirrorFile(grpc::ServerContext* context, Stream* stream) override {
    v1::MirrorFileRequest request;
    v1::MirrorFileResponse response;
    int64_t bytes = 0;
    while (stream->Read(&request)) {
      if (request.open().name() == kSilent) {
        while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
        return {grpc::StatusCode::CANCELLED, ""};
      }
      if (request.has_open()) response.mutable_opened()->set_state(request.open().name());
      if (request.has_writes()) {
        const v1::Writes& writes = request.writes();
        if (writes.has_data_crc32c() && writes.data_crc32c() != Crc32c(writes.data())) {
          return {grpc::StatusCode::DATA_LOSS, "writes.data"};
        }
        bytes += static_cast<int64_t>(writes.data().size());
        continue;
      }
      if (request.has_barrier()) response.mutable_cut_visible()->set_cut(bytes);
      stream->Write(response);
    }
    return grpc::Status::OK;
  }
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    std::string name = (std::filesystem::temp_directory_path() / "h5m_rpc_XXXXXX").native();
    directory_ = mkdtemp(name.data());
  }
  ~ClientTest() override {
    if (running_) running_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(directory_);
  }

  // Serves at `address`; returns the port.
  int Serve(const std::string& address, std::shared_ptr<grpc::ServerCredentials> credentials =
                                            grpc::InsecureServerCredentials()) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials, &port);
    builder.RegisterService(&server_).RegisterService(&versions_).RegisterService(&mirror_);
    running_ = builder.BuildAndStart();
    return port;
  }
  static ClientOptions LoopbackOptions(int port) {
    ClientOptions options;
    options.server = "127.0.0.1:" + std::to_string(port);
    options.target = "dns:///" + options.server;
    options.loopback = true;
    return options;
  }
  std::unique_ptr<Client> ConnectPlain() {
    auto client = Client::Connect(LoopbackOptions(Serve("127.0.0.1:0")), absl::Seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  std::filesystem::path directory_;
  FakeServer server_;
  FakeVersions versions_;
  FakeMirror mirror_;
  std::unique_ptr<grpc::Server> running_;
};

TEST_F(ClientTest, SpeaksPlainTextAndSendsTheToken) {
  ClientOptions options = LoopbackOptions(Serve("127.0.0.1:0"));
  options.token = "s3cret";
  const auto client = Client::Connect(options, absl::Seconds(20));
  ASSERT_TRUE(client.ok()) << client.status();
  const auto response = (*client)->GetServer();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->verified_user(), "Bearer s3cret");
  EXPECT_EQ(response->protocol().newest(), kProtocolNewest);
}

TEST_F(ClientTest, SpeaksOverAUnixSocket) {
  ClientOptions options;
  options.server = options.target = "unix:" + (directory_ / "socket").native();
  Serve(options.target);
  const auto client = Client::Connect(options, absl::Seconds(20));
  ASSERT_TRUE(client.ok()) << client.status();
  const auto response = (*client)->GetServer();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->verified_user(), "");
}

TEST_F(ClientTest, FailedConnectionNamesServerAndReason) {
  const int port = Serve("127.0.0.1:0");
  running_->Shutdown(std::chrono::system_clock::now());
  const absl::Status status =
      Client::Connect(LoopbackOptions(port), absl::Milliseconds(400)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
}

TEST_F(ClientTest, WhereNothingListensItGivesUpSooner) {
  const int port = Serve("127.0.0.1:0");
  running_->Shutdown(std::chrono::system_clock::now());
  ClientOptions options = LoopbackOptions(port);
  options.origin = "H5MIRROR_SERVER";
  const absl::Status status =
      Client::Connect(options, absl::InfiniteDuration(), absl::Milliseconds(300)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("(H5MIRROR_SERVER) within 300 ms"));
}

TEST_F(ClientTest, UnavailableIsTriedOnceMore) {
  const auto client = ConnectPlain();
  server_.failures = 1;
  EXPECT_TRUE(client->GetServer().ok());
  EXPECT_EQ(server_.calls, 2);
  server_.failures = 2;
  const absl::Status status = client->GetServer().status();
  EXPECT_EQ(status, absl::UnavailableError(client->options().server + ": stopping"));
  EXPECT_EQ(server_.calls, 4);
}

TEST_F(ClientTest, RollbackIsRepeatedOnlyUnderARequestId) {
  const auto client = ConnectPlain();
  v1::RollbackVersionRequest request;
  EXPECT_TRUE(absl::IsUnavailable(client->RollbackVersion(request).status()));
  EXPECT_EQ(versions_.rollbacks, 1);
  request.set_request_id("0123456789abcdef");
  EXPECT_TRUE(absl::IsUnavailable(client->RollbackVersion(request).status()));
  EXPECT_EQ(versions_.rollbacks, 3);
}

TEST_F(ClientTest, CallsThatAStoppingServerCancelsSayWhichOneItIs) {
  const int port = Serve("127.0.0.1:0");
  const auto client = Client::Connect(LoopbackOptions(port), absl::Seconds(20));
  ASSERT_TRUE(client.ok());
  server_.failure = grpc::StatusCode::CANCELLED;
  server_.failures = 2;  // It is asked once more.
  const absl::Status asked = (*client)->GetServer().status();
  v1::ReadVersionRequest request;
  request.set_name(kCutOff);
  const absl::Status read = (*client)->ReadVersion(
      request, [](const v1::ReadVersionResponse&) { return absl::OkStatus(); });
  for (const absl::Status& status : {asked, read}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("127.0.0.1:" + std::to_string(port) +
                          ": the server, or something between, has ended this call"));
  }
  EXPECT_EQ(server_.failures, 0);
}

TEST_F(ClientTest, StreamEndsWithItsStatusOrWithTheSinks) {
  const auto client = ConnectPlain();
  v1::ReadVersionRequest request;
  request.set_name("a.h5");
  uint64_t count = 0;
  const auto all = [&count](const v1::ReadVersionResponse& response) {
    EXPECT_EQ(response.offset(), count++);
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsDataLoss(client->ReadVersion(request, all)));
  EXPECT_EQ(count, 1000u);
  const auto full = [](const v1::ReadVersionResponse&) {
    return absl::ResourceExhaustedError("disk full");
  };
  EXPECT_EQ(client->ReadVersion(request, full), absl::ResourceExhaustedError("disk full"));
}

v1::MirrorFileRequest Open(const std::string& name) {
  v1::MirrorFileRequest request;
  request.mutable_open()->set_name(name);
  return request;
}

// The server could not parse them, and would say only that.
TEST_F(ClientTest, TextsThatAreNotUtf8AreNotSent) {
  const auto client = ConnectPlain();
  const std::string name = "m\xfcnchen.h5";
  v1::RollbackVersionRequest rollback;
  rollback.set_name(name);
  const absl::Status refused = client->RollbackVersion(rollback).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("name \"m\\xfcnchen.h5\" is not UTF-8"));
  EXPECT_EQ(versions_.rollbacks, 0);
  v1::ReadVersionRequest read;
  read.set_name(name);
  const auto sink = [](const v1::ReadVersionResponse&) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsInvalidArgument(client->ReadVersion(read, sink)));
  v1::FollowFileRequest follow;
  follow.set_name(name);
  const auto followed = client->FollowFile(follow);
  v1::FollowFileResponse message;
  EXPECT_FALSE(followed->Read(message));
  EXPECT_TRUE(absl::IsInvalidArgument(followed->Finish()));
  auto stream = client->OpenMirrorStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*stream)->Send(Open(name))));
}

TEST_F(ClientTest, MirrorStreamCarriesFramesBothWays) {
  const auto client = ConnectPlain();
  auto stream = client->OpenMirrorStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_EQ((*stream)->Send(Open("a.h5")), absl::OkStatus());
  EXPECT_EQ((*stream)->Receive()->opened().state(), "a.h5");
  const std::string data(kMaxFrameBytes, 'x');
  const grpc::Slice slice(data);
  for (uint64_t i = 0; i < 8; ++i) {
    const Extent extent{i * data.size(), data.size()};
    ASSERT_EQ((*stream)->SendWrites({&extent, 1}, Crc32c(data), {&slice, 1}), absl::OkStatus());
  }
  v1::MirrorFileRequest barrier;
  barrier.mutable_barrier()->set_seq(1);
  ASSERT_EQ((*stream)->Send(barrier), absl::OkStatus());
  EXPECT_EQ((*stream)->Receive()->cut_visible().cut(), 8 << 20);
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition((*stream)->Send(barrier)));
}

TEST_F(ClientTest, BrokenMirrorStreamStillYieldsTheAnswersBeforeTheStatus) {
  const auto client = ConnectPlain();
  auto stream = client->OpenMirrorStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_EQ((*stream)->Send(Open("a.h5")), absl::OkStatus());
  const grpc::Slice slice("ab");
  const Extent extent{0, 2};
  absl::Status status;
  while (status.ok()) status = (*stream)->SendWrites({&extent, 1}, 7, {&slice, 1});
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ((*stream)->Receive()->opened().state(), "a.h5");
  EXPECT_TRUE(absl::IsDataLoss((*stream)->Receive().status()));
  EXPECT_TRUE(absl::IsDataLoss((*stream)->Finish()));
}

// It answers pings all the while.
TEST_F(ClientTest, MirrorStreamGivesUpAServerThatSaysNothing) {
  const ClientOptions options = LoopbackOptions(Serve("127.0.0.1:0"));
  const auto stream = StartMirrorStream(MakeChannel(options), options, absl::Milliseconds(50));
  absl::Status status = stream.status();
  if (status.ok()) status = (*stream)->Send(Open(kSilent));
  if (status.ok()) status = (*stream)->Receive().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.server + ": connected, but"));
  if (stream.ok()) {
    EXPECT_EQ((*stream)->Finish(), status);
  }
}

TEST_F(ClientTest, DroppedMirrorStreamIsCancelled) {
  const auto client = ConnectPlain();
  auto stream = client->OpenMirrorStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_EQ((*stream)->Send(Open("a.h5")), absl::OkStatus());
  stream->reset();
  EXPECT_TRUE(client->GetServer().ok());
}

std::string ReadAll(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A throw-away CA and a certificate that it signed for localhost.
class TlsTest : public ClientTest {
 protected:
  void SetUp() override {
    Shell(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca "
        "-keyout ca.key -out ca.pem");
    Shell(
        "openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key "
        "-out server.csr");
    std::ofstream(directory_ / "san") << "subjectAltName=DNS:localhost\n";
    Shell(
        "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-extfile san -out server.pem");
    grpc::SslServerCredentialsOptions ssl;
    ssl.pem_key_cert_pairs.push_back(
        {ReadAll(directory_ / "server.key"), ReadAll(directory_ / "server.pem")});
    port_ = Serve("127.0.0.1:0", grpc::SslServerCredentials(ssl));
  }
  void Shell(const std::string& command) {
    const std::string line = "cd '" + directory_.native() + "' && " + command + " 2>log";
    ASSERT_EQ(std::system(line.c_str()), 0) << command << "\n" << ReadAll(directory_ / "log");
  }
  ClientOptions TlsOptions(const std::string& host) const {
    ClientOptions options = LoopbackOptions(port_);
    options.server = host + ":" + std::to_string(port_);
    options.target = "dns:///" + options.server;
    options.ca_pem = ReadAll(directory_ / "ca.pem");
    return options;
  }
  int port_ = 0;
};

TEST_F(TlsTest, ServerThatTheCaVouchesForIsBelieved) {
  ClientOptions options = TlsOptions("localhost");
  options.token = "s3cret";
  const auto client = Client::Connect(options, absl::Seconds(20));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->GetServer()->verified_user(), "Bearer s3cret");
}

TEST_F(TlsTest, OtherHostNameIsRefused) {
  const absl::Status status =
      Client::Connect(TlsOptions("127.0.0.1"), absl::Milliseconds(500)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(server_.calls, 0);
}

TEST_F(TlsTest, OtherCaIsRefused) {
  Shell(
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout o.key "
      "-out ca.pem");
  const absl::Status status =
      Client::Connect(TlsOptions("localhost"), absl::Milliseconds(500)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(server_.calls, 0);
}

}  // namespace
}  // namespace h5mirror::rpc
