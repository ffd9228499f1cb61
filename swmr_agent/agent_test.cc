// The agent between a server that does as it is told and readers that ask through gRPC.
#include "swmr_agent/agent.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "h5mirror/v1/agents.grpc.pb.h"
#include "rpc/agent_socket.h"
#include "swmr_agent/service.h"

namespace h5mirror::agent {
namespace {

constexpr int64_t kSize = 4 * kBlockBytes;
constexpr uid_t kStranger = 0x7ffffff0;  // no process

// One file, of which each follower gets `cut`, once.
class FakeSnapshots final : public v1::Snapshots::Service {
 public:
  grpc::Status FollowFile(grpc::ServerContext* context, const v1::FollowFileRequest* request,
                          grpc::ServerWriter<v1::FollowFileResponse>* writer) override {
    v1::FollowFileResponse message;
    {
      absl::MutexLock lock(&mutex);
      tick_asked_for = request->tick();
      *message.mutable_snapshot() = cut;
    }
    message.set_file_id(message.snapshot().file_id());
    message.set_whole(true);
    message.set_has_writer(true);
    message.set_last(true);
    // So much is known of block 3: a reader that asks for metadata ahead is to get that block.
    message.add_data_offset(3 * kBlockBytes);
    message.add_data_length(kPageBytes);
    message.set_data(std::string(kPageBytes, fill()));
    message.set_data_crc32c(Crc32c(message.data()));
    writer->Write(message);
    while (!context->IsCancelled() && !HasGone(message.file_id())) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    return {grpc::StatusCode::UNAVAILABLE, "the file was removed"};
  }
  grpc::Status WaitForCut(grpc::ServerContext*, const v1::WaitForCutRequest*,
                          v1::WaitForCutResponse* response) override {
    absl::MutexLock lock(&mutex);
    response->set_cut(cut.cut());
    response->set_file_id(cut.file_id());
    response->set_has_writer(true);
    return grpc::Status::OK;
  }
  grpc::Status ReadSnapshot(grpc::ServerContext*, const v1::ReadSnapshotRequest* request,
                            grpc::ServerWriter<v1::ReadSnapshotResponse>* writer) override {
    v1::ReadSnapshotResponse answer;
    {
      absl::MutexLock lock(&mutex);
      *answer.mutable_snapshot() = cut;
    }
    writer->Write(answer);
    answer.clear_snapshot();
    if (request->is_metadata()) return {grpc::StatusCode::DATA_LOSS, "page 48 is damaged"};
    answer.set_offset(request->offset());
    answer.set_data(std::string(request->length_bytes(), fill()));
    answer.set_data_crc32c(Crc32c(answer.data()));
    writer->Write(answer);
    return grpc::Status::OK;
  }

  // Another file has its name, and its followers are told.
  bool HasGone(const std::string& file_id) {
    absl::MutexLock lock(&mutex);
    return tells_of_others && cut.file_id() != file_id;
  }
  // What the file's bytes are.
  char fill() {
    absl::MutexLock lock(&mutex);
    return cut.file_id().front();
  }
  static v1::Snapshot CutOf(char file) {
    v1::Snapshot cut;
    cut.set_cut(7);
    cut.set_size_bytes(kSize);
    cut.set_file_id(std::string(16, file));
    return cut;
  }

  absl::Mutex mutex;
  v1::Snapshot cut ABSL_GUARDED_BY(mutex) = CutOf('a');
  bool tells_of_others ABSL_GUARDED_BY(mutex) = false;
  google::protobuf::Duration tick_asked_for ABSL_GUARDED_BY(mutex);
};

// Does not say what a version is before it is told to.
class FakeVersions final : public v1::Versions::Service {
 public:
  grpc::Status GetVersion(grpc::ServerContext* context, const v1::GetVersionRequest*,
                          v1::GetVersionResponse*) override {
    if (!asked.HasBeenNotified()) asked.Notify();
    while (!answers.HasBeenNotified() && !given_up) {
      given_up = context->IsCancelled();
      absl::SleepFor(absl::Milliseconds(5));
    }
    return {grpc::StatusCode::NOT_FOUND, "no such version"};
  }
  absl::Notification asked, answers;
  std::atomic<bool> given_up = false;  // the agent has, at its deadline
};

// Says of each user what it is told to say.
class FakeAgents final : public v1::Agents::Service {
 public:
  grpc::Status CheckReader(grpc::ServerContext*, const v1::CheckReaderRequest* request,
                           v1::CheckReaderResponse* response) override {
    ++asked;
    EXPECT_EQ(request->name(), "a.h5");
    response->set_has_tables(has_tables);
    response->set_may_read(may_read);
    return grpc::Status::OK;
  }
  std::atomic<int> asked = 0;
  std::atomic<bool> has_tables = true, may_read = true;
};

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&snapshots_).RegisterService(&versions_).RegisterService(&agents_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    rpc::ClientOptions options;
    options.server = options.target = "127.0.0.1:" + std::to_string(port);
    options.loopback = true;
    config_.servers.push_back(options);
  }
  void Start(uid_t user = geteuid()) {
    agent_ = std::make_unique<Agent>(config_);
    service_ = std::make_unique<SnapshotsFromMemory>(*agent_, user);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    own_ = builder.BuildAndStart();
    stub_ = v1::Snapshots::NewStub(own_->InProcessChannel({}));
  }
  void TearDown() override {
    own_.reset();
    agent_.reset();
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
  }

  // The bytes of [offset, offset + length) as readers get them, or what went wrong.
  std::string Read(v1::ReadSnapshotRequest request, v1::Snapshot* opened = nullptr) {
    request.set_name("a.h5");
    request.set_reader_id("0123456789abcdef");
    grpc::ClientContext context;
    context.AddMetadata(rpc::kAgentServerKey, config_.servers.front().target);
    const auto stream = stub_->ReadSnapshot(&context, request);
    v1::ReadSnapshotResponse answer;
    std::string bytes;
    while (stream->Read(&answer)) {
      if (answer.has_snapshot() && opened != nullptr) *opened = answer.snapshot();
      if (!answer.ahead()) bytes += answer.data();
    }
    const grpc::Status status = stream->Finish();
    return status.ok() ? bytes : "error: " + status.error_message();
  }
  static v1::ReadSnapshotRequest Part(uint64_t offset, uint64_t length) {
    v1::ReadSnapshotRequest request;
    request.set_offset(offset);
    request.set_length_bytes(length);
    return request;
  }

  FakeSnapshots snapshots_;
  FakeVersions versions_;
  FakeAgents agents_;
  std::unique_ptr<grpc::Server> server_;
  Config config_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<SnapshotsFromMemory> service_;
  std::unique_ptr<grpc::Server> own_;
  std::unique_ptr<v1::Snapshots::Stub> stub_;
};

TEST_F(AgentTest, AFailureBehindARangeIsNoFailureOfTheRange) {
  Start();
  v1::ReadSnapshotRequest request = Part(5, 4);
  request.set_is_metadata(true);
  request.set_metadata_length_bytes(kSize);
  EXPECT_EQ(Read(request), "aaaa");
  EXPECT_THAT(Read(Part(3 * kBlockBytes + kPageBytes, 2)), "aa");
}

TEST_F(AgentTest, AStrangerReadsWhatTheServerLetsIt) {
  Start(kStranger);
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  EXPECT_EQ(agents_.asked, 1);
}

TEST_F(AgentTest, AStrangerWithoutTheRightHearsOfNoFile) {
  agents_.may_read = false;
  Start(kStranger);
  EXPECT_THAT(Read(Part(0, 3)), testing::HasSubstr("error: a.h5: there is no such file, or"));
  const auto server = agent_->FindServer(config_.servers.front().target);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(agent_->Find(**server, "a.h5"), nullptr) << "nobody else has asked for it";
}

TEST_F(AgentTest, MemoryIsForThoseThatAreKnownToHaveTheRight) {
  Start(kStranger);
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  const rpc::CutMapQuestion question{config_.servers.front().target, "a.h5", "", 7};
  EXPECT_TRUE(FindMemory(*agent_, kStranger, question).ok());
  EXPECT_TRUE(FindMemory(*agent_, geteuid(), question).ok());
  EXPECT_TRUE(absl::IsUnavailable(FindMemory(*agent_, kStranger + 1, question).status()));
  EXPECT_EQ(agents_.asked, 1);
}

TEST_F(AgentTest, OneQuestionOpensTheNewestCutForThoseWithTheRight) {
  Start();
  rpc::CutMapQuestion question{config_.servers.front().target, "a.h5", ""};
  question.kind = rpc::CutMapQuestion::Kind::kOpen;
  question.reader_id = std::string(16, 'r');
  const auto opened = OpenCut(*agent_, kStranger, question);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->snapshot.cut(), 7);
  EXPECT_EQ(opened->snapshot.file_id(), std::string(16, 'a'));
  EXPECT_NE(opened->memory, nullptr) << "with what is known of its metadata";
  EXPECT_EQ(agents_.asked, 1) << "a right that nobody had asked for yet";
  agents_.may_read = false;
  EXPECT_TRUE(absl::IsNotFound(OpenCut(*agent_, kStranger + 1, question).status()));
}

TEST_F(AgentTest, WithoutTablesOrByConfigurationAllUsersRead) {
  agents_.has_tables = agents_.may_read = false;
  Start(kStranger);
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  agents_.has_tables = true;
  config_.users = Config::Users::kAll;
  own_.reset();
  Start(kStranger);
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  EXPECT_EQ(agents_.asked, 1);
}

TEST_F(AgentTest, TheServerIsAskedForItsTick) {
  config_.tick_len = absl::Milliseconds(900);
  Start();
  EXPECT_EQ(Read(Part(0, 3)), "aaa");
  absl::MutexLock lock(&snapshots_.mutex);
  EXPECT_EQ(snapshots_.tick_asked_for.seconds(), 0);
  EXPECT_EQ(snapshots_.tick_asked_for.nanos(), 900'000'000);
}

TEST_F(AgentTest, AnotherFileThatReachesTheSameCutIsNotMixedUp) {
  Start();
  v1::Snapshot opened;
  EXPECT_EQ(Read(Part(0, 3), &opened), "aaa");
  {
    absl::MutexLock lock(&snapshots_.mutex);
    snapshots_.cut = FakeSnapshots::CutOf('b');
  }
  v1::ReadSnapshotRequest later = Part(2 * kBlockBytes, 3);
  later.set_cut(7);
  later.set_file_id(opened.file_id());
  EXPECT_THAT(Read(later), testing::HasSubstr("snapshot expired"));
  {
    absl::MutexLock lock(&snapshots_.mutex);
    snapshots_.tells_of_others = true;
  }
  // The subscription is taken up again, and brings the other file.
  std::string read;
  for (int i = 0; i < 1500 && read != "bbb"; ++i) {
    absl::SleepFor(absl::Milliseconds(20));
    read = Read(Part(0, 3), &opened);
    EXPECT_NE(read, "aaa") << "an open shows the file that has the name now";
  }
  EXPECT_EQ(read, "bbb");
  EXPECT_EQ(opened.file_id(), std::string(16, 'b'));
  later.set_offset(0);
  EXPECT_NE(Read(later), "aaa");
}

TEST_F(AgentTest, ItsMainThreadWaitsForNoServer) {
  {
    absl::MutexLock lock(&snapshots_.mutex);
    snapshots_.cut.set_version(3);
  }
  config_.idle = absl::ZeroDuration();
  Start();
  const auto server = agent_->FindServer(config_.servers.front().target);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_NE(agent_->Follow(**server, "a.h5"), nullptr);
  versions_.asked.WaitForNotification();  // In the middle of a question to the server
  agent_->OnTimer();                      // it is let go of.
  EXPECT_EQ(agent_->Find(**server, "a.h5"), nullptr);
  absl::SleepFor(absl::Seconds(1));
  EXPECT_FALSE(versions_.given_up) << "it waited for the answer, to the deadline";
  versions_.answers.Notify();
}

}  // namespace
}  // namespace h5mirror::agent
