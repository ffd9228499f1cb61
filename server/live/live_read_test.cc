// ReadSnapshot over a real server: whose cut it is, how long it is held, and what a failure is of.
#include <pthread.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/testing/fault_env.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kBlock = 64 << 10;
constexpr absl::Duration kKeep = absl::Milliseconds(200);
const std::string kMoreThanAWindow(16 * kBlock, 'a');  // of a stream

// A reader that takes the first message of a call and no more.
struct Stalled {
  grpc::Status Cancel() {
    context.TryCancel();
    v1::ReadSnapshotResponse part;
    while (reader->Read(&part)) {
    }
    return reader->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::ReadSnapshotResponse>> reader;
};

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
  // Of the newest cut of a.h5, which is more than a window.
  std::vector<std::unique_ptr<Stalled>> Stall(int count) {
    grpc::ChannelArguments fixed_windows;
    fixed_windows.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = v1::Snapshots::NewStub(grpc::CreateCustomChannel(
        server_->addresses().front(), grpc::InsecureChannelCredentials(), fixed_windows));
    v1::ReadSnapshotRequest request;
    request.set_name("a.h5");
    request.set_reader_id(Reader('s'));
    std::vector<std::unique_ptr<Stalled>> stalled;
    for (int i = 0; i < count; ++i) {
      auto call = std::make_unique<Stalled>();
      call->reader = stub_->ReadSnapshot(&call->context, request);
      stalled.push_back(std::move(call));
    }
    for (const auto& call : stalled) {
      v1::ReadSnapshotResponse first;
      EXPECT_TRUE(call->reader->Read(&first)) << "none is refused";
      EXPECT_TRUE(first.has_snapshot());
    }
    return stalled;
  }

  std::unique_ptr<v1::Snapshots::Stub> stub_;
};

TEST_F(LiveReadTest, ACutTellsWhichSessionMadeIt) {
  Start();
  std::vector<std::string> ids;
  for (int session = 0; session < 2; ++session) {
    auto writer = Open("a.h5", v1::INTENT_CREATE);
    for (uint64_t seq : {1, 2}) {
      Write(*writer, 0, "bytes");
      Tick(*writer, seq, 5);
      v1::Snapshot opened;
      EXPECT_TRUE(Read(v1::Snapshot(), 'r', nullptr, &opened).ok());
      EXPECT_EQ(opened.writer_session_id().size(), 16);
      ids.push_back(opened.writer_session_id());
    }
    EXPECT_TRUE(writer->Finish().ok());
  }
  EXPECT_EQ(ids[0], ids[1]) << "one open made both";
  EXPECT_EQ(ids[2], ids[3]);
  EXPECT_NE(ids[0], ids[2]);
}

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
      << "an open cut expires for its reader, also where the file has gone";
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
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, kMoreThanAWindow);
  Tick(*writer, 1, kMoreThanAWindow.size());
  const auto stalled = Stall(300);
  std::string bytes;
  const absl::Status status = Read({}, 'a', &bytes);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(bytes, kMoreThanAWindow);
  EXPECT_TRUE(client_->GetServer().ok()) << "there is a thread for it";
  std::string late;
  v1::ReadSnapshotResponse part;
  while (stalled.front()->reader->Read(&part)) late += part.data();
  EXPECT_TRUE(stalled.front()->reader->Finish().ok());
  EXPECT_EQ(late, bytes) << "a slow reader gets all of it";
  for (size_t i = 1; i < stalled.size(); ++i) EXPECT_FALSE(stalled[i]->Cancel().ok());
}

TEST_F(LiveReadTest, AsManyReadAtOnceAsTheMemoryHasRoomFor) {
  constexpr int kCalls = 256;
  config_.memory_max_bytes = uint64_t{kCalls} * (256 << 10);
  config_.caller_share_percent = 100;
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, kMoreThanAWindow);
  Tick(*writer, 1, kMoreThanAWindow.size());
  const auto stalled = Stall(kCalls);
  EXPECT_EQ(Read({}, 'a').code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(stalled.back()->Cancel().ok());
  absl::Status status;
  for (int i = 0; i < 600; ++i) {  // Until the server has heard that it has gone.
    status = Read({}, 'a');
    if (!absl::IsResourceExhausted(status)) break;
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(status.ok()) << status;
  for (int i = 0; i < kCalls - 1; ++i) EXPECT_FALSE(stalled[i]->Cancel().ok());
}

// Reads of the store by workers wait: the first one and those after `scan_count` for permits, the
// others for the end.
class SlowReads {
 public:
  explicit SlowReads(int scan_count) : scan_count_(scan_count) {}

  void AfterRead() {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    if (std::string_view(name) != "send stream") return;
    absl::MutexLock lock(&mutex_);
    if (is_over_) return;
    const int number = read_count_++;
    const bool is_permitted = number == 0 || number >= scan_count_;
    ++waiting_;
    const auto may_go = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return is_over_ || (is_permitted && permits_ > 0);
    };
    mutex_.Await(absl::Condition(&may_go));
    --waiting_;
    if (is_permitted) --permits_;
  }
  bool AwaitWaiting(int count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [&]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_ >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(60));
  }
  void Permit() {
    absl::MutexLock lock(&mutex_);
    ++permits_;
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    is_over_ = true;
  }

 private:
  const int scan_count_;
  absl::Mutex mutex_;
  int read_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int permits_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

class SlowDiskTest : public LiveReadTest {
 protected:
  Env& env() override { return disk_; }

  FaultEnv disk_;
};

TEST_F(SlowDiskTest, WhoReadsAWholeFileLeavesOthersTheirTurns) {
  constexpr int kWorkers = 24;   // as many as one connection may have
  constexpr int kMessages = 64;  // of each scan
  constexpr int kPermits = 32;   // fewer than a scan needs
  constexpr uint64_t kSize = kMessages * 8 * kBlock;
  SlowReads slow(kWorkers);
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  const std::string bytes(kSize, 'a');
  for (uint64_t at = 0; at < kSize; at += 8 * kBlock) {
    Write(*writer, at, bytes.substr(at, 8 * kBlock));
  }
  Tick(*writer, 1, kSize);
  disk_.SetAfterRead([&slow](const std::string&) { slow.AfterRead(); });
  std::vector<std::thread> scans;
  for (int i = 0; i < kWorkers; ++i) {
    scans.emplace_back([this, &bytes] {
      std::string read;
      EXPECT_TRUE(Read({}, 's', &read).ok());
      EXPECT_TRUE(read == bytes);
    });
  }
  EXPECT_TRUE(slow.AwaitWaiting(kWorkers));
  absl::Notification has_come;
  std::thread late([this, &has_come] {
    v1::ReadSnapshotRequest request;
    request.set_name("a.h5");
    request.set_reader_id(Reader('l'));
    request.set_length_bytes(100);
    const auto take = [](const v1::ReadSnapshotResponse&) { return absl::OkStatus(); };
    EXPECT_TRUE(client_->ReadSnapshot(request, take).ok());
    has_come.Notify();
  });
  bool is_served = false;
  for (int i = 1; i <= kPermits && !is_served; ++i) {
    slow.Permit();
    // All of them are enough, however slow the machine is.
    is_served = has_come.WaitForNotificationWithTimeout(i < kPermits ? absl::Milliseconds(200)
                                                                     : absl::Seconds(60));
  }
  EXPECT_TRUE(is_served) << "no scan has ended";
  slow.End();
  late.join();
  for (std::thread& scan : scans) scan.join();
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
