// FollowFile over a real server: what a follower puts together from it is the file, cut by cut.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "server/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAllMetadata = uint64_t{1} << 30;

// One cut as it came.
struct Received {
  v1::FollowFileResponse first;
  std::map<uint64_t, std::string> data;  // by offset

  std::vector<Extent> changed() const {
    std::vector<Extent> extents;
    for (int i = 0; i < first.changed_offset_size(); ++i) {
      extents.push_back({first.changed_offset(i), first.changed_length(i)});
    }
    return extents;
  }
};

class FollowFileTest : public MirrorServerTest {
 protected:
  static constexpr char kReader[] = "0123456789abcdef";

  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.tick_len = absl::Milliseconds(1);
  }

  static v1::FollowFileRequest Request(const std::string& name, uint64_t metadata_bytes = 0) {
    v1::FollowFileRequest request;
    request.set_name(name);
    request.set_reader_id(kReader);
    request.set_metadata_bytes_max(metadata_bytes);
    return request;
  }
  static v1::FollowFileRequest After(const Received& held, uint64_t metadata_bytes = 0) {
    v1::FollowFileRequest request = Request("a.h5", metadata_bytes);
    request.set_after_cut(held.first.snapshot().cut());
    request.set_file_id(held.first.file_id());
    return request;
  }

  // The next cut, whole; false: the stream has ended.
  static bool Next(rpc::FollowStream& stream, Received& received) {
    received = Received();
    v1::FollowFileResponse message;
    while (stream.Read(message)) {
      EXPECT_EQ(message.data_crc32c(), Crc32c(message.data()));
      if (message.has_snapshot()) {
        received = Received();
        received.first = message;
      }
      size_t at = 0;
      for (int i = 0; i < message.data_offset_size(); ++i) {
        received.data[message.data_offset(i)] = message.data().substr(at, message.data_length(i));
        at += message.data_length(i);
      }
      EXPECT_EQ(at, message.data().size());
      if (message.last()) return true;
    }
    return false;
  }
  // Cuts until the one of `cut`.
  static Received Until(rpc::FollowStream& stream, int64_t cut) {
    Received received;
    while (Next(stream, received) && received.first.snapshot().cut() < cut) {
    }
    EXPECT_EQ(received.first.snapshot().cut(), cut) << stream.Finish();
    return received;
  }

  // A visible cut, with hints which pages are metadata.
  static int64_t Tick(rpc::MirrorStream& stream, uint64_t seq, uint64_t size_bytes,
                      const std::vector<uint64_t>& metadata_pages = {}) {
    v1::MirrorFileRequest request = BarrierRequest(seq, v1::BARRIER_KIND_TICK, size_bytes);
    for (const uint64_t page : metadata_pages) {
      request.mutable_barrier()->add_metadata_page(page);
      request.mutable_barrier()->add_metadata_page_count(1);
    }
    EXPECT_TRUE(stream.Send(request).ok());
    for (;;) {
      const auto answer = stream.Receive();
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) return 0;
      if (answer->has_cut_visible() && answer->cut_visible().seq() == seq) {
        return answer->cut_visible().cut();
      }
    }
  }

  static int64_t Commit(rpc::MirrorStream& stream, uint64_t seq, uint64_t size_bytes) {
    v1::CutDurable durable = Cut(stream, seq, v1::BARRIER_KIND_COMMIT, size_bytes);
    while (durable.seq() < seq) {
      const auto answer = stream.Receive();
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) break;
      if (answer->has_cut_durable()) durable = answer->cut_durable();
    }
    return durable.cut();
  }

  absl::Status ReadCut(int64_t cut, Extent range, std::string* bytes) {
    v1::ReadSnapshotRequest request;
    request.set_name("a.h5");
    request.set_cut(cut);
    request.set_reader_id(kReader);
    request.set_offset(range.offset);
    request.set_length_bytes(range.length);
    std::fill(bytes->begin() + static_cast<int64_t>(range.offset),
              bytes->begin() + static_cast<int64_t>(range.end()), '\0');
    return client_->ReadSnapshot(request, [&](const v1::ReadSnapshotResponse& answer) {
      bytes->replace(answer.offset(), answer.data().size(), answer.data());
      return absl::OkStatus();
    });
  }
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
  auto stream = client_->FollowFile(Request("a.h5"));
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  const absl::Time start = absl::Now();
  int64_t newest = 0;
  uint64_t seq = 1;
  while (absl::Now() < start + absl::Milliseconds(500)) {
    Write(*writer, seq % kPage, "x");
    newest = Tick(*writer, ++seq, kPage);
  }
  int cuts = 0;
  while (received.first.snapshot().cut() < newest && Next(*stream, received)) ++cuts;
  const auto ticks = (absl::Now() - start) / absl::Milliseconds(200);
  EXPECT_GT(seq, 10);
  EXPECT_LE(cuts, ticks + 1);
}

TEST_F(FollowFileTest, OnesOwnTickMayBeLonger) {
  Start();
  auto writer = Open("a.h5", v1::INTENT_CREATE);
  Write(*writer, 0, std::string(kPage, 'a'));
  Tick(*writer, 1, kPage);
  v1::FollowFileRequest request = Request("a.h5");
  request.mutable_tick()->set_nanos(600'000'000);
  auto stream = client_->FollowFile(request);
  Received received;
  ASSERT_TRUE(Next(*stream, received));
  const absl::Time start = absl::Now();
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
  server_.reset();
  EXPECT_FALSE(Next(*waiting, received));
  EXPECT_EQ(waiting->Finish().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Next(*sleeping, received));
  EXPECT_FALSE(sleeping->Finish().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(4)) << "the stop waited for its followers";
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
        if (held.first.whole()) {
          held_bytes.assign(held.first.snapshot().size_bytes(), '?');
        } else {
          ++merged;
          held_bytes.resize(held.first.snapshot().size_bytes(), '\0');
        }
        std::vector<Extent> lost = held.changed();
        if (held.first.whole()) lost = {{0, held_bytes.size()}};
        for (Extent extent : lost) {
          extent.length = std::min(extent.end(), held_bytes.size()) -
                          std::min<uint64_t>(extent.offset, held_bytes.size());
          if (extent.length == 0) continue;
          const absl::Status read = ReadCut(now, extent, &held_bytes);
          ASSERT_TRUE(read.ok()) << read;
        }
        for (const auto& [offset, data] : held.data) {
          ASSERT_LE(offset + data.size(), held_bytes.size());
          EXPECT_TRUE(held_bytes.compare(offset, data.size(), data) == 0)
              << "bytes sent at " << offset << " of cut " << now;
        }
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
