// Followers of a.h5 at a real server.
#ifndef H5MIRROR_SERVER_TESTING_FOLLOW_FILE_FIXTURE_H_
#define H5MIRROR_SERVER_TESTING_FOLLOW_FILE_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kAllMetadata = uint64_t{1} << 30;

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

  // Makes a visible cut, with hints which pages are metadata.
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
  // Brings `bytes` from the former cut to this one, by reads of the changed ranges. Metadata that
  // came must have the same bytes.
  void TakeInto(const Received& received, std::string* bytes) {
    const int64_t cut = received.first.snapshot().cut();
    const auto size = static_cast<uint64_t>(received.first.snapshot().size_bytes());
    std::vector<Extent> lost = received.changed();
    if (received.first.whole()) {
      bytes->assign(size, '?');
      lost = {{0, size}};
    }
    bytes->resize(size, '\0');
    for (Extent extent : lost) {
      extent.length = std::min(extent.end(), size) - std::min(extent.offset, size);
      if (extent.length == 0) continue;
      const absl::Status read = ReadCut(cut, extent, bytes);
      ASSERT_TRUE(read.ok()) << read;
    }
    for (const auto& [offset, data] : received.data) {
      ASSERT_LE(offset + data.size(), size);
      EXPECT_TRUE(bytes->compare(offset, data.size(), data) == 0)
          << "bytes sent at " << offset << " of cut " << cut;
    }
  }
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_FOLLOW_FILE_FIXTURE_H_
