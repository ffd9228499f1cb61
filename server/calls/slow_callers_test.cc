// Callers that wait, or read nothing, by the hundred; and those whose token goes.
#include <map>

#include "server/testing/mirror_server_fixture.h"
#include "spdlog/sinks/ringbuffer_sink.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

// More than gRPC has threads for calls (256).
constexpr int kManyCalls = 300;
constexpr absl::Duration kPatience = absl::Seconds(60);

// Unary calls of one kind, under way at once on one connection.
template <typename Request, typename Response>
class ManyCalls {
 public:
  ~ManyCalls() {
    for (const auto& call : calls_) call->context.TryCancel();
    while (open_ > 0 && Next() != nullptr) continue;
    queue_.Shutdown();
  }

  // `start` is PrepareAsync... of a stub.
  template <typename Start>
  void Begin(const std::string& token, const Request& request, Start start) {
    auto call = std::make_unique<Call>();
    if (!token.empty()) call->context.AddMetadata("authorization", "Bearer " + token);
    call->reader = start(&call->context, request, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call.get());
    calls_.push_back(std::move(call));
    ++open_;
  }

  struct Call {
    grpc::ClientContext context;
    Response response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  };
  // The next that has ended; nullptr: none has within `timeout`.
  const Call* Next(absl::Duration timeout = kPatience) {
    void* tag = nullptr;
    bool ok = false;
    const auto until = absl::ToChronoTime(absl::Now() + timeout);
    if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return nullptr;
    --open_;
    return static_cast<const Call*>(tag);
  }

 private:
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
  int open_ = 0;
};
using Commits = ManyCalls<v1::CommitVersionRequest, v1::CommitVersionResponse>;
using Waits = ManyCalls<v1::WaitForCutRequest, v1::WaitForCutResponse>;

class SlowCallersTest : public MirrorServerTest {
 protected:
  // A connection of its own, and stubs on it.
  void Dial() {
    grpc::ChannelArguments fixed_windows;
    fixed_windows.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    fixed_windows.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(server_->addresses().front(),
                                         grpc::InsecureChannelCredentials(), fixed_windows);
    versions_ = v1::Versions::NewStub(channel_);
    snapshots_ = v1::Snapshots::NewStub(channel_);
  }
  // Of the connection on which the calls wait: it comes to the server after them.
  grpc::Status GetServer(const std::string& token = "") {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::GetServerResponse response;
    return v1::Server::NewStub(channel_)->GetServer(&context, {}, &response);
  }
  void BeginCommit(Commits& commits, const std::string& name, const std::string& token = "") {
    v1::CommitVersionRequest request;
    request.set_name(name);
    request.set_request_id(ToByteString(RandomBytes16()));
    request.mutable_wait()->set_seconds(3600);
    commits.Begin(token, request, [this](auto... arguments) {
      return versions_->PrepareAsyncCommitVersion(arguments...);
    });
  }
  // Of a file that has a version, and whose writer makes no cut.
  std::unique_ptr<rpc::MirrorStream> BeginCommitBesideWriter(Commits& commits) {
    Start();
    Dial();
    MirrorWhole("a.h5", "hello");
    auto writer = Open("a.h5", v1::INTENT_CREATE);
    BeginCommit(commits, "a.h5");
    EXPECT_TRUE(GetServer().ok());
    return writer;
  }
  void BeginWait(Waits& waits, const std::string& name, const std::string& token = "") {
    v1::WaitForCutRequest request;
    request.set_name(name);
    request.set_after_cut(int64_t{1} << 60);
    request.mutable_timeout()->set_seconds(3600);
    waits.Begin(token, request, [this](auto... arguments) {
      return snapshots_->PrepareAsyncWaitForCut(arguments...);
    });
  }

  struct Unread {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ReadVersionResponse>> reader;
  };
  // A read of all of `name`, of which only the first message is taken.
  std::unique_ptr<Unread> BeginUnread(const std::string& name, const std::string& token = "") {
    auto call = std::make_unique<Unread>();
    if (!token.empty()) call->context.AddMetadata("authorization", "Bearer " + token);
    v1::ReadVersionRequest request;
    request.set_name(name);
    call->reader = versions_->ReadVersion(&call->context, request);
    return call;
  }

  // More than the windows of a connection.
  std::string MirrorMegabytes(const std::string& name) {
    constexpr uint64_t kPiece = 1 << 20, kPieces = 8;
    auto stream = Open(name, v1::INTENT_CREATE);
    for (uint64_t i = 0; i < kPieces; ++i) Write(*stream, i * kPiece, std::string(kPiece, 'x'));
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, kPieces * kPiece).version(), 0);
    EXPECT_TRUE(stream->Finish().ok());
    return std::string(kPieces * kPiece, 'x');
  }

  // A server that knows these, each with all rights.
  void StartWithTokens(const std::vector<std::string>& names) {
    config_.tokens_file = directory_.path() / "tokens";
    for (const std::string& name : names) {
      tokens_[name] = *AddToken(config_.tokens_file, name, Rights::All());
    }
    options_.token = tokens_[names.front()];
    Start();
    Dial();
  }
  void ConnectAs(const std::string& name) {
    options_.token = tokens_[name];
    Connect();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Versions::Stub> versions_;
  std::unique_ptr<v1::Snapshots::Stub> snapshots_;
  std::map<std::string, std::string> tokens_;
};

TEST_F(SlowCallersTest, CommitsThatWaitForACutHoldNoThread) {
  Start();
  Dial();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, "hello");
  Commits commits;
  for (int i = 0; i < kManyCalls; ++i) BeginCommit(commits, "a.h5");
  const grpc::Status status = GetServer();
  EXPECT_TRUE(status.ok()) << status.error_message();
  // Some of them may come only after the first cut.
  int answered = 0;
  const absl::Time until = absl::Now() + kPatience;
  for (uint64_t seq = 1; answered < kManyCalls && absl::Now() < until; ++seq) {
    Write(*writer, 0, std::string(5, static_cast<char>('a' + seq % 26)));
    Cut(*writer, seq, v1::BARRIER_KIND_TICK, 5);
    while (const Commits::Call* call = commits.Next(absl::Milliseconds(200))) {
      EXPECT_TRUE(call->status.ok()) << call->status.error_message();
      EXPECT_GT(call->response.version().version(), 0);
      if (++answered == kManyCalls) break;
    }
  }
  EXPECT_EQ(answered, kManyCalls);
}

TEST_F(SlowCallersTest, ACommitIsMadeWhenTheWriterGoesWithoutACut) {
  Commits commits;
  const auto writer = BeginCommitBesideWriter(commits);
  EXPECT_TRUE(writer->Finish().ok());
  const Commits::Call* call = commits.Next();
  ASSERT_NE(call, nullptr);
  EXPECT_TRUE(call->status.ok()) << call->status.error_message();
  EXPECT_EQ(call->response.version().version(), 1);
}

TEST_F(SlowCallersTest, ACommitEndsWithTheServer) {
  Commits commits;
  const auto writer = BeginCommitBesideWriter(commits);
  EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok());
  const Commits::Call* call = commits.Next();
  ASSERT_NE(call, nullptr);
  // OK: it came to a worker only when the writer had been sent away.
  EXPECT_TRUE(call->status.ok() || call->status.error_code() == grpc::StatusCode::UNAVAILABLE)
      << call->status.error_message();
}

TEST_F(SlowCallersTest, VersionsThatNobodyReadsHoldNoThread) {
  Start();
  Dial();
  const std::string content = MirrorMegabytes("a.h5");
  std::vector<std::unique_ptr<Unread>> unread;
  for (int i = 0; i < kManyCalls; ++i) unread.push_back(BeginUnread("a.h5"));
  for (const auto& call : unread) {
    v1::ReadVersionResponse first;
    ASSERT_TRUE(call->reader->Read(&first)) << "none is refused";
    EXPECT_TRUE(first.has_version());
  }
  const grpc::Status status = GetServer();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(ReadBack("a.h5", 1) == content) << "a caller that reads gets all of it";
  std::string late;
  v1::ReadVersionResponse part;
  while (unread.front()->reader->Read(&part)) late += part.data();
  EXPECT_TRUE(unread.front()->reader->Finish().ok());
  EXPECT_TRUE(late == content) << "a slow caller gets all of it";
  for (const auto& call : unread) call->context.TryCancel();
}

TEST_F(SlowCallersTest, OneTokenThatWaitsForEverythingLeavesOthersTheirPart) {
  config_.memory_max_bytes = uint64_t{64} << 20;  // 1,024 calls may wait
  StartWithTokens({"greedy", "modest"});
  MirrorWhole("a.h5", "hello");
  Waits waits;
  for (int i = 0; i < 1024; ++i) BeginWait(waits, "a.h5", tokens_["greedy"]);
  for (int i = 0; i < 512; ++i) {
    const Waits::Call* refused = waits.Next();
    ASSERT_NE(refused, nullptr) << "only " << i << " were refused";
    EXPECT_EQ(refused->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused->status.error_message(),
                ::testing::AllOf(HasSubstr("\"greedy\""), HasSubstr("1024"), HasSubstr("50%"),
                                 HasSubstr("caller_share")));
  }
  ConnectAs("modest");
  v1::WaitForCutRequest request;
  request.set_name("a.h5");
  const auto answer = client_->WaitForCut(request, kPatience);
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(SlowCallersTest, OneTokenThatOpensSessionsLeavesOthersTheirPart) {
  config_.max_sessions = 8;
  StartWithTokens({"greedy", "modest"});
  std::vector<std::unique_ptr<rpc::MirrorStream>> streams;
  for (int i = 0; i < 4; ++i) {
    v1::SessionOpened opened;
    streams.push_back(Open(StrCat("f", i, ".h5"), v1::INTENT_CREATE, &opened));
    EXPECT_FALSE(opened.file_id().empty());
  }
  auto refused = client_->OpenMirrorStream();
  ASSERT_TRUE(refused.ok());
  const absl::Status status = (*refused)->Receive().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_sessions"));
  ConnectAs("modest");
  MirrorWhole("g.h5", "hello");
}

TEST_F(SlowCallersTest, OneTokenThatReadsNothingLeavesOthersTheirPart) {
  config_.memory_max_bytes = uint64_t{64} << 20;  // 256 reads
  StartWithTokens({"greedy", "modest"});
  const std::string content = MirrorMegabytes("a.h5");
  std::vector<std::unique_ptr<Unread>> unread;
  for (int i = 0; i < 128; ++i) unread.push_back(BeginUnread("a.h5", tokens_["greedy"]));
  v1::ReadVersionResponse part;
  for (const auto& call : unread) EXPECT_TRUE(call->reader->Read(&part));
  const auto refused = BeginUnread("a.h5", tokens_["greedy"]);
  EXPECT_FALSE(refused->reader->Read(&part));
  EXPECT_EQ(refused->reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ConnectAs("modest");
  EXPECT_TRUE(ReadBack("a.h5", 1) == content);
  for (const auto& call : unread) call->context.TryCancel();
}

// What is logged from now on. Threads of a server may log when the test is over: it stays.
std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> KeepLog() {
  static const auto* const sink = new auto(std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(64));
  static const auto* const logger = new auto(std::make_shared<spdlog::logger>("test", *sink));
  spdlog::set_default_logger(*logger);
  return *sink;
}

TEST_F(SlowCallersTest, WhatARemovedTokenHasUnderWayEnds) {
  StartWithTokens({"gone", "stays"});
  MirrorMegabytes("big.h5");
  MirrorWhole("a.h5", "hello");
  auto session = Open("a.h5", v1::INTENT_CREATE);
  const auto first = std::move(client_);
  ConnectAs("stays");
  const auto of_other = Open("b.h5", v1::INTENT_CREATE);
  const auto other = std::move(client_);
  ConnectAs("gone");
  v1::FollowFileRequest follow;
  follow.set_name("a.h5");
  const auto follower = client_->FollowFile(follow);
  v1::FollowFileResponse followed;
  ASSERT_TRUE(follower->Read(followed));
  Waits waits;
  BeginWait(waits, "a.h5", tokens_["gone"]);
  Commits commits;
  BeginCommit(commits, "a.h5", tokens_["gone"]);
  const auto unread = BeginUnread("big.h5", tokens_["gone"]);
  v1::ReadVersionResponse part;
  ASSERT_TRUE(unread->reader->Read(&part));
  ASSERT_TRUE(GetServer(tokens_["gone"]).ok());

  const auto log = KeepLog();
  ASSERT_TRUE(RemoveToken(config_.tokens_file, "gone").ok());
  ASSERT_TRUE(server_->ReloadTokens().ok());
  const absl::Status ended = session->Receive().status();
  EXPECT_TRUE(absl::IsUnauthenticated(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("\"gone\" was removed"));
  while (follower->Read(followed)) continue;
  EXPECT_TRUE(absl::IsUnauthenticated(follower->Finish()));
  const Waits::Call* wait = waits.Next();
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const Commits::Call* commit = commits.Next();
  ASSERT_NE(commit, nullptr);
  EXPECT_EQ(commit->status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // Nobody took its messages: it is cut off.
  absl::SleepFor(absl::Seconds(1));
  while (unread->reader->Read(&part)) continue;
  EXPECT_EQ(unread->reader->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(log->last_formatted(),
              ::testing::Contains(HasSubstr("token \"gone\": 5 sessions and calls end")));
  Write(*of_other, 0, "goes on");
  EXPECT_GT(Cut(*of_other, 1, v1::BARRIER_KIND_COMMIT, 7).version(), 0);
}

TEST_F(SlowCallersTest, ALostRightEndsWhatNeedsIt) {
  StartWithTokens({"changed"});
  MirrorWhole("a.h5", "hello");
  auto session = Open("a.h5", v1::INTENT_CREATE);
  v1::FollowFileRequest follow;
  follow.set_name("a.h5");
  const auto follower = client_->FollowFile(follow);
  v1::FollowFileResponse followed;
  ASSERT_TRUE(follower->Read(followed));
  std::vector<TokenEntry> entries = *ReadTokenFile(config_.tokens_file);
  entries.front().rights = *Rights::Parse("read,admin");
  ASSERT_TRUE(WriteTokenFile(config_.tokens_file, entries).ok());
  ASSERT_TRUE(server_->ReloadTokens().ok());
  const absl::Status ended = session->Receive().status();
  EXPECT_TRUE(absl::IsPermissionDenied(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("\"write\""));
  v1::RollbackVersionRequest rollback;
  rollback.set_name("a.h5");
  rollback.set_version(1);
  rollback.set_request_id(ToByteString(RandomBytes16()));
  rollback.set_revoke_lease(true);  // The session's may be about to be given back.
  ASSERT_TRUE(client_->RollbackVersion(rollback).ok());
  ASSERT_TRUE(follower->Read(followed)) << "to follow wants no right to write";
  follower->Cancel();
  while (follower->Read(followed)) continue;
  EXPECT_FALSE(follower->Finish().ok());
}

// Else a user that opens many connections would leave another user of the socket nothing.
TEST_F(SlowCallersTest, AUserOfAUnixSocketHasOneShareForAllItsConnections) {
  config_.listen = *ParseListenList("unix:" + (directory_.path() / "sock").string());
  config_.max_sessions = 8;
  Start();
  std::vector<std::unique_ptr<rpc::MirrorStream>> share;
  for (const char* name : {"a.h5", "b.h5", "c.h5", "d.h5"}) {
    share.push_back(Open(name, v1::INTENT_CREATE));
  }
  const auto second = rpc::Client::Connect(options_, absl::Seconds(20));
  ASSERT_TRUE(second.ok()) << second.status();
  const auto refused = (*second)->OpenMirrorStream();
  ASSERT_TRUE(refused.ok()) << refused.status();
  const absl::Status why = (*refused)->Receive().status();
  EXPECT_TRUE(absl::IsResourceExhausted(why)) << why;
  EXPECT_THAT(std::string(why.message()),
              HasSubstr("uid " + std::to_string(getuid()) + " has its share of the server's 8"));
}

// A reader of an older release asks again after kUnavailable only.
TEST_F(SlowCallersTest, AStopEndsACallThatDoesNotEndAsOneToBeMadeAgain) {
  Start();
  Dial();
  MirrorMegabytes("big.h5");
  const auto unread = BeginUnread("big.h5");
  v1::ReadVersionResponse part;
  ASSERT_TRUE(unread->reader->Read(&part));
  EXPECT_TRUE(server_->Stop(absl::Seconds(3)).ok());
  while (unread->reader->Read(&part)) continue;
  const grpc::Status ended = unread->reader->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(ended.error_message(), HasSubstr("the server is stopping, and has ended this call"));
}

TEST_F(SlowCallersTest, TokensThatCannotBeReadEndNothing) {
  StartWithTokens({"stays"});
  auto session = Open("a.h5", v1::INTENT_CREATE);
  ASSERT_TRUE(ReplaceSecretFile(config_.tokens_file, "not a token\n").ok());
  EXPECT_FALSE(server_->ReloadTokens().ok());
  Write(*session, 0, "goes on");
  EXPECT_GT(Cut(*session, 1, v1::BARRIER_KIND_COMMIT, 7).version(), 0);
}

}  // namespace
}  // namespace h5mirror::server
