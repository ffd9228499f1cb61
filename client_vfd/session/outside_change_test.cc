#include "client_vfd/session/outside_change.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/block_digest.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class MemoryFile final : public FileReader {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::Status Read(Extent extent, char* out) const override {
    std::memset(out, 0, extent.length);
    if (extent.offset >= bytes_.size()) return absl::OkStatus();
    const std::string part = bytes_.substr(extent.offset, extent.length);
    std::memcpy(out, part.data(), part.size());
    return absl::OkStatus();
  }
  absl::StatusOr<FileStat> Stat() const override {
    FileStat stat;
    stat.size_bytes = static_cast<int64_t>(bytes_.size());
    return stat;
  }
  std::vector<Extent> DataExtents() const override { return {{0, bytes_.size()}}; }

 private:
  const std::string bytes_;
};

// A server's version 3, of cut 12.
class OutsideChangeTest : public testing::Test {
 protected:
  absl::StatusOr<OutsideChange> Find(const std::string& local, int64_t cut = 12) {
    const auto ask = [this](const v1::DigestFileRequest& request, rpc::DigestSink sink) {
      ++calls_;
      return Answer(request, sink);
    };
    return FindOutsideChange("run.h5", cut, MemoryFile(local), ask, [this] { return late_; });
  }

  absl::StatusOr<v1::Version> Answer(const v1::DigestFileRequest& request, rpc::DigestSink sink) {
    if (request.block_size_bytes() < block_bytes_min_) return absl::InvalidArgumentError("small");
    rpc::DigestBlocks blocks(request, sink);
    v1::DigestFileResponse response;
    response.mutable_version()->set_version(3);
    response.mutable_version()->set_cut(12);
    response.mutable_version()->set_size_bytes(static_cast<int64_t>(remote_.size()));
    std::vector<Extent> ranges;
    for (const auto& range : request.ranges()) {
      ranges.push_back({range.offset(), range.length_bytes()});
    }
    if (ranges.empty()) ranges.push_back({0, remote_.size()});
    for (const Extent& range : ranges) {
      for (uint64_t at = range.offset; at < range.end(); at += request.block_size_bytes()) {
        const uint64_t length = std::min<uint64_t>(request.block_size_bytes(), range.end() - at);
        const BlockDigest digest = DigestOf(std::string_view(remote_).substr(at, length));
        response.mutable_digests()->append(digest.data(), digest.size());
      }
    }
    const absl::Status taken = blocks.Take(response);
    if (!taken.ok()) return taken;
    return blocks.Finish();
  }

  std::string remote_ = std::string(3 * kMiB + 100, 'a');
  uint32_t block_bytes_min_ = 512;
  bool late_ = false;
  int calls_ = 0;
};

TEST_F(OutsideChangeTest, TimesAloneAreNoChange) {
  const auto found = Find(remote_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->is_none);
  EXPECT_EQ(calls_, 1);
}

TEST_F(OutsideChangeTest, OnlyPagesThatDifferAreSent) {
  std::string local = remote_;
  local[kMiB + 5000] = 'b';
  const auto found = Find(local);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->is_none);
  EXPECT_EQ(found->changes.extents.ToVector(), (std::vector<Extent>{{kMiB + 4096, 4096}}));
  EXPECT_FALSE(found->changes.truncate);
}

TEST_F(OutsideChangeTest, WhatWasAppendedIsSent) {
  const auto found = Find(remote_ + std::string(5000, 'c'));
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<Extent> sent = found->changes.extents.ToVector();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].offset, 3 * kMiB + 100);
  EXPECT_EQ(sent[0].length, 5000u);
}

TEST_F(OutsideChangeTest, AShorterFileIsCutOffThere) {
  const auto found = Find(remote_.substr(0, kMiB));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->changes.truncate, kMiB);
  EXPECT_TRUE(found->changes.extents.empty());
  EXPECT_FALSE(found->is_none);
}

// A superblock of version 2 at `offset`, of a file that ends at `size`.
void PutSuperblock(uint64_t offset, uint64_t size, std::string* bytes) {
  std::string superblock = std::string("\x89HDF\r\n\x1a\n", 8) + std::string("\x02\x08\x08\x00", 4);
  for (const uint64_t field : {offset, ~uint64_t{0}, size, offset + 48}) {
    superblock.append(reinterpret_cast<const char*>(&field), sizeof field);
  }
  bytes->replace(offset, superblock.size(), superblock);
}

TEST_F(OutsideChangeTest, AUserBlockIsToldFromTheRest) {
  for (const uint64_t user_block : {512, 1024, 4096, 8192}) {
    SCOPED_TRACE(user_block);
    PutSuperblock(user_block, remote_.size(), &remote_);
    std::string local = remote_;
    local[user_block - 1] = 'b';
    const auto found = Find(local);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->is_user_block);
    EXPECT_FALSE(found->is_none);
    local[user_block + 200] = 'b';
    EXPECT_FALSE(Find(local)->is_user_block);
    remote_ = std::string(remote_.size(), 'a');
  }
}

TEST_F(OutsideChangeTest, AFileWithoutAUserBlockHasNone) {
  PutSuperblock(0, remote_.size(), &remote_);
  std::string local = remote_;
  local[300] = 'b';
  EXPECT_FALSE(Find(local)->is_user_block);
  local = remote_ + "more";
  EXPECT_FALSE(Find(local)->is_user_block);
}

TEST_F(OutsideChangeTest, AnOlderServerComparesNoSmallBlocks) {
  PutSuperblock(512, remote_.size(), &remote_);
  std::string local = remote_;
  local[3] = 'b';
  block_bytes_min_ = 4096;
  const auto found = Find(local);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->is_user_block);
  EXPECT_EQ(found->changes.extents.ToVector(), (std::vector<Extent>{{0, 4096}}));
}

TEST_F(OutsideChangeTest, AfterTheTimeIsUpTheRestCountsAsChanged) {
  late_ = true;
  const auto found = Find(remote_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->changes.extents.byte_count(), remote_.size());
  EXPECT_EQ(calls_, 1);
}

TEST_F(OutsideChangeTest, AnotherCutIsNotComparedWith) {
  EXPECT_EQ(Find(remote_, 13).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(OutsideChangeTest, TheWholeFileBeginsFromNothing) {
  const OutsideChange whole = WholeFile(MemoryFile("abc"));
  EXPECT_EQ(whole.changes.truncate, 0u);
  EXPECT_EQ(whole.changes.extents.byte_count(), 3u);
}

}  // namespace
}  // namespace h5mirror::vfd
