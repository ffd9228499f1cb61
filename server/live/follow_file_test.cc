// FollowFile over a real server: what a follower puts together from it is the file, cut by cut.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "server/testing/follow_file_fixture.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Takes no more than 64 KiB that nobody has read, as other than by our own client.
class SmallWindow final : public rpc::FollowStream {
 public:
  SmallWindow(const std::string& address, const v1::FollowFileRequest& request) {
    grpc::ChannelArguments fixed_windows;
    fixed_windows.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = v1::Snapshots::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), fixed_windows));
    reader_ = stub_->FollowFile(&context_, request);
  }
  ~SmallWindow() override {
    Cancel();
    v1::FollowFileResponse rest;
    while (Read(rest)) {
    }
    static_cast<void>(reader_->Finish());
  }

  bool Read(v1::FollowFileResponse& message) override { return reader_->Read(&message); }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  std::unique_ptr<v1::Snapshots::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::FollowFileResponse>> reader_;
};

TEST_F(FollowFileTest, SendsTheNewestCutAndThenWhatChanges) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(10 * kPage, 'a'));
  const int64_t first = Tick(*writer, 1, 10 * kPage, {0, 5});
  auto stream = client_->FollowFile(Request("a.h5", kAllMetadata));
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  EXPECT_EQ(received.first.snapshot().cut(), first);
  EXPECT_EQ(received.first.snapshot().size_bytes(), 10 * kPage);
  EXPECT_TRUE(received.first.whole());
  EXPECT_TRUE(received.first.has_writer());
  const std::string page(kPage, 'a');
  EXPECT_THAT(received.data, ElementsAre(std::pair(uint64_t{0}, page), std::pair(5 * kPage, page)));

  Write(*writer, 5 * kPage + 1, "metadata");
  Write(*writer, 8 * kPage, "raw");
  const int64_t second = Tick(*writer, 2, 10 * kPage);
  received = Until(*stream, second);
  EXPECT_FALSE(received.first.whole());
  EXPECT_THAT(received.changed(), ElementsAre(Extent{5 * kPage + 1, 8}, Extent{8 * kPage, 3}));
  std::string changed = page;
  changed.replace(1, 8, "metadata");
  EXPECT_THAT(received.data, ElementsAre(std::pair(5 * kPage, changed)));
}

TEST_F(FollowFileTest, MetadataHasABound) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(10 * kPage, 'a'));
  Tick(*writer, 1, 10 * kPage, {1, 2, 3, 4});
  auto stream = client_->FollowFile(Request("a.h5", 2 * kPage + 7));
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  EXPECT_THAT(received.data, ElementsAre(std::pair(kPage, std::string(2 * kPage, 'a'))));
}

TEST_F(FollowFileTest, LargeMetadataComesInManyMessages) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  std::string bytes(6 << 20, '\0');
  std::minstd_rand random(7);
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (uint64_t at = 0; at < bytes.size(); at += 1 << 19) {
    Write(*writer, at, bytes.substr(at, 1 << 19));
  }
  v1::MirrorFileRequest barrier = BarrierRequest(1, v1::BARRIER_KIND_TICK, bytes.size());
  barrier.mutable_barrier()->add_metadata_page(0);
  barrier.mutable_barrier()->add_metadata_page_count(bytes.size() / kPage);
  ASSERT_TRUE(writer->Send(barrier).ok());
  ASSERT_TRUE(writer->Receive().ok());
  for (const auto& stream : {client_->FollowFile(Request("a.h5", kAllMetadata)),
                             client_->FollowFile(Request("a.h5", kAllMetadata))}) {
    Received received;
    ASSERT_TRUE(Next(*stream, received));
    std::string all;
    for (const auto& [offset, data] : received.data) {
      EXPECT_EQ(offset, all.size());
      all += data;
    }
    EXPECT_TRUE(all == bytes);
  }
}

TEST_F(FollowFileTest, GoesOnFromACut) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(10 * kPage, 'a'));
  Tick(*writer, 1, 10 * kPage);
  auto stream = client_->FollowFile(Request("a.h5"));
  Received held;
  ASSERT_TRUE(Next(*stream, held));
  Write(*writer, 0, "1");
  Tick(*writer, 2, 10 * kPage);
  Write(*writer, 100, "2");
  const int64_t third = Tick(*writer, 3, 10 * kPage);
  Until(*stream, third);  // That is the one that goes out from here on.
  auto again = client_->FollowFile(After(held));
  const Received merged = Until(*again, third);
  EXPECT_FALSE(merged.first.whole());
  EXPECT_THAT(merged.changed(), ElementsAre(Extent{0, 1}, Extent{100, 1}));

  v1::FollowFileRequest other = After(held);
  other.set_file_id(std::string(16, 'x'));
  auto another = client_->FollowFile(other);
  Received whole;
  ASSERT_TRUE(Next(*another, whole));
  EXPECT_TRUE(whole.first.whole()) << "cut of another file";
}

TEST_F(FollowFileTest, ATickPassesBetweenTwoCuts) {
  config_.tick_len = absl::Milliseconds(200);
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(kPage, 'a'));
  Tick(*writer, 1, kPage);
  const absl::Time start = absl::Now();  // Not after the first cut of the stream went out.
  auto stream = client_->FollowFile(Request("a.h5"));
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  int64_t newest = 0;
  uint64_t seq = 1;
  while (absl::Now() < start + absl::Milliseconds(500) || seq <= 10) {
    Write(*writer, seq % kPage, "x");
    newest = Tick(*writer, ++seq, kPage);
  }
  int cuts = 0;
  while (received.first.snapshot().cut() < newest && Next(*stream, received)) ++cuts;
  const auto ticks = (absl::Now() - start) / absl::Milliseconds(200);
  EXPECT_LE(cuts, ticks + 1);
}

TEST_F(FollowFileTest, OnesOwnTickMayBeLonger) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(kPage, 'a'));
  Tick(*writer, 1, kPage);
  v1::FollowFileRequest request = Request("a.h5");
  request.mutable_tick()->set_nanos(600'000'000);
  const absl::Time start = absl::Now();  // Not after the tick begins.
  auto stream = client_->FollowFile(request);
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  Write(*writer, 0, "b");
  Until(*stream, Tick(*writer, 2, kPage));
  EXPECT_GT(absl::Now() - start, absl::Milliseconds(400));
}

TEST_F(FollowFileTest, EndsWithTheWriterIfAsked) {
  Start();
  MirrorWhole("a.h5", "at rest");
  v1::FollowFileRequest request = Request("a.h5");
  request.set_until_no_writer(true);
  auto stream = client_->FollowFile(request);
  Received received;
  EXPECT_TRUE(Next(*stream, received));
  EXPECT_FALSE(received.first.has_writer());
  EXPECT_FALSE(Next(*stream, received));
  EXPECT_TRUE(stream->Finish().ok());

  auto writer = Open("b.h5", v1::INTENT_CREATE);
  request.set_name("b.h5");
  Write(*writer, 0, "one");
  Tick(*writer, 1, 3);
  stream = client_->FollowFile(request);
  EXPECT_TRUE(Next(*stream, received));
  Write(*writer, 0, "two");
  const int64_t last = Commit(*writer, 2, 3);
  EXPECT_TRUE(writer->Finish().ok());
  int64_t seen = 0;
  while (Next(*stream, received)) seen = received.first.snapshot().cut();
  EXPECT_EQ(seen, last);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(FollowFileTest, SaysWhatIsWrong) {
  Start();
  const auto status = [this](const v1::FollowFileRequest& request) {
    auto stream = client_->FollowFile(request);
    v1::FollowFileResponse message;
    EXPECT_FALSE(stream->Read(message));
    return stream->Finish();
  };
  EXPECT_EQ(status(Request("none.h5")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status(Request("../a.h5")).code(), absl::StatusCode::kInvalidArgument);
  v1::FollowFileRequest request = Request("a.h5");
  request.set_reader_id("short");
  EXPECT_EQ(status(request).code(), absl::StatusCode::kInvalidArgument);
  request = Request("a.h5");
  request.set_after_cut(7);
  EXPECT_EQ(status(request).code(), absl::StatusCode::kInvalidArgument) << "of which file?";
  request.set_after_cut(-7);
  EXPECT_EQ(status(request).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FollowFileTest, AStopAndACancelEndIt) {
  Start();
  MirrorWhole("a.h5", "at rest");
  v1::FollowFileRequest sleepy = Request("a.h5");
  sleepy.mutable_tick()->set_seconds(3000);
  auto waiting = client_->FollowFile(Request("a.h5"));
  auto sleeping = client_->FollowFile(sleepy);
  auto cancelled = client_->FollowFile(Request("a.h5"));
  Received received;
  EXPECT_TRUE(Next(*waiting, received));
  EXPECT_TRUE(Next(*sleeping, received));
  EXPECT_TRUE(Next(*cancelled, received));
  cancelled->Cancel();
  EXPECT_FALSE(Next(*cancelled, received));
  EXPECT_EQ(cancelled->Finish().code(), absl::StatusCode::kCancelled);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(server_->Stop(absl::Seconds(60)).ok());
  EXPECT_FALSE(Next(*waiting, received));
  EXPECT_EQ(waiting->Finish().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Next(*sleeping, received));
  EXPECT_FALSE(sleeping->Finish().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(50)) << "the stop waited for its followers";
}

// The server holds the stalled follower's cut no longer than other cuts.
TEST_F(FollowFileTest, WhoStopsReadingGoesOnWithANewerCut) {
  config_.snapshot_keep = absl::Milliseconds(200);
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  std::string bytes(1 << 20, 'a');
  Write(*writer, 0, bytes);
  v1::MirrorFileRequest barrier = BarrierRequest(1, v1::BARRIER_KIND_TICK, bytes.size());
  barrier.mutable_barrier()->add_metadata_page(0);
  barrier.mutable_barrier()->add_metadata_page_count(bytes.size() / kPage);
  ASSERT_TRUE(writer->Send(barrier).ok());
  ASSERT_TRUE(writer->Receive().ok());
  SmallWindow stream(server_->addresses().front(), Request("a.h5", kAllMetadata));
  v1::FollowFileResponse first;
  ASSERT_TRUE(stream.Read(first));
  ASSERT_TRUE(first.has_snapshot() && !first.last());
  bytes[kPage] = 'b';
  Write(*writer, kPage, "b");
  const int64_t newest = Tick(*writer, 2, bytes.size());
  std::string probe(1, '\0');
  while (ReadCut(first.snapshot().cut(), {0, 1}, &probe).ok()) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  const Received received = Until(stream, newest);
  EXPECT_TRUE(received.first.whole()) << "the follower did not get all of the first cut";
  std::string all;
  for (const auto& [offset, data] : received.data) all += data;
  EXPECT_TRUE(all == bytes);
}

// A follower of the old file may not know yet that it is gone when others follow the new one.
TEST_F(FollowFileTest, AFileThatIsMadeAnewIsWaitedForUntilItHasACut) {
  config_.tick_len = absl::Seconds(5);  // Until then the old one's follower is not told.
  Start();
  MirrorWhole("a.h5", "old");
  const auto of_old = client_->FollowFile(Request("a.h5"));
  Received received;
  ASSERT_TRUE(Next(*of_old, received));
  v1::RemoveFileRequest removal;
  removal.set_name("a.h5");
  ASSERT_TRUE(client_->RemoveFile(removal).ok());
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  const auto of_new = client_->FollowFile(Request("a.h5"));
  // No cut comes. A call that asked again and again would take a core.
  absl::SleepFor(absl::Milliseconds(200));
  const std::clock_t before = std::clock();
  absl::SleepFor(absl::Seconds(1));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 2);
  Write(*writer, 0, "new");
  const int64_t cut = Tick(*writer, 1, 3);
  EXPECT_TRUE(Until(*of_new, cut).first.whole());
}

TEST_F(FollowFileTest, AsManyFollowAtOnceAsTheMemoryHasRoomFor) {
  constexpr size_t kCalls = 256;
  config_.memory_max_bytes = kCalls * (256 << 10);
  config_.caller_share_percent = 100;
  Start();
  MirrorWhole("a.h5", "at rest");
  std::vector<std::unique_ptr<rpc::FollowStream>> streams;
  Received received;
  for (size_t i = 0; i < kCalls; ++i) {
    streams.push_back(client_->FollowFile(Request("a.h5")));
    ASSERT_TRUE(Next(*streams.back(), received)) << streams.back()->Finish();
  }
  const auto one_more = client_->FollowFile(Request("a.h5"));
  ASSERT_FALSE(Next(*one_more, received)) << "it is not refused";
  EXPECT_EQ(one_more->Finish().code(), absl::StatusCode::kResourceExhausted);
  streams.back()->Cancel();
  bool follows = false;
  for (int i = 0; i < 600 && !follows; ++i) {  // Until the server has heard that it has gone.
    follows = Next(*client_->FollowFile(Request("a.h5")), received);
    if (!follows) absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_TRUE(follows);
}

// Writers and followers at random: what a follower puts together is what was written by that cut.
TEST_F(FollowFileTest, RandomCutsArriveWhole) {
  Start();
  const char* given = std::getenv("H5M_SEED");
  const unsigned seed = given != nullptr ? std::stoul(given) : std::random_device{}();
  SCOPED_TRACE(StrCat("H5M_SEED=", seed));
  std::minstd_rand random(seed);
  constexpr uint64_t kSizeMax = 40 * kPage;
  std::map<int64_t, std::string> written;  // by cut
  std::string bytes, held_bytes;
  Received held;
  int64_t checked = 0, merged = 0;
  for (int life = 0; life < 6; ++life) {
    auto writer = Open("a.h5", v1::INTENT_CREATE);
    bytes.clear();
    auto stream = client_->FollowFile(held.first.file_id().empty() ? Request("a.h5", kAllMetadata)
                                                                   : After(held, kAllMetadata));
    for (uint64_t seq = 1; seq <= 60; ++seq) {
      for (uint64_t writes = random() % 6; writes > 0; --writes) {
        const uint64_t offset = random() % kSizeMax;
        const std::string data(1 + random() % (2 * kPage), static_cast<char>('a' + random() % 26));
        bytes.resize(std::max<size_t>(bytes.size(), offset + data.size()), '\0');
        bytes.replace(offset, data.size(), data);
        Write(*writer, offset, data);
      }
      if (random() % 4 == 0) bytes.resize(random() % kSizeMax, '\0');
      const int64_t cut = Tick(*writer, seq, bytes.size(), {random() % 40, 41 + random() % 5});
      written[cut] = bytes;
      if (random() % 3 != 0) continue;
      do {
        if (!Next(*stream, held)) {
          // The file was made again, or its store opened again: as a follower does.
          stream = client_->FollowFile(After(held, kAllMetadata));
          ASSERT_TRUE(Next(*stream, held));
        }
        const int64_t now = held.first.snapshot().cut();
        if (!held.first.whole()) ++merged;
        TakeInto(held, &held_bytes);
        ASSERT_TRUE(written.contains(now)) << now;
        ASSERT_TRUE(held_bytes == written[now]) << "cut " << now << " of " << cut;
        ++checked;
      } while (held.first.snapshot().cut() < cut);
    }
    written[Commit(*writer, 61, bytes.size())] = bytes;
    EXPECT_TRUE(writer->Finish().ok());
    held = Received();
  }
  EXPECT_GT(checked, 50);
  EXPECT_GT(merged, 40);
}

}  // namespace
}  // namespace h5mirror::server
