// ReadSnapshot over a real server: whose cut it is, how long it is held, and what a failure is of.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "server/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kBlock = 64 << 10;
constexpr absl::Duration kKeep = absl::Milliseconds(200);

class LiveReadTest : public MirrorServerTest {
 protected:
  static std::string Reader(char letter) { return std::string(16, letter); }

  static int64_t Tick(rpc::MirrorStream& stream, uint64_t seq, uint64_t size_bytes) {
    EXPECT_TRUE(stream.Send(BarrierRequest(seq, v1::BARRIER_KIND_TICK, size_bytes)).ok());
    for (;;) {
      const auto answer = stream.Receive();
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok() || answer->has_cut_visible()) return answer->cut_visible().cut();
    }
  }
  // `cut` unset: the newest one is opened.
  absl::Status Read(const v1::Snapshot& cut, char reader, std::string* bytes = nullptr,
                    v1::Snapshot* opened = nullptr, const std::string& name = "a.h5") {
    v1::ReadSnapshotRequest request;
    request.set_name(name);
    request.set_cut(cut.cut());
    request.set_file_id(cut.file_id());
    request.set_reader_id(Reader(reader));
    return client_->ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& answer) {
      if (answer.has_snapshot() && opened != nullptr) *opened = answer.snapshot();
      if (bytes != nullptr) bytes->append(answer.data());
      return absl::OkStatus();
    });
  }
};

TEST_F(LiveReadTest, WhatAFollowerHeldIsLetGoOfSoonAfterIt) {
  config_.snapshot_keep = kKeep;
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, "at rest");
  Tick(*writer, 1, 7);
  v1::FollowFileRequest request;
  request.set_name("a.h5");
  request.set_reader_id(Reader('f'));
  auto stream = client_->FollowFile(request);
  v1::FollowFileResponse message;
  ASSERT_TRUE(stream->Read(message));
  v1::Snapshot cut = message.snapshot();
  EXPECT_TRUE(Read(cut, 'r').ok()) << "others may read what it holds";
  stream->Cancel();
  while (stream->Read(message)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
  cut.clear_file_id();  // Else it would be opened again: it is still the newest one.
  absl::Status status;
  for (int i = 0; i < 15 && status.ok(); ++i) {
    absl::SleepFor(absl::Seconds(2));  // Each read holds it for a while.
    status = Read(cut, 'r');
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
}

TEST_F(LiveReadTest, TheNewestCutIsOpenedAgainForWhoNamesItsFile) {
  config_.snapshot_keep = kKeep;
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, "at rest");
  Tick(*writer, 1, 7);
  v1::Snapshot cut;
  ASSERT_TRUE(Read({}, 'a', nullptr, &cut).ok());
  EXPECT_EQ(Read(cut, 'a', nullptr, nullptr, "b.h5").code(), absl::StatusCode::kOutOfRange)
      << "to who has it open a cut expires, also where there is no such file any more";
  EXPECT_EQ(cut.file_id().size(), 16);
  v1::CloseSnapshotRequest close;
  close.set_name("a.h5");
  close.set_cut(cut.cut());
  close.set_reader_id(Reader('a'));
  ASSERT_TRUE(client_->CloseSnapshot(close).ok());
  std::string bytes;
  EXPECT_TRUE(Read(cut, 'b', &bytes).ok());
  EXPECT_EQ(bytes, "at rest");
  cut.set_file_id(std::string(16, 'x'));
  EXPECT_EQ(Read(cut, 'c').code(), absl::StatusCode::kOutOfRange) << "a cut of another file";
}

// More of them than the server has threads for calls (256).
TEST_F(LiveReadTest, ReadersWhoTakeNothingKeepNobodyOut) {
  constexpr int kStalled = 300;
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(16 * kBlock, 'a'));  // more than the window of a stream
  Tick(*writer, 1, 16 * kBlock);
  grpc::ChannelArguments fixed_windows;
  fixed_windows.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::Snapshots::NewStub(grpc::CreateCustomChannel(
      server_->addresses().front(), grpc::InsecureChannelCredentials(), fixed_windows));
  v1::ReadSnapshotRequest request;
  request.set_name("a.h5");
  request.set_reader_id(Reader('s'));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::ReadSnapshotResponse>>> stalled;
  for (int i = 0; i < kStalled; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    stalled.push_back(stub->ReadSnapshot(contexts.back().get(), request));
  }
  for (const auto& reader : stalled) {
    v1::ReadSnapshotResponse first;
    ASSERT_TRUE(reader->Read(&first)) << "none is refused";
    EXPECT_TRUE(first.has_snapshot());
  }
  std::string bytes;
  const absl::Status status = Read({}, 'a', &bytes);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(bytes, std::string(16 * kBlock, 'a'));
  EXPECT_TRUE(client_->GetServer().ok()) << "there is a thread for it";
  std::string late;
  v1::ReadSnapshotResponse part;
  while (stalled.front()->Read(&part)) late += part.data();
  EXPECT_TRUE(stalled.front()->Finish().ok());
  EXPECT_EQ(late, bytes) << "who takes his time gets all of it";
  for (const auto& context : contexts) context->TryCancel();
  for (int i = 1; i < kStalled; ++i) {
    while (stalled[i]->Read(&part)) {
    }
    EXPECT_FALSE(stalled[i]->Finish().ok());
  }
}

TEST_F(LiveReadTest, AFailureBehindARangeIsNoFailureOfTheRange) {
  Start();
  {
    auto writer = Open("a.h5", v1::INTENT_CREATE);
    Write(*writer, 0, std::string(4 * kBlock, 'a'));
    v1::MirrorFileRequest commit = BarrierRequest(1, v1::BARRIER_KIND_COMMIT, 4 * kBlock);
    commit.mutable_barrier()->add_metadata_page(3 * kBlock / 4096);
    commit.mutable_barrier()->add_metadata_page_count(1);
    ASSERT_TRUE(writer->Send(commit).ok());
    EXPECT_TRUE(writer->Finish().ok());
  }
  WaitForVersions("a.h5", 1);
  ASSERT_TRUE(Settled("a.h5").ok());
  {
    std::fstream head(root() / "a.h5", std::ios::in | std::ios::out | std::ios::binary);
    head.seekp(3 * kBlock + 10);
    head << "damaged";
    ASSERT_TRUE(head.flush().good());
  }
  v1::ReadVersionRequest request;
  request.set_name("a.h5");
  request.set_version(1);
  request.set_length_bytes(10);
  std::string bytes;
  const auto take = [&](const v1::ReadVersionResponse& answer) {
    if (!answer.ahead()) bytes += answer.data();
    return absl::OkStatus();
  };
  request.set_offset(3 * kBlock);
  ASSERT_EQ(client_->ReadVersion(request, take).code(), absl::StatusCode::kDataLoss)
      << "the range itself is damaged";
  bytes.clear();
  request.set_offset(0);
  request.set_is_metadata(true);
  request.set_metadata_length_bytes(4 * kBlock);
  const absl::Status status = client_->ReadVersion(request, take);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(bytes, "aaaaaaaaaa");
}

}  // namespace
}  // namespace h5mirror::server
