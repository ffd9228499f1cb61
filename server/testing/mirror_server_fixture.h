// The whole server over real sockets, with the real store and the project's own client.
#ifndef H5MIRROR_SERVER_TESTING_MIRROR_SERVER_FIXTURE_H_
#define H5MIRROR_SERVER_TESTING_MIRROR_SERVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/random.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "rpc/client.h"
#include "server/mirror_server.h"
#include "server/settings/secret_file.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {

inline v1::MirrorFileRequest OpenRequest(const std::string& name, v1::Intent intent) {
  v1::MirrorFileRequest request;
  v1::OpenSession& open = *request.mutable_open();
  open.mutable_protocol()->set_oldest(1);
  open.mutable_protocol()->set_newest(1);
  open.set_name(name);
  open.set_session_id(ToByteString(RandomBytes16()));
  open.set_intent(intent);
  open.mutable_origin()->set_machine_id("m1");
  open.mutable_origin()->set_path("/data/" + name);
  open.mutable_writer()->set_claimed_user("alice");
  open.set_mode_bits(0644);
  return request;
}

inline v1::MirrorFileRequest BarrierRequest(uint64_t seq, v1::BarrierKind kind,
                                            uint64_t size_bytes) {
  v1::MirrorFileRequest request;
  request.mutable_barrier()->set_seq(seq);
  request.mutable_barrier()->set_kind(kind);
  request.mutable_barrier()->set_size_bytes(size_bytes);
  return request;
}

class MirrorServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(root());
    store::StoreOptions options;
    options.root = root();
    options.durable_every = absl::Milliseconds(200);
    auto store = store::Store::Open(env(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    config_.root = root();
    config_.listen = *ParseListenList("127.0.0.1:0");
    config_.stop_timeout = absl::Seconds(5);
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    store_.reset();  // before the test's Env
  }

  // The store's Env. A test that holds reads up has another one.
  virtual Env& env() { return Env::Posix(); }

  std::filesystem::path root() const { return directory_.path() / "root"; }

  void Start() {
    auto server = MirrorServer::Start(config_, *store_, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    options_.server = options_.target = server_->addresses().front();
    options_.loopback = true;
    Connect();
  }
  void Connect() {
    auto client = rpc::Client::Connect(options_, absl::Seconds(20));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  std::unique_ptr<rpc::MirrorStream> Open(const std::string& name, v1::Intent intent,
                                          v1::SessionOpened* opened = nullptr) {
    auto stream = client_->OpenMirrorStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    EXPECT_TRUE((*stream)->Send(OpenRequest(name, intent)).ok());
    const auto answer = (*stream)->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (answer.ok() && opened != nullptr) *opened = answer->opened();
    return *std::move(stream);
  }
  static void Write(rpc::MirrorStream& stream, uint64_t offset, const std::string& data) {
    const Extent extent{offset, data.size()};
    const grpc::Slice slice(data);
    ASSERT_TRUE(stream.SendWrites({&extent, 1}, std::nullopt, {&slice, 1}).ok());
  }
  // Ends a cut and waits until it is durable.
  static v1::CutDurable Cut(rpc::MirrorStream& stream, uint64_t seq, v1::BarrierKind kind,
                            uint64_t size_bytes) {
    EXPECT_TRUE(stream.Send(BarrierRequest(seq, kind, size_bytes)).ok());
    for (;;) {
      const auto answer = stream.Receive();
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) return {};
      if (answer->has_cut_durable()) return answer->cut_durable();
    }
  }
  void MirrorWhole(const std::string& name, const std::string& data) {
    auto stream = Open(name, v1::INTENT_CREATE);
    Write(*stream, 0, data);
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, data.size()).version(), 0);
    EXPECT_TRUE(stream->Finish().ok());
  }
  std::string ReadBack(const std::string& name, int64_t version) {
    v1::ReadVersionRequest request;
    request.set_name(name);
    request.set_version(version);
    std::string bytes;
    const absl::Status status =
        client_->ReadVersion(request, [&bytes](const v1::ReadVersionResponse& response) {
          if (response.has_version()) {
            bytes.resize(static_cast<size_t>(response.version().size_bytes()));
          }
          bytes.replace(response.offset(), response.data().size(), response.data());
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return bytes;
  }
  absl::StatusOr<v1::FileStatus> Settled(const std::string& name) {
    v1::GetFileRequest request;
    request.set_name(name);
    request.set_settle(true);
    return client_->GetFile(request, absl::Seconds(20));
  }
  std::string Head(const std::string& name) {
    EXPECT_TRUE(Settled(name).ok());
    return *ReadSmallFile(root() / name);
  }
  // Waits until the file has that many versions.
  v1::FileStatus WaitForVersions(const std::string& name, int64_t count) {
    for (int i = 0; i < 200; ++i) {
      const auto file = Settled(name);
      if (file.ok() && file->newest_version().version() >= count) return *file;
      absl::SleepFor(absl::Milliseconds(50));
    }
    ADD_FAILURE() << name << " never had " << count << " versions";
    return {};
  }

  TestDirectory directory_;
  SystemClock clock_;
  std::unique_ptr<store::Store> store_;
  Config config_;
  std::unique_ptr<MirrorServer> server_;
  rpc::ClientOptions options_;
  std::unique_ptr<rpc::Client> client_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_MIRROR_SERVER_FIXTURE_H_
