#include "rpc/version_source.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kBlock = BlockCache::kBlockBytes;

struct Range {
  uint64_t offset;
  uint64_t length;
  bool operator==(const Range&) const = default;
};

// A version whose every third 10,000 bytes are a hole, sent in pieces of odd sizes.
class VersionSourceTest : public testing::Test {
 protected:
  static constexpr uint64_t kSize = 40 * kBlock + 1234;

  VersionSourceTest() : bytes_(kSize, '\0') {
    std::minstd_rand random(1);
    for (uint64_t i = 0; i < kSize; ++i) {
      if (!InHole(i)) bytes_[i] = static_cast<char>(random());
    }
  }

  static bool InHole(uint64_t offset) { return offset / 10'000 % 3 == 2; }

  absl::Status ReadRange(uint64_t offset, uint64_t length, RangeSink sink) {
    ranges_.push_back({offset, length});
    if (!failure_.ok()) return failure_;
    return Send(offset, length, sink);
  }

  absl::Status Send(uint64_t offset, uint64_t length, RangeSink sink) const {
    const uint64_t end = offset + length;
    while (offset < end) {
      const uint64_t piece = std::min({end - offset, 10'000 - offset % 10'000, uint64_t{7001}});
      if (!InHole(offset)) {
        const absl::Status taken = sink(offset + shift_, {bytes_.data() + offset, piece});
        if (!taken.ok()) return taken;
      }
      offset += piece;
    }
    return absl::OkStatus();
  }

  // Every other block from block 10 on is metadata.
  absl::Status ReadAhead(MetadataAhead& ahead) {
    if (ahead.length_bytes > 0) aheads_.push_back({ahead.from, ahead.length_bytes});
    if (!sends_ahead_ || ahead.length_bytes == 0) return absl::OkStatus();
    uint64_t at = std::max(ahead.from, 10 * kBlock);
    for (uint64_t sent = 0; sent < ahead.length_bytes && at < kSize; at += 2 * kBlock) {
      const uint64_t length = std::min(kBlock, kSize - at);
      H5M_RETURN_IF_ERROR(ahead.sink(at, {bytes_.data() + at, length - ahead_missing_}));
      sent += length;
    }
    ahead.next = at < kSize ? at : 0;
    return absl::OkStatus();
  }

  // One that keeps a call open for what is read in order.
  VersionSource StreamedSource() {
    return VersionSource(
        "x@1", kSize,
        [this](uint64_t offset, uint64_t length, RangeSink sink, MetadataAhead*) {
          return ReadRange(offset, length, sink);
        },
        std::make_shared<BlockCache>(64 << 20),
        [this](uint64_t offset, uint64_t length, RangeSink sink, CallCanceller&) -> absl::Status {
          streams_.push_back({offset, length});
          const uint64_t part = std::min(length, stream_bytes_);
          H5M_RETURN_IF_ERROR(Send(offset, part, sink));
          return part == length ? absl::OkStatus() : absl::UnavailableError("broken off");
        });
  }

  VersionSource Source(uint64_t cache_bytes = 64 << 20) {
    return VersionSource(
        "x@1", kSize,
        [this](uint64_t offset, uint64_t length, RangeSink sink, MetadataAhead* ahead) {
          H5M_RETURN_IF_ERROR(ReadRange(offset, length, sink));
          return ahead == nullptr ? absl::OkStatus() : ReadAhead(*ahead);
        },
        std::make_shared<BlockCache>(cache_bytes));
  }

  // Reads and compares.
  void Expect(VersionSource& source, uint64_t offset, uint64_t length, ReadKind kind) {
    std::string out(length, 'z');
    ASSERT_TRUE(source.Read(offset, absl::MakeSpan(out), kind).ok());
    std::string wanted = offset < kSize ? bytes_.substr(offset, length) : "";
    wanted.resize(length, '\0');
    ASSERT_EQ(out, wanted) << offset << " +" << length;
  }

  std::string bytes_;
  std::vector<Range> ranges_;
  std::vector<Range> aheads_;
  std::vector<Range> streams_;  // looked at when the source is gone
  uint64_t stream_bytes_ = UINT64_MAX;
  bool sends_ahead_ = false;
  uint64_t ahead_missing_ = 0;
  absl::Status failure_;
  uint64_t shift_ = 0;
};

TEST_F(VersionSourceTest, SmallReadsOfOneBlockAskTheServerOnce) {
  VersionSource source = Source();
  for (uint64_t at = 0; at + 96 < kBlock; at += 512) Expect(source, at, 96, ReadKind::kMetadata);
  EXPECT_THAT(ranges_, ElementsAre(Range{0, kBlock}));
}

TEST_F(VersionSourceTest, SequentialReadsFetchTwiceAsMuchEachTime) {
  VersionSource source = Source();
  for (uint64_t at = 0; at < 15 * kBlock; at += 4096) Expect(source, at, 4096, ReadKind::kRaw);
  EXPECT_THAT(ranges_, ElementsAre(Range{0, kBlock}, Range{kBlock, 2 * kBlock},
                                   Range{3 * kBlock, 4 * kBlock}, Range{7 * kBlock, 8 * kBlock}));
}

TEST_F(VersionSourceTest, ReadsHereAndThereFetchOneBlock) {
  VersionSource source = Source();
  for (uint64_t block : {30, 3, 17, 9}) Expect(source, block * kBlock + 5, 10, ReadKind::kRaw);
  for (const Range& range : ranges_) EXPECT_EQ(range.length, kBlock);
}

TEST_F(VersionSourceTest, LargeReadsHereAndThereFetchWhatIsAskedFor) {
  VersionSource source = Source();
  Expect(source, 30 * kBlock + 77, kBlock, ReadKind::kRaw);
  Expect(source, 3 * kBlock - 5, 2 * kBlock, ReadKind::kRaw);
  EXPECT_THAT(ranges_,
              ElementsAre(Range{30 * kBlock + 77, kBlock}, Range{3 * kBlock - 5, 2 * kBlock}));
}

// The blocks of a version in random order.
std::vector<uint64_t> Shuffled(uint64_t count) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(3));
  return order;
}

// Pieces of a block, which lie across two; twice, as an epoch follows another one.
TEST_F(VersionSourceTest, AllOfAVersionThatIsReadHereAndThereTakesFewCalls) {
  const uint64_t count = kSize / kBlock - 1;
  for (const uint64_t cache_blocks : {1000, 20}) {
    VersionSource source = Source(cache_blocks * kBlock);
    for (const int pass : {1, 2}) {
      ranges_.clear();
      for (const uint64_t piece : Shuffled(count)) {
        Expect(source, piece * kBlock + 777, kBlock, ReadKind::kRaw);
      }
      uint64_t bytes = 0;
      for (const Range& range : ranges_) bytes += range.length;
      SCOPED_TRACE(std::to_string(cache_blocks) + " blocks, pass " + std::to_string(pass));
      if (cache_blocks > count) {
        EXPECT_LE(ranges_.size(), pass == 1 ? count / 3 : 1);
        EXPECT_LT(bytes, kSize * 5 / 4);
      } else {
        EXPECT_LT(ranges_.size(), count);
        EXPECT_LT(bytes, kSize * 3 / 2);
      }
    }
  }
}

// A program reads some blocks of all again and again: they take the room of those that came ahead.
TEST_F(VersionSourceTest, BlocksThatAreReadAgainStayInASmallCache) {
  VersionSource source = Source(24 * kBlock);
  const auto read_all = [&] {
    for (uint64_t i = 0; i < 20; ++i) {
      const uint64_t block = i * 2;  // A neighbour is never wanted.
      Expect(source, block * kBlock + 100, kBlock / 4, ReadKind::kRaw);
      Expect(source, block * kBlock + kBlock / 2, kBlock / 2, ReadKind::kRaw);
    }
  };
  for (int i = 0; i < 5; ++i) read_all();
  ranges_.clear();
  read_all();
  EXPECT_LE(ranges_.size(), 2);
}

TEST_F(VersionSourceTest, AScanAfterReadsHereAndThereFetchesTwiceAsMuchEachTime) {
  VersionSource source = Source();
  for (const uint64_t block : {39, 3, 37, 5, 35, 7}) {
    Expect(source, block * kBlock, kBlock, ReadKind::kRaw);
  }
  ranges_.clear();
  for (uint64_t at = 8 * kBlock; at < 35 * kBlock; at += 4096) {
    Expect(source, at, 4096, ReadKind::kRaw);
  }
  EXPECT_LE(ranges_.size(), 6);
}

TEST_F(VersionSourceTest, AScanKeepsOneCallOpen) {
  for (const uint64_t piece : {uint64_t{4096}, kBlock + 1000, 17 * kBlock}) {
    {
      VersionSource source = StreamedSource();
      for (uint64_t at = 777; at < kSize; at += piece) Expect(source, at, piece, ReadKind::kRaw);
    }
    EXPECT_EQ(streams_.size(), 1) << piece;
    EXPECT_LE(ranges_.size(), 5) << piece;
    streams_.clear();
    ranges_.clear();
  }
}

TEST_F(VersionSourceTest, AnOpenCallThatBreaksIsNoError) {
  stream_bytes_ = 3 * kBlock + 100;
  {
    VersionSource source = StreamedSource();
    for (uint64_t at = 0; at < kSize; at += 4096) Expect(source, at, 4096, ReadKind::kRaw);
  }
  EXPECT_GT(streams_.size(), 1);
}

TEST_F(VersionSourceTest, CallsThatBringNothingAreGivenUp) {
  stream_bytes_ = 0;
  {
    VersionSource source = StreamedSource();
    for (int scan = 0; scan < 10; ++scan) {
      for (uint64_t at = 0; at < kSize; at += 17 * kBlock) {
        Expect(source, at, 17 * kBlock, ReadKind::kRaw);
      }
    }
  }
  EXPECT_EQ(streams_.size(), 3);
}

TEST_F(VersionSourceTest, AnyReadsInAnyOrderBesideAnOpenCallAreRight) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::minstd_rand random(seed);
  VersionSource source = StreamedSource();
  uint64_t next = 0;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t length = random() % (random() % 4 == 0 ? 20 * kBlock : 5000);
    const uint64_t offset = random() % 10 == 0 ? random() % kSize : next;
    Expect(source, offset, length, random() % 8 == 0 ? ReadKind::kMetadata : ReadKind::kRaw);
    if (HasFatalFailure()) return;
    next = (offset + length) % kSize;
  }
}

TEST_F(VersionSourceTest, MetadataInBetweenDoesNotBreakAScan) {
  VersionSource source = Source();
  Expect(source, 0, 10, ReadKind::kRaw);
  Expect(source, 30 * kBlock, 10, ReadKind::kMetadata);
  Expect(source, kBlock, 10, ReadKind::kRaw);
  EXPECT_EQ(ranges_.back(), (Range{kBlock, 2 * kBlock}));
}

TEST_F(VersionSourceTest, ALargeRawReadIsOneRangeAndPassesByTheCache) {
  VersionSource source = Source();
  Expect(source, 100, 20 * kBlock, ReadKind::kRaw);
  EXPECT_THAT(ranges_, ElementsAre(Range{100, 20 * kBlock}));
  Expect(source, 5 * kBlock, 10, ReadKind::kRaw);
  EXPECT_EQ(ranges_.size(), 2u);
}

TEST_F(VersionSourceTest, BeyondTheEndAreZeros) {
  VersionSource source = Source();
  Expect(source, kSize - 100, 5000, ReadKind::kRaw);
  Expect(source, kSize, 10, ReadKind::kRaw);
  Expect(source, kSize + (1 << 30), 10, ReadKind::kMetadata);
  EXPECT_EQ(ranges_.size(), 1u);
}

TEST_F(VersionSourceTest, AFailureIsReturnedAndKeepsNothing) {
  VersionSource source = Source();
  failure_ = absl::DataLossError("page 41");
  std::string out(10, '\0');
  const absl::Status failed = source.Read(0, absl::MakeSpan(out), ReadKind::kRaw);
  EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss);
  failure_ = absl::OkStatus();
  Expect(source, 0, 10, ReadKind::kRaw);
}

TEST_F(VersionSourceTest, BytesThatWereNotAskedForAreRefused) {
  VersionSource source = Source();
  shift_ = 100 * kBlock;
  std::string out(10, '\0');
  EXPECT_THAT(std::string(source.Read(0, absl::MakeSpan(out), ReadKind::kRaw).message()),
              HasSubstr("was asked for"));
}

TEST_F(VersionSourceTest, AnyReadsInAnyOrderWithASmallCacheAreRight) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::minstd_rand random(seed);
  VersionSource source = Source(4 * kBlock);
  uint64_t next = 0;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t length = random() % (random() % 10 == 0 ? 6 * kBlock : 5000);
    const uint64_t offset = random() % 3 == 0 ? random() % kSize : next;
    Expect(source, offset, length, random() % 2 == 0 ? ReadKind::kRaw : ReadKind::kMetadata);
    if (HasFatalFailure()) return;
    next = (offset + length) % kSize;
  }
}

TEST(CheckAnswerTest, DamagedBytesAndAnotherVersionAreRefused) {
  v1::Version version;
  version.set_version(3);
  version.set_cut(70);
  v1::ReadVersionResponse answer;
  answer.set_data("bytes");
  answer.set_data_crc32c(Crc32c("bytes"));
  EXPECT_TRUE(CheckAnswer(answer, version).ok());
  answer.set_data("bites");
  EXPECT_EQ(CheckAnswer(answer, version).code(), absl::StatusCode::kDataLoss);
  *answer.mutable_version() = version;
  EXPECT_TRUE(CheckAnswer(answer, version).ok());
  answer.mutable_version()->set_cut(71);
  EXPECT_EQ(CheckAnswer(answer, version).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(VersionSourceTest, MetadataComesInBulk) {
  sends_ahead_ = true;
  VersionSource source = Source();
  for (uint64_t block = 10; block <= 40; block += 2) {
    Expect(source, block * kBlock + 5, 100, ReadKind::kMetadata);
  }
  // The first one was fetched, the others of the first 256 KiB came with it, and the rest with the
  // next ones, twice as much each time.
  EXPECT_THAT(ranges_, ElementsAre(Range{10 * kBlock, kBlock}, Range{18 * kBlock, kBlock},
                                   Range{34 * kBlock, kBlock}));
  EXPECT_THAT(aheads_, ElementsAre(Range{0, 256 << 10}, Range{18 * kBlock, 512 << 10},
                                   Range{34 * kBlock, 1 << 20}));
  Expect(source, 11 * kBlock, 100, ReadKind::kMetadata);
  EXPECT_EQ(aheads_.size(), 3) << "that was all";
}

TEST_F(VersionSourceTest, PagesOfMetadataThatCameAreNotFetched) {
  constexpr uint64_t kPage = 4096;
  VersionSource source(
      "x@1", kSize,
      [this](uint64_t offset, uint64_t length, RangeSink sink, MetadataAhead* ahead) {
        H5M_RETURN_IF_ERROR(ReadRange(offset, length, sink));
        if (ahead == nullptr || ahead->length_bytes == 0) return absl::OkStatus();
        EXPECT_TRUE(ahead->pages) << "the cache has no room for all";
        for (const auto& [at, bytes] :
             {Range{10 * kBlock + 3 * kPage, 2 * kPage},
              Range{12 * kBlock - kPage, kBlock + 2 * kPage}, Range{40 * kBlock, 1234}}) {
          H5M_RETURN_IF_ERROR(ahead->sink(at, {bytes_.data() + at, bytes}));
        }
        return absl::OkStatus();
      },
      std::make_shared<BlockCache>(40 * kBlock));
  Expect(source, 0, 100, ReadKind::kMetadata);
  Expect(source, 10 * kBlock + 4 * kPage - 50, 100, ReadKind::kMetadata);
  Expect(source, 12 * kBlock - kPage, kBlock + 2 * kPage, ReadKind::kMetadata);
  Expect(source, 40 * kBlock + 1000, 300, ReadKind::kRaw);
  EXPECT_THAT(ranges_, ElementsAre(Range{0, kBlock}));
  // One of which not all came.
  Expect(source, 10 * kBlock + 5 * kPage - 50, 100, ReadKind::kMetadata);
  EXPECT_THAT(ranges_, ElementsAre(Range{0, kBlock}, Range{10 * kBlock, kBlock}));
}

TEST_F(VersionSourceTest, RawDataBringsNoMetadata) {
  sends_ahead_ = true;
  VersionSource source = Source();
  Expect(source, 0, 100, ReadKind::kRaw);
  EXPECT_THAT(aheads_, ElementsAre());
}

TEST_F(VersionSourceTest, MetadataInBulkLeavesRoomInTheCache) {
  sends_ahead_ = true;
  VersionSource source = Source(8 * kBlock);
  for (uint64_t block = 1; block < 10; ++block) {
    Expect(source, block * kBlock, 1, ReadKind::kMetadata);
  }
  uint64_t asked = 0;
  for (const Range& ahead : aheads_) asked += ahead.length;
  EXPECT_EQ(asked, 6 * kBlock);
}

TEST_F(VersionSourceTest, BlocksThatAreNoneAreRefused) {
  sends_ahead_ = true;
  ahead_missing_ = 1;
  VersionSource source = Source();
  std::string out(10, 0);
  const absl::Status status = source.Read(0, absl::MakeSpan(out), ReadKind::kMetadata);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("whole pages"));
}

TEST_F(VersionSourceTest, WhatIsKnownIsNotFetched) {
  sends_ahead_ = true;
  VersionSource source = Source();
  source.UseKnown(
      [this](uint64_t offset, absl::Span<char> out) -> uint64_t {
        return offset < kBlock ? 0 : bytes_.copy(out.data(), out.size(), offset);
      },
      /*has_metadata=*/true);
  Expect(source, 3 * kBlock + 5, 100'000, ReadKind::kMetadata);
  Expect(source, kSize - 10, 20, ReadKind::kMetadata);
  EXPECT_THAT(ranges_, ElementsAre());
  Expect(source, 5, 10, ReadKind::kMetadata);
  EXPECT_THAT(ranges_, ElementsAre(Range{0, kBlock}));
  EXPECT_THAT(aheads_, ElementsAre()) << "the rest of it is known";
}

TEST_F(VersionSourceTest, OfAReadThatIsKnownInPartTheRestIsFetched) {
  VersionSource source = Source();
  source.UseKnown(
      [this](uint64_t offset, absl::Span<char> out) -> uint64_t {
        return offset >= kBlock
                   ? 0
                   : bytes_.copy(out.data(), std::min(out.size(), kBlock - offset), offset);
      },
      /*has_metadata=*/true);
  Expect(source, kBlock - 100, 512, ReadKind::kMetadata);
  EXPECT_THAT(ranges_, ElementsAre(Range{kBlock, kBlock}));
}

TEST_F(VersionSourceTest, MetadataIsTakenFromSharedBlocksToo) {
  VersionSource source = Source();
  std::vector<ReadKind> kinds;
  source.UseShared([&](uint64_t offset, absl::Span<char> out, ReadKind kind) -> uint64_t {
    kinds.push_back(kind);
    return offset >= 2 * kBlock
               ? 0
               : bytes_.copy(out.data(), std::min(out.size(), 2 * kBlock - offset), offset);
  });
  source.UseKnown(
      [this](uint64_t offset, absl::Span<char> out) -> uint64_t {
        return offset >= kBlock
                   ? 0
                   : bytes_.copy(out.data(), std::min(out.size(), kBlock - offset), offset);
      },
      /*has_metadata=*/true);
  Expect(source, kBlock - 100, 512, ReadKind::kMetadata);
  Expect(source, kBlock - 100, 512, ReadKind::kRaw);
  EXPECT_THAT(ranges_, ElementsAre());
  EXPECT_THAT(kinds, ElementsAre(ReadKind::kMetadata, ReadKind::kRaw));
}

TEST(CheckSnapshotTest, ACutIsOfOneFileAndOneLifeOfIt) {
  v1::Snapshot opened;
  opened.set_cut(7);
  opened.set_size_bytes(100);
  opened.set_generation(2);
  opened.set_file_id(std::string(16, 'a'));
  const auto check = [&](const v1::Snapshot& now) { return CheckSnapshot(now, opened); };
  EXPECT_TRUE(check(opened).ok());
  v1::Snapshot now = opened;
  now.clear_file_id();
  EXPECT_TRUE(check(now).ok()) << "of a server that does not tell";
  now.set_file_id(std::string(16, 'b'));
  EXPECT_EQ(check(now).code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(check(now).message(), HasSubstr("snapshot expired, reopen"));
  now = opened;
  now.set_generation(3);
  EXPECT_FALSE(check(now).ok());
  now = opened;
  now.set_size_bytes(101);
  EXPECT_FALSE(check(now).ok());
  now = opened;
  now.set_cut(8);
  EXPECT_FALSE(check(now).ok());
}

TEST(CheckAnswerTest, AVersionOfAnotherTimeIsAnotherOne) {
  v1::Version version;
  version.set_version(1);
  version.mutable_server_time()->set_seconds(1'000);
  v1::ReadVersionResponse answer;
  *answer.mutable_version() = version;
  EXPECT_TRUE(CheckAnswer(answer, version).ok());
  answer.mutable_version()->mutable_server_time()->set_nanos(1);
  EXPECT_EQ(CheckAnswer(answer, version).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace h5mirror::rpc
