#include "swmr_agent/block_windows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/shared_blocks.h"
#include "swmr_agent/cut_image.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

constexpr uint64_t kSize = 40 * kBlockBytes + 5;
constexpr uid_t kUser = 7, kOther = 8;

class BlockWindowsTest : public testing::Test {
 protected:
  static std::shared_ptr<CutImage> Image(FakeRanges& ranges, std::shared_ptr<BlockPool> pool) {
    return std::make_shared<CutImage>(std::move(pool), ranges.bytes.size(), ranges.Reader());
  }
  static WindowPtr Window(CutImage& image, uid_t user = kUser) {
    auto window = image.OpenWindow(user);
    EXPECT_TRUE(window.ok()) << window.status();
    return *std::move(window);
  }
  // A reader without an agent to ask.
  static std::unique_ptr<rpc::SharedBlocks> ReaderOf(const WindowPtr& window,
                                                     const CutImage& image) {
    const std::vector<int> fds = window->descriptors();
    auto blocks = rpc::SharedBlocks::Map(OwnedFd(dup(fds[0])), OwnedFd(dup(fds[1])),
                                         image.window_cut(), image.size_bytes(), OwnedFd());
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    return *std::move(blocks);
  }
  static std::string Read(rpc::SharedBlocks& reader, uint64_t offset, uint64_t length) {
    std::string out(length, '?');
    out.resize(reader.Read(offset, absl::MakeSpan(out)));
    return out;
  }

  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>(16 << 20);
  FakeRanges ranges_{RandomBytes(kSize, 1)};
};

TEST_F(BlockWindowsTest, AllReadersOfAUserShareBlocksThatAreFetchedOnce) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  EXPECT_EQ(Window(*image), window);
  EXPECT_TRUE(image->Share(window, 0, 41).ok());
  EXPECT_TRUE(image->Share(window, 0, 41).ok());
  EXPECT_EQ(ranges_.asked.size(), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Read(*ReaderOf(window, *image), 0, kSize) == ranges_.bytes);
  }
  std::string through_socket;
  EXPECT_TRUE(image
                  ->Read(0, kSize,
                         [&](uint64_t, std::string_view data) {
                           through_socket += data;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_TRUE(through_socket == ranges_.bytes);
  EXPECT_EQ(ranges_.asked.size(), 1);
}

TEST_F(BlockWindowsTest, AnotherUserGetsOnlyWhatItAskedFor) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image), others = Window(*image, kOther);
  ASSERT_NE(window, others);
  EXPECT_TRUE(image->Share(window, 0, 4).ok());
  EXPECT_EQ(Read(*ReaderOf(others, *image), 0, 10), "");
  EXPECT_TRUE(image->Share(others, 1, 1).ok());
  EXPECT_EQ(Read(*ReaderOf(others, *image), kBlockBytes, 10),
            ranges_.bytes.substr(kBlockBytes, 10));
  EXPECT_EQ(ranges_.asked.size(), 1) << "from the first user's window";
}

TEST_F(BlockWindowsTest, TheNextCutSharesWhatDidNotChange) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  EXPECT_TRUE(image->Share(window, 0, 41).ok());
  FakeRanges now(ranges_.bytes.substr(0, 30 * kBlockBytes + 9));
  now.bytes.replace(3 * kBlockBytes - 1, 2, "##");
  const auto next = image->Next(now.bytes.size(), now.Reader(), {{{3 * kBlockBytes - 1, 2}}});
  const auto reader = ReaderOf(window, *next);
  EXPECT_EQ(Read(*reader, 0, 4 * kBlockBytes), now.bytes.substr(0, 2 * kBlockBytes));
  EXPECT_EQ(Read(*reader, 2 * kBlockBytes, 1), "");
  EXPECT_EQ(Read(*reader, 3 * kBlockBytes, 1), "");
  EXPECT_EQ(Read(*reader, 30 * kBlockBytes, 9), "") << "the end is another one";
  EXPECT_EQ(Read(*reader, 4 * kBlockBytes, 26 * kBlockBytes),
            now.bytes.substr(4 * kBlockBytes, 26 * kBlockBytes));
  EXPECT_TRUE(Read(*ReaderOf(window, *image), 0, kSize) == ranges_.bytes) << "it has its own";
  EXPECT_TRUE(next->Share(window, 0, 31).ok());
  EXPECT_TRUE(Read(*reader, 0, now.bytes.size()) == now.bytes);
  const size_t asked = ranges_.asked.size();
  EXPECT_TRUE(image->Share(window, 0, 41).ok());
  EXPECT_EQ(ranges_.asked.size(), asked) << "there is room for the blocks of both";
  EXPECT_TRUE(Read(*ReaderOf(window, *image), 0, kSize) == ranges_.bytes);
  EXPECT_TRUE(Read(*reader, 0, now.bytes.size()) == now.bytes);
}

TEST_F(BlockWindowsTest, BlocksOfAnOlderCutAreNotTakenForThoseOfTheNext) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  FakeRanges now(RandomBytes(kSize, 2));
  const auto next = image->Next(kSize, now.Reader(), {{{0, kSize}}});
  EXPECT_TRUE(image->Share(window, 5, 1).ok());  // Late.
  EXPECT_EQ(Read(*ReaderOf(window, *next), 5 * kBlockBytes, 10), "");
  const auto third = next->Next(kSize, now.Reader(), {});
  EXPECT_EQ(Read(*ReaderOf(window, *third), 5 * kBlockBytes, 10), "");
}

TEST_F(BlockWindowsTest, ItTakesNoMoreThanHalfOfTheCache) {
  const auto pool = std::make_shared<BlockPool>(2 << 20);
  FakeRanges ranges(RandomBytes(100 * kBlockBytes, 3));
  const auto image = Image(ranges, pool);
  WindowPtr window = Window(*image);
  for (uint64_t block = 0; block < 100; ++block) {
    EXPECT_TRUE(image->Share(window, block, 1).ok() || block > 8);
    EXPECT_LE(pool->count().reserved_bytes, 1 << 20);
  }
  EXPECT_GT(pool->count().reserved_bytes, 900 << 10);
  uint64_t found = 0;
  const auto reader = ReaderOf(window, *image);
  for (uint64_t block = 0; block < 100; ++block) {
    const std::string bytes = Read(*reader, block * kBlockBytes, kBlockBytes);
    found += bytes.empty() ? 0 : 1;
    EXPECT_TRUE(bytes.empty() || bytes == ranges.bytes.substr(block * kBlockBytes, kBlockBytes));
  }
  EXPECT_GE(found, 10);
  window.reset();
  EXPECT_EQ(pool->count().reserved_bytes, 0);
}

TEST_F(BlockWindowsTest, NobodyElseCanWriteOrShortenIt) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  for (const int fd : window->descriptors()) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const OwnedFd again(open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_NE(ftruncate(again.get(), 1), 0);
    EXPECT_NE(ftruncate(again.get(), 1 << 30), 0);
    EXPECT_LT(write(again.get(), "x", 1), 0);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
    EXPECT_NE(fallocate(again.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  }
}

TEST_F(BlockWindowsTest, AReaderNeverTakesABlockThatIsReplacedMeanwhile) {
  // Each set holds 8 of 50 blocks: they are replaced all the time. A block is full of its number.
  const auto pool = std::make_shared<BlockPool>(2 << 20);
  std::string bytes;
  for (int block = 0; block < 100; ++block)
    bytes += std::string(kBlockBytes, static_cast<char>(block));
  FakeRanges ranges(std::move(bytes));
  const auto image = Image(ranges, pool);
  const WindowPtr window = Window(*image);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> found = 0;
  std::thread thread([&] {
    const auto reader = ReaderOf(window, *image);
    for (uint64_t at = 0; !done; ++at) {
      const uint64_t block = at % 100;
      const std::string read = Read(*reader, block * kBlockBytes, kBlockBytes);
      EXPECT_TRUE(read.empty() || read == std::string(kBlockBytes, static_cast<char>(block)));
      found += read.empty() ? 0 : 1;
    }
  });
  for (uint64_t at = 0; at < 2000 || found == 0; ++at) {
    static_cast<void>(image->Share(window, at * 37 % 100, 1));
  }
  done = true;
  thread.join();
}

TEST_F(BlockWindowsTest, TheMoreOfAFileIsWantedTheMoreComesAtOnce) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(64 << 20));
  const WindowPtr window = Window(*image);
  EXPECT_TRUE(image->Share(window, 100, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{100 * kBlockBytes, kBlockBytes})) << "no more than that";
  EXPECT_TRUE(image->Share(window, 0, 16).ok());
  EXPECT_TRUE(image->Share(window, 40, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{32 * kBlockBytes, 16 * kBlockBytes}));
  EXPECT_TRUE(image->Share(window, 99, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{96 * kBlockBytes, 4 * kBlockBytes}))
      << "up to what is known";
  EXPECT_TRUE(image->Share(window, 127, 1).ok());
  EXPECT_EQ(Read(*ReaderOf(window, *image), 112 * kBlockBytes, 16 * kBlockBytes),
            ranges.bytes.substr(112 * kBlockBytes));
}

TEST_F(BlockWindowsTest, TheMoreReadersAFileHasTheMoreComesAtOnce) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(64 << 20));
  const WindowPtr window = Window(*image);
  std::vector<WindowPtr> readers(7, window);  // 8 with the first
  EXPECT_TRUE(image->Share(window, 100, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{98 * kBlockBytes, 7 * kBlockBytes}));
  readers.resize(3);
  for (int i = 0; i < 4; ++i) image->ShareMore(window, 0, [] { return true; });
  std::string out(98 * kBlockBytes, '?');
  const auto reader = ReaderOf(window, *image);
  EXPECT_EQ(Read(*reader, 0, 64 * kBlockBytes), ranges.bytes.substr(0, 64 * kBlockBytes));
  uint64_t bytes = 0;
  for (const Extent& asked : ranges.asked) bytes += asked.length;
  EXPECT_EQ(bytes, 128 * kBlockBytes) << "each block once";
}

TEST_F(BlockWindowsTest, AReaderOfAFileThatDoesNotFitIsAloneUntilAnotherComes) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto pool = std::make_shared<BlockPool>(8 << 20);
  const auto image = Image(ranges, pool);
  WindowPtr window = Window(*image);
  EXPECT_TRUE(image->IsAlone(window));
  EXPECT_FALSE(pool->TakeLackOfMemory()) << "it would not fit without all others either";
  {
    const WindowPtr second = window;
    EXPECT_FALSE(image->IsAlone(window));
  }
  EXPECT_TRUE(image->IsAlone(window));
  {
    const WindowPtr others = Window(*image, kOther);
    EXPECT_FALSE(image->IsAlone(window)) << "another user reads it";
  }
  EXPECT_TRUE(image->IsAlone(window));
  const auto next = image->Next(128 * kBlockBytes, ranges.Reader(), {});
  EXPECT_FALSE(image->IsAlone(window)) << "the server may drop this cut";
  EXPECT_TRUE(next->IsAlone(window));
}

TEST_F(BlockWindowsTest, AReaderOfAFileThatFitsIsAloneOnlyBesideOthersThatTakeTheMemory) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  EXPECT_FALSE(image->IsAlone(window));
  EXPECT_FALSE(pool_->TakeLackOfMemory());
  ASSERT_TRUE(pool_->TryReserve(6 << 20));
  EXPECT_TRUE(image->IsAlone(window));
  EXPECT_TRUE(pool_->TakeLackOfMemory()) << "what nobody uses may end";
  pool_->Unreserve(6 << 20);
  EXPECT_FALSE(image->IsAlone(window));
}

TEST_F(BlockWindowsTest, OfACutThatHasALaterOneNoMoreComesThanIsWanted) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(64 << 20));
  const WindowPtr window = Window(*image);
  EXPECT_TRUE(image->Share(window, 0, 64).ok());
  const auto next = image->Next(128 * kBlockBytes, ranges.Reader(), {});
  EXPECT_TRUE(image->Share(window, 100, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{100 * kBlockBytes, kBlockBytes}));
  EXPECT_TRUE(next->Share(window, 120, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{112 * kBlockBytes, 16 * kBlockBytes}));
}

TEST_F(BlockWindowsTest, OfAFileThatDoesNotFitNoMoreComesThanIsWanted) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(8 << 20));
  const WindowPtr window = Window(*image);
  EXPECT_TRUE(image->Share(window, 0, 32).ok());
  EXPECT_TRUE(image->Share(window, 40, 1).ok());
  EXPECT_EQ(ranges.asked.back(), (Extent{40 * kBlockBytes, kBlockBytes}));
}

TEST_F(BlockWindowsTest, OfAFileThatIsReadMuchMoreComesBeforeItIsWanted) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(64 << 20));
  const WindowPtr window = Window(*image);
  const auto always = [] { return true; };
  EXPECT_TRUE(image->Share(window, 0, 1).ok());
  image->ShareMore(window, 1, always);
  EXPECT_EQ(ranges.asked.size(), 1) << "too little has been wanted";
  EXPECT_TRUE(image->Share(window, 10, 1).ok());
  image->ShareMore(window, 11, [] { return false; });
  EXPECT_EQ(ranges.asked.size(), 2) << "nobody reads it any more";
  image->ShareMore(window, 11, [&] {
    image->ShareMore(window, 11, always);  // Somebody is at it.
    return true;
  });
  EXPECT_EQ(ranges.asked.size(), 3);
  EXPECT_EQ(ranges.asked.back(), (Extent{11 * kBlockBytes, 16 * kBlockBytes}));
  image->ShareMore(window, 120, always);  // As many as there are: 8, and 10 from the beginning on.
  const auto reader = ReaderOf(window, *image);
  EXPECT_EQ(Read(*reader, 120 * kBlockBytes, 8 * kBlockBytes),
            ranges.bytes.substr(120 * kBlockBytes));
  EXPECT_EQ(Read(*reader, 0, 30 * kBlockBytes), ranges.bytes.substr(0, 28 * kBlockBytes));
}

// Where the kernel has no large pages, the blocks lie in single ones.
TEST_F(BlockWindowsTest, BlocksInLargePagesAreReadAsThoseBesideThem) {
  constexpr uint64_t kBlocks = 200, kSets = 160;
  FakeRanges ranges(RandomBytes(kBlocks * kBlockBytes - 7, 5));
  const auto pool = std::make_shared<BlockPool>(64 << 20);
  const auto image = Image(ranges, pool);
  WindowPtr window = Window(*image);
  std::vector<WindowPtr> readers(4, window);
  const uint64_t table_bytes = pool->count().reserved_bytes;
  EXPECT_TRUE(image->Share(window, 3, 2).ok());
  EXPECT_TRUE(image->Share(window, 3 + kSets, 2).ok()) << "the second slots of the same sets";
  for (int i = 0; i < 10; ++i) image->ShareMore(window, 10, [] { return true; });
  const auto reader = ReaderOf(window, *image);
  EXPECT_EQ(Read(*reader, 0, ranges.bytes.size()), ranges.bytes);
  const uint64_t blocks_bytes = pool->count().reserved_bytes - table_bytes;
  EXPECT_GE(blocks_bytes, kBlocks * kBlockBytes);
  EXPECT_LT(blocks_bytes, (kBlocks + 16) * kBlockBytes) << "no large page for a small rest";
  readers.clear();
  window.reset();
  EXPECT_EQ(pool->count().reserved_bytes, 0);
}

TEST_F(BlockWindowsTest, NoMoreComesThanThereIsRoomFor) {
  FakeRanges ranges(RandomBytes(128 * kBlockBytes, 4));
  const auto image = Image(ranges, std::make_shared<BlockPool>(8 << 20));
  const WindowPtr window = Window(*image);
  EXPECT_TRUE(image->Share(window, 0, 32).ok());
  image->ShareMore(window, 32, [] { return true; });
  EXPECT_EQ(ranges.asked.size(), 1);
}

TEST_F(BlockWindowsTest, ABlockIsThereBeforeTheRestThatIsFetchedWithIt) {
  absl::Notification has_begun, is_seen;
  const auto fetch = [&](uint64_t offset, uint64_t length, rpc::RangeSink sink,
                         rpc::MetadataAhead*) -> absl::Status {
    const auto bytes = std::string_view(ranges_.bytes).substr(offset, length);
    const absl::Status sunk = sink(offset, bytes.substr(0, kBlockBytes));
    has_begun.Notify();
    is_seen.WaitForNotification();
    return sunk.ok() ? sink(offset + kBlockBytes, bytes.substr(kBlockBytes)) : sunk;
  };
  const auto image = std::make_shared<CutImage>(pool_, kSize, fetch);
  const WindowPtr window = Window(*image);
  std::thread thread([&] { EXPECT_TRUE(image->Share(window, 0, 4).ok()); });
  has_begun.WaitForNotification();
  EXPECT_TRUE(image->Share(window, 0, 1).ok()) << "it waits for no other block";
  EXPECT_EQ(Read(*ReaderOf(window, *image), 0, 4 * kBlockBytes),
            ranges_.bytes.substr(0, kBlockBytes));
  is_seen.Notify();
  thread.join();
  EXPECT_EQ(Read(*ReaderOf(window, *image), 0, 4 * kBlockBytes),
            ranges_.bytes.substr(0, 4 * kBlockBytes));
}

TEST_F(BlockWindowsTest, WhatCameBeforeAFailureStays) {
  const auto fetch = [&](uint64_t offset, uint64_t, rpc::RangeSink sink,
                         rpc::MetadataAhead*) -> absl::Status {
    const absl::Status sunk =
        sink(offset, std::string_view(ranges_.bytes).substr(offset, kBlockBytes + 100));
    return sunk.ok() ? absl::UnavailableError("away") : sunk;
  };
  const auto image = std::make_shared<CutImage>(pool_, kSize, fetch);
  const WindowPtr window = Window(*image);
  EXPECT_EQ(image->Share(window, 0, 4).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(*ReaderOf(window, *image), 0, 4 * kBlockBytes),
            ranges_.bytes.substr(0, kBlockBytes))
      << "half a block is none";
  EXPECT_EQ(image->Share(window, 1, 1).code(), absl::StatusCode::kUnavailable)
      << "nobody fetches it any more";
}

TEST_F(BlockWindowsTest, AServerThatFailsIsAnErrorAndTheNextOneTriesAgain) {
  const auto image = Image(ranges_, pool_);
  const WindowPtr window = Window(*image);
  ranges_.failure = absl::UnavailableError("away");
  EXPECT_EQ(image->Share(window, 0, 2).code(), absl::StatusCode::kUnavailable);
  ranges_.failure = absl::OkStatus();
  EXPECT_TRUE(image->Share(window, 0, 2).ok());
  EXPECT_EQ(Read(*ReaderOf(window, *image), 0, 10), ranges_.bytes.substr(0, 10));
}

}  // namespace
}  // namespace h5mirror::agent
