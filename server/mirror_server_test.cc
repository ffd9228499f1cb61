// The whole server: sessions, versions, names and credentials.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/synchronization/notification.h"
#include "base/owned_fd.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/settings/init.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A client of HTTP/2 that says what such a client has to, and nothing more.
OwnedFd ConnectSilently(int port) {
  OwnedFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);
  EXPECT_EQ(send(client.get(), preface.data(), preface.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(preface.size()));
  return client;
}

// Waits for the first bytes of the server.
std::string ReadSome(int fd) {
  std::string bytes(64, '\0');
  const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

TEST_F(MirrorServerTest, CommitIsAVersionAndTheHead) {
  Start();
  MirrorWhole("a/x.h5", "hello");
  EXPECT_EQ(Head("a/x.h5"), "hello");
  EXPECT_EQ(ReadBack("a/x.h5", 1), "hello");
  v1::ListFilesRequest request;
  const auto files = client_->ListFiles(request);
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->files_size(), 1);
  EXPECT_EQ(files->files(0).name(), "a/x.h5");
}

TEST_F(MirrorServerTest, OlderVersionsStayAndComeBack) {
  Start();
  MirrorWhole("x.h5", "first");
  MirrorWhole("x.h5", "second one");
  EXPECT_EQ(ReadBack("x.h5", 1), "first");
  v1::RollbackVersionRequest request;
  request.set_name("x.h5");
  request.set_version(1);
  request.set_request_id(ToByteString(RandomBytes16()));
  const auto version = client_->RollbackVersion(request);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->version(), 3);
  EXPECT_EQ(Head("x.h5"), "first");
}

TEST_F(MirrorServerTest, ManyRangesComeInOneCall) {
  Start();
  MirrorWhole("x.h5", std::string(8192, 'a') + std::string(4096, '\0') + std::string(1000, 'b'));
  v1::ReadVersionRequest request;
  request.set_name("x.h5");
  std::string bytes;
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  const auto ask = [&](std::vector<std::pair<uint64_t, uint64_t>> ranges) {
    request.clear_ranges();
    for (const auto& [offset, length] : ranges) {
      v1::ByteRange& range = *request.add_ranges();
      range.set_offset(offset);
      range.set_length_bytes(length);
    }
    return client_->ReadVersion(request, [&](const v1::ReadVersionResponse& response) {
      bytes += response.data();
      for (const v1::ByteRange& piece : response.pieces()) {
        pieces.emplace_back(piece.offset(), piece.length_bytes());
      }
      return absl::OkStatus();
    });
  };
  const std::vector<std::pair<uint64_t, uint64_t>> wanted = {{10, 2}, {8190, 4}, {12287, 3}};
  ASSERT_TRUE(ask(wanted).ok());
  EXPECT_EQ(bytes, std::string("aaaa\0\0\0bb", 9));
  EXPECT_EQ(pieces, wanted);
  for (const auto& refused : {std::vector<std::pair<uint64_t, uint64_t>>{{10, 0}},
                              {{10, 2}, {12, 2}},
                              {{10, 2}, {5, 2}},
                              {{13287, 2}},
                              {{UINT64_MAX, 2}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ask(refused)));
  }
}

TEST_F(MirrorServerTest, VersionsAreFoundByPlaceTimeAndTag) {
  Start();
  for (const char* content : {"first", "second", "third"}) MirrorWhole("x.h5", content);
  auto find = [&](auto set) -> absl::StatusOr<int64_t> {
    v1::FindVersionRequest request;
    request.set_name("x.h5");
    set(request);
    const auto version = client_->FindVersion(request);
    if (!version.ok()) return version.status();
    return version->version();
  };
  v1::GetVersionRequest second;
  second.set_name("x.h5");
  second.set_version(2);
  const v1::Version wanted = *client_->GetVersion(second);
  EXPECT_EQ(*find([](auto& request) { request.set_back(0); }), 3);
  EXPECT_EQ(*find([](auto& request) { request.set_back(2); }), 1);
  EXPECT_EQ(*find([&](auto& request) { *request.mutable_at_time() = wanted.server_time(); }), 2);
  EXPECT_TRUE(absl::IsNotFound(find([](auto& request) { request.set_tag("no"); }).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(find([](auto&) {}).status()));
  v1::ListVersionsRequest list;
  list.set_name("x.h5");
  *list.mutable_since_time() = *list.mutable_until_time() = wanted.server_time();
  const auto listed = client_->ListVersions(list);
  ASSERT_EQ(listed->versions_size(), 1);
  EXPECT_EQ(listed->versions(0).version(), 2);
}

TEST_F(MirrorServerTest, TagsAreGivenMovedAndTaken) {
  Start();
  MirrorWhole("x.h5", "first");
  MirrorWhole("x.h5", "second");
  v1::TagVersionRequest request;
  request.set_name("x.h5");
  request.set_version(1);
  request.set_tag("published");
  const auto tagged = client_->TagVersion(request);
  ASSERT_TRUE(tagged.ok()) << tagged.status();
  EXPECT_THAT(tagged->version().tags(), ::testing::ElementsAre("published"));
  request.set_version(2);
  const absl::Status refused = client_->TagVersion(request).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("version 1"));
  request.set_move(true);
  EXPECT_EQ(client_->TagVersion(request)->previous_version(), 1);
  EXPECT_THAT(Settled("x.h5")->newest_version().tags(), ::testing::ElementsAre("published"));
  request.set_tag("7");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->TagVersion(request).status()));
  v1::UntagVersionRequest untag;
  untag.set_name("x.h5");
  untag.set_tag("published");
  EXPECT_EQ(client_->UntagVersion(untag)->version(), 2);
  EXPECT_TRUE(absl::IsNotFound(client_->UntagVersion(untag).status()));
}

TEST_F(MirrorServerTest, TheMapSaysWhereTheBytesLie) {
  Start();
  MirrorWhole("x.h5", std::string(10 * 4096, 'a'));
  ASSERT_TRUE(Settled("x.h5").ok());
  v1::MapVersionRequest request;
  request.set_name("x.h5");
  request.set_first_page(2);
  request.set_page_count(5);
  std::vector<v1::PageRun> runs;
  const absl::Status status = client_->MapVersion(request, [&](const auto& message) {
    runs.insert(runs.end(), message.runs().begin(), message.runs().end());
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].page(), 2u);
  EXPECT_EQ(runs[0].page_count(), 5u);
  EXPECT_EQ(runs[0].place(), v1::PAGE_PLACE_HEAD);
  EXPECT_EQ(runs[0].file(), "x.h5");
  EXPECT_EQ(runs[0].offset(), 2u * 4096);
}

TEST_F(MirrorServerTest, LargeFileArrivesBitForBit) {
  Start();
  auto stream = Open("x.h5", v1::INTENT_CREATE);
  std::string expected;
  for (int i = 0; i < 16; ++i) {
    const std::string block(700'001, static_cast<char>('a' + i));
    Write(*stream, expected.size(), block);
    expected += block;
  }
  Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, expected.size());
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(ReadBack("x.h5", 0), expected);
}

TEST_F(MirrorServerTest, BrokenStreamLeavesItsLastCutAsAVersion) {
  Start();
  {
    auto stream = Open("x.h5", v1::INTENT_CREATE);
    Write(*stream, 0, "cut");
    ASSERT_TRUE(stream->Send(BarrierRequest(1, v1::BARRIER_KIND_TICK, 3)).ok());
    ASSERT_TRUE(stream->Receive().ok());
    Write(*stream, 0, "torn");
  }  // Destroyed without Finish(): cancelled.
  const v1::FileStatus file = WaitForVersions("x.h5", 1);
  EXPECT_EQ(file.newest_version().comment(), "writer lost");
  EXPECT_EQ(Head("x.h5"), "cut");
}

TEST_F(MirrorServerTest, HalfClosedStreamIsNoLostWriter) {
  Start();
  auto stream = Open("x.h5", v1::INTENT_CREATE);
  Write(*stream, 0, "cut");
  ASSERT_TRUE(stream->Send(BarrierRequest(1, v1::BARRIER_KIND_TICK, 3)).ok());
  ASSERT_TRUE(stream->Finish().ok());
  const auto file = Settled("x.h5");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->version_count(), 0);
  EXPECT_GT(file->durable_cut(), 0);
  EXPECT_FALSE(file->has_lease());
}

TEST_F(MirrorServerTest, SecondWriterIsBusyAndTheFirstGoesOn) {
  Start();
  auto first = Open("x.h5", v1::INTENT_CREATE);
  v1::SessionOpened opened;
  auto second = Open("x.h5", v1::INTENT_CREATE, &opened);
  EXPECT_EQ(opened.relation(), v1::RELATION_BUSY);
  EXPECT_TRUE(absl::IsFailedPrecondition(second->Finish()));
  Write(*first, 0, "mine");
  EXPECT_EQ(Cut(*first, 1, v1::BARRIER_KIND_COMMIT, 4).version(), 1);
  EXPECT_TRUE(first->Finish().ok());
}

TEST_F(MirrorServerTest, RollbackFencesTheWriterOnlyWhenTold) {
  Start();
  MirrorWhole("x.h5", "first");
  auto writer = Open("x.h5", v1::INTENT_CREATE);
  v1::RollbackVersionRequest request;
  request.set_name("x.h5");
  request.set_version(1);
  request.set_request_id(ToByteString(RandomBytes16()));
  const absl::Status refused = client_->RollbackVersion(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("alice"));
  request.set_revoke_lease(true);
  EXPECT_TRUE(client_->RollbackVersion(request).ok());
  EXPECT_TRUE(absl::IsAborted(writer->Receive().status()));
}

TEST_F(MirrorServerTest, HostileFramesEndOnlyTheirStream) {
  Start();
  auto good = Open("good.h5", v1::INTENT_CREATE);
  auto bad = Open("bad.h5", v1::INTENT_CREATE);
  v1::MirrorFileRequest request;
  request.mutable_writes()->add_offset(~uint64_t{0} - 2);
  request.mutable_writes()->add_length(4);
  request.mutable_writes()->set_data("data");
  ASSERT_TRUE(bad->Send(request).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(bad->Receive().status()));
  Write(*good, 0, "fine");
  EXPECT_EQ(Cut(*good, 1, v1::BARRIER_KIND_COMMIT, 4).version(), 1);
  EXPECT_TRUE(good->Finish().ok());
}

TEST_F(MirrorServerTest, NamesThatLeaveTheRootAreRefused) {
  Start();
  for (const char* name : {"/etc/passwd", "../x.h5", "a/../../x.h5", "x.h5.h5m/pages", ""}) {
    auto stream = client_->OpenMirrorStream();
    ASSERT_TRUE(stream.ok());
    (*stream)->Send(OpenRequest(name, v1::INTENT_CREATE)).IgnoreError();
    EXPECT_TRUE(absl::IsInvalidArgument((*stream)->Receive().status())) << name;
  }
}

TEST_F(MirrorServerTest, StopEndsStreamsAsRetryable) {
  Start();
  auto stream = Open("x.h5", v1::INTENT_CREATE);
  Write(*stream, 0, "cut");
  Cut(*stream, 1, v1::BARRIER_KIND_SYNC, 3);
  std::thread stopper([this] { EXPECT_TRUE(server_->Stop(absl::Seconds(10)).ok()); });
  EXPECT_TRUE(absl::IsUnavailable(stream->Receive().status()));
  stopper.join();
  const auto file = store_->OpenFile("x.h5");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->Info()->version_count, 0);  // The writer is not lost, and comes back.
}

TEST_F(MirrorServerTest, SessionsBeyondTheLimitAreRefused) {
  config_.max_sessions = 1;
  Start();
  auto first = Open("a.h5", v1::INTENT_CREATE);
  auto second = client_->OpenMirrorStream();
  ASSERT_TRUE(second.ok());
  const absl::Status refused = (*second)->Receive().status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("max_sessions"));
}

TEST_F(MirrorServerTest, TokenIsWantedAndItsRightsCount) {
  config_.tokens_file = directory_.path() / "tokens";
  const std::string reader = *AddToken(config_.tokens_file, "reader", *Rights::Parse("read"));
  options_.token = reader;
  Start();
  const auto server = client_->GetServer();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->verified_user(), "reader");
  EXPECT_THAT(server->rights(), Contains("read"));
  auto stream = client_->OpenMirrorStream();
  ASSERT_TRUE(stream.ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*stream)->Receive().status()));
  options_.token = "h5m_unknown";
  const auto stranger = rpc::Client::Connect(options_, absl::Seconds(20));
  if (stranger.ok()) {
    EXPECT_TRUE(absl::IsUnauthenticated((*stranger)->GetServer().status()));
  } else {
    EXPECT_TRUE(absl::IsUnauthenticated(stranger.status())) << stranger.status();
  }
}

TEST_F(MirrorServerTest, HealthWantsNoToken) {
  config_.tokens_file = directory_.path() / "tokens";
  options_.token = *AddToken(config_.tokens_file, "reader", *Rights::Parse("read"));
  Start();
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  for (const char* service : {"", "h5mirror.v1.Mirror", "h5mirror.v1.Files", "h5mirror.v1.Versions",
                              "h5mirror.v1.Server"}) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    request.set_service(service);
    ASSERT_TRUE(stub->Check(&context, request, &response).ok()) << service;
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING) << service;
  }
}

TEST_F(MirrorServerTest, WatchersDoNotHoldUpAStop) {
  Start();
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  const absl::Time start = absl::Now();
  EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(50));
  while (reader->Read(&response)) continue;
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// gRPC waits 20 s for such a client to say that it has heard of the end.
TEST_F(MirrorServerTest, AClientThatStandsStillHoldsUpNoStop) {
  Start();
  const OwnedFd still = ConnectSilently(server_->ports().front());
  // From its number on, the server knows it as a connection of HTTP/2.
  ASSERT_EQ(ReadSome(still.get()).substr(3, 1), std::string(1, '\x04')) << "no SETTINGS";
  const absl::Duration begun_at = clock_.Monotonic();
  EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok());
  EXPECT_LT(clock_.Monotonic() - begun_at, absl::Seconds(15));
}

TEST_F(MirrorServerTest, CallsInHandEndWellAndNewOnesHearOfTheStop) {
  Start();
  constexpr uint64_t kPieces = 16;
  const std::string piece(1 << 20, 'x');
  auto writer = Open("x.h5", v1::INTENT_CREATE);
  for (uint64_t i = 0; i < kPieces; ++i) Write(*writer, i * piece.size(), piece);
  ASSERT_GT(Cut(*writer, 1, v1::BARRIER_KIND_COMMIT, kPieces * piece.size()).version(), 0);
  ASSERT_TRUE(writer->Finish().ok());
  absl::Notification reads, may_go_on;
  uint64_t bytes = 0;
  std::thread reader([&] {
    v1::ReadVersionRequest request;
    request.set_name("x.h5");
    request.set_version(1);
    const absl::Status read = client_->ReadVersion(request, [&](const auto& response) {
      if (!reads.HasBeenNotified()) reads.Notify();
      may_go_on.WaitForNotification();
      bytes += response.data().size();
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
  });
  reads.WaitForNotification();
  std::thread stopper([this] { EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok()); });
  absl::Status refused;
  while (refused.ok()) refused = client_->GetServer().status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(options_.server + ": the server is stopping"));
  may_go_on.Notify();
  reader.join();
  stopper.join();
  EXPECT_EQ(bytes, kPieces * piece.size());
}

TEST_F(MirrorServerTest, TlsWithTheFilesThatInitMakes) {
  InitOptions init;
  init.directory = directory_.path() / "secrets";
  ASSERT_TRUE(InitDirectory(init).ok());
  config_.tls_cert = init.directory / "server.pem";
  config_.tls_key = init.directory / "server.key";
  config_.tokens_file = init.directory / "tokens";
  options_.ca_pem = *ReadSmallFile(init.directory / "ca.pem");
  options_.token = *ReadSmallFile(init.directory / "token");
  options_.token.pop_back();
  Start();
  MirrorWhole("x.h5", "hello");
  const auto file = Settled("x.h5");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->newest_version().verified_user(), "admin");
  EXPECT_EQ(file->newest_version().writer().claimed_user(), "alice");
}

TEST_F(MirrorServerTest, UnixSocketHasItsPermissions) {
  const std::string path = (directory_.path() / "sock").string();
  config_.listen = *ParseListenList("unix:" + path);
  config_.socket_mode_bits = 0600;
  Start();
  MirrorWhole("x.h5", "hello");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(MirrorServerTest, AddressInUseIsNamed) {
  Start();
  Config second = config_;
  second.listen = *ParseListenList(server_->addresses().front());
  const absl::Status refused = MirrorServer::Start(second, *store_, clock_).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(server_->addresses().front()));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("in use"));
}

TEST_F(MirrorServerTest, ManySessionsAtOnce) {
  Start();
  std::vector<std::thread> writers;
  for (int i = 0; i < 16; ++i) {
    writers.emplace_back([this, i] {
      const std::string name = StrCat("f", i, ".h5");
      MirrorWhole(name, std::string(100'000, static_cast<char>('a' + i)));
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(ReadBack(StrCat("f", i, ".h5"), 0), std::string(100'000, static_cast<char>('a' + i)));
  }
}

}  // namespace
}  // namespace h5mirror::server
