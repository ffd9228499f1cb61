#include "client_vfd/plugin/metadata_buffer/buffered_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client_vfd/plugin/testing/memory_file.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

class BufferedFileTest : public testing::Test {
 protected:
  explicit BufferedFileTest(std::string content = "", uint64_t memory_bytes_max = 8 << 20)
      : memory_(std::move(content)) {
    Open(memory_bytes_max);
  }

  void Open(uint64_t memory_bytes_max) {
    buffered_ = std::make_unique<BufferedFile>(BufferedFile::Target{
        &host_, &memory_, &memory_, BufferedFile::Gathers::kRawData, "test.h5", memory_bytes_max});
  }
  herr_t Write(H5FD_mem_t type, haddr_t addr, const std::string& bytes) {
    return buffered_->Write(type, H5P_DEFAULT, addr, bytes.size(), bytes.data());
  }
  std::string Read(haddr_t addr, size_t size) {
    std::string out(size, '?');
    EXPECT_GE(buffered_->Read(H5FD_MEM_DEFAULT, H5P_DEFAULT, addr, size, out.data()), 0);
    return out;
  }
  // As H5Fflush, with what HDF5 writes in between.
  herr_t Cut(haddr_t eoa) {
    memory_.eoa = eoa;
    if (buffered_->Truncate(H5P_DEFAULT, false) < 0) return -1;
    return buffered_->Flush(H5P_DEFAULT, false);
  }

  // Metadata of the last cut is held on all the time, so that nothing is ever all put.
  void GatherMuch() {
    Write(H5FD_MEM_SUPER, 0, "old");
    ASSERT_EQ(Cut(3), 0);
    Write(H5FD_MEM_SUPER, 0, "new");
    std::string expected = "new";
    for (int n = 0; n < 4000; ++n) {
      const std::string raw(1 + n * 7 % 16'000, static_cast<char>('a' + n % 26));
      ASSERT_EQ(Write(H5FD_MEM_DRAW, expected.size(), raw), 0);
      expected += raw;
      ASSERT_LE(expected.size() - memory_.bytes.size(), (1 << 20) + 16'000u);
    }
    EXPECT_EQ(memory_.bytes.substr(0, 3), "old") << "its memory ended: all was put";
    EXPECT_LT(memory_.writes, 200);
    EXPECT_EQ(Cut(expected.size()), 0);
    EXPECT_TRUE(memory_.bytes == expected);
  }

  HostLibrary host_{};
  MemoryFile memory_;
  std::unique_ptr<BufferedFile> buffered_;
};

TEST_F(BufferedFileTest, MetadataIsReadBackAndCountedBeforeItIsInTheFile) {
  ASSERT_EQ(Write(H5FD_MEM_DRAW, 0, "old"), 0);
  ASSERT_EQ(Cut(3), 0);
  EXPECT_EQ(Write(H5FD_MEM_OHDR, 4, "header"), 0);
  EXPECT_EQ(Write(H5FD_MEM_DRAW, 0, "raw"), 0);
  EXPECT_EQ(memory_.bytes, "raw");
  EXPECT_EQ(buffered_->Eof(H5FD_MEM_DEFAULT), 10u);
  EXPECT_EQ(Read(0, 12), std::string("raw\0header\0\0", 12));
  EXPECT_EQ(Cut(10), 0);
  EXPECT_EQ(memory_.bytes, std::string("raw\0header", 10));
}

TEST_F(BufferedFileTest, AnObjectsFlushPutsNothingAndTheCloseEverything) {
  Write(H5FD_MEM_OHDR, 0, "header");
  EXPECT_EQ(buffered_->Flush(H5P_DEFAULT, false), 0);
  EXPECT_EQ(memory_.bytes, "");
  EXPECT_EQ(buffered_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, "header");
}

TEST_F(BufferedFileTest, RawDataOverHeldMetadataIsTheNewer) {
  Write(H5FD_MEM_OHDR, 0, "header");
  Write(H5FD_MEM_DRAW, 2, "ra");
  EXPECT_EQ(Read(0, 6), "heraer");
  Cut(6);
  EXPECT_EQ(memory_.bytes, "heraer");
}

TEST_F(BufferedFileTest, WhatIsBeyondTheNewEndIsForgotten) {
  Write(H5FD_MEM_OHDR, 0, "header");
  EXPECT_EQ(Cut(3), 0);
  EXPECT_EQ(memory_.bytes, "hea");
  EXPECT_EQ(buffered_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, "hea");
}

TEST_F(BufferedFileTest, TheGlobalHeapIsHeldAndRawDataOfTheLastCutIsNot) {
  const std::string heap = "GCOL\1" + std::string(4091, 'x');
  Write(H5FD_MEM_DRAW, 0, std::string(9000, 'r'));
  ASSERT_EQ(Cut(9000), 0);
  Write(H5FD_MEM_DRAW, 0, heap);
  EXPECT_EQ(memory_.bytes[0], 'r');
  Write(H5FD_MEM_DRAW, 8192, "GCOL\1");
  EXPECT_EQ(memory_.bytes.substr(8192, 5), "GCOL\1");
  EXPECT_EQ(Read(0, 4096), heap);
}

TEST_F(BufferedFileTest, SmallRawDataBeyondTheLastCutIsPutWithTheMetadataBetween) {
  std::string expected;
  for (int n = 0; n < 100; ++n) {
    const std::string header(300, 'h'), raw(8192, static_cast<char>('a' + n % 26));
    EXPECT_EQ(Write(H5FD_MEM_DRAW, expected.size() + header.size(), raw), 0);
    EXPECT_EQ(Write(H5FD_MEM_OHDR, expected.size(), header), 0);
    expected += header + raw;
  }
  EXPECT_EQ(memory_.writes, 0);
  EXPECT_EQ(buffered_->Eof(H5FD_MEM_DEFAULT), expected.size());
  EXPECT_EQ(Read(100, 20'000), expected.substr(100, 20'000));
  EXPECT_EQ(buffered_->Flush(H5P_DEFAULT, false), 0) << "an object's: no cut";
  EXPECT_EQ(memory_.writes, 0);
  EXPECT_EQ(Cut(expected.size()), 0);
  EXPECT_EQ(memory_.bytes, expected);
  EXPECT_EQ(memory_.writes, 1);
  Write(H5FD_MEM_DRAW, expected.size() - 1, "in place");
  EXPECT_EQ(memory_.writes, 2);
}

TEST_F(BufferedFileTest, ALargeRawWriteIsNotHeld) {
  Write(H5FD_MEM_DRAW, 100, std::string(100, 's'));
  const std::string large((64 << 10) + 1, 'L');
  Write(H5FD_MEM_DRAW, 150, large);
  EXPECT_EQ(memory_.bytes, std::string(150, '\0') + large);
  EXPECT_EQ(Read(100, 60), std::string(50, 's') + std::string(10, 'L'));
}

TEST_F(BufferedFileTest, RawDataThatIsGatheredTakesBoundedMemory) {
  for (const uint64_t bound : {4 << 20, 512 << 10}) {
    buffered_.reset();
    memory_.bytes.clear();
    memory_.eof = memory_.eoa = 0;
    memory_.writes = 0;
    Open(bound);
    GatherMuch();
  }
}

TEST_F(BufferedFileTest, AfterAForkNothingIsGatheredOrFilledUntilTheNextCut) {
  Write(H5FD_MEM_DRAW, 0, "aa");
  Write(H5FD_MEM_OHDR, 10, "h1");
  buffered_->BeforeFork();
  memory_.bytes.resize(40, '\0');
  memory_.bytes.replace(20, 5, "child");
  Write(H5FD_MEM_DRAW, 14, "bb");
  EXPECT_EQ(memory_.bytes.substr(14, 2), "bb");
  Write(H5FD_MEM_OHDR, 16, "h2");
  Write(H5FD_MEM_OHDR, 30, "h3");
  EXPECT_EQ(Cut(40), 0);
  EXPECT_EQ(memory_.bytes.substr(16),
            std::string("h2\0\0child\0\0\0\0\0h3", 16) + std::string(8, '\0'));
  const int writes = memory_.writes;
  Write(H5FD_MEM_DRAW, 50, "cc");
  EXPECT_EQ(memory_.writes, writes);
}

TEST_F(BufferedFileTest, RawDataGivesWayBeforeTheLastCutsMetadataDoes) {
  Open(256 << 10);
  Write(H5FD_MEM_SUPER, 0, std::string(100'000, 'o'));
  ASSERT_EQ(Cut(100'000), 0);
  for (haddr_t n = 0; n < 100; ++n)
    Write(H5FD_MEM_DRAW, 100'000 + n * 1000, std::string(1000, 'r'));
  EXPECT_EQ(Write(H5FD_MEM_SUPER, 0, std::string(100'000, 'n')), 0);
  EXPECT_EQ(memory_.bytes.size(), 100'000u);
  EXPECT_EQ(Write(H5FD_MEM_OHDR, 1'200'000, std::string(80'000, 'm')), 0);
  EXPECT_EQ(memory_.bytes.size(), 1'280'000u) << "at the bound";
  for (haddr_t n = 100; n < 1000; ++n) {
    EXPECT_EQ(Write(H5FD_MEM_DRAW, 100'000 + n * 1000, std::string(1000, 'r')), 0);
    EXPECT_EQ(Write(H5FD_MEM_SUPER, 0, std::string(100'000, 'n')), 0);
  }
  EXPECT_EQ(memory_.bytes[0], 'o');
  EXPECT_GT(memory_.writes, 500) << "half of the bound is the metadata's";
  Write(H5FD_MEM_SUPER, 2'000'000, std::string(200'000, 'm'));
  EXPECT_EQ(memory_.bytes[0], 'n');
  const int writes = memory_.writes;
  Write(H5FD_MEM_DRAW, 1'100'000, "the file may lead here");
  EXPECT_EQ(memory_.writes, writes + 1);
}

TEST_F(BufferedFileTest, RawDataThatCannotBePutFailsTheWriteThatPutsAndIsHeldOn) {
  memory_.writes_left = 0;
  std::string expected;
  const std::string raw(10'000, 'r');
  while (Write(H5FD_MEM_DRAW, expected.size(), raw) == 0) expected += raw;
  EXPECT_GT(expected.size(), (1u << 20) - raw.size());
  EXPECT_LE(expected.size(), 1u << 20);
  EXPECT_LT(Write(H5FD_MEM_DRAW, expected.size(), raw), 0);
  EXPECT_LT(Cut(expected.size()), 0);
  memory_.writes_left = 1'000;
  EXPECT_EQ(Cut(expected.size()), 0);
  EXPECT_EQ(memory_.bytes, expected);
}

TEST_F(BufferedFileTest, BeyondTheBoundAllIsPut) {
  Open(8192);
  for (haddr_t n = 0; n < 100; ++n)
    EXPECT_EQ(Write(H5FD_MEM_OHDR, n * 1024, std::string(1000, 'm')), 0);
  EXPECT_GT(memory_.bytes.size(), 80'000u);
  EXPECT_EQ(Cut(99 * 1024 + 1000), 0);
  EXPECT_EQ(memory_.bytes.size(), 99u * 1024 + 1000);
}

TEST_F(BufferedFileTest, AFailedPutFailsTheFlushTouchesNothingOfTheLastCutAndIsMadeUpForLater) {
  Write(H5FD_MEM_SUPER, 0, "old");
  ASSERT_EQ(Cut(3), 0);
  Write(H5FD_MEM_SUPER, 0, "new");
  Write(H5FD_MEM_OHDR, 10, "far");
  memory_.writes_left = 0;
  EXPECT_LT(Cut(13), 0);
  EXPECT_LT(buffered_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes.substr(0, 3), "old");
  memory_.writes_left = 1;
  EXPECT_LT(buffered_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes.substr(0, 3), "old") << "what was appended comes first";
  memory_.writes_left = 1;
  EXPECT_EQ(buffered_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, std::string("new\0\0\0\0\0\0\0far", 13));
}

TEST_F(BufferedFileTest, FromSwmrOnNothingIsHeld) {
  std::string superblock = "\211HDF\r\n\032\n" + std::string(40, '\0');
  superblock[8] = 3;
  superblock[11] = 5;
  Write(H5FD_MEM_OHDR, 100, "header");
  Write(H5FD_MEM_SUPER, 0, superblock);
  EXPECT_EQ(memory_.bytes.substr(100), "header");
  EXPECT_EQ(memory_.bytes.substr(0, 48), superblock);
  Write(H5FD_MEM_OHDR, 200, "next");
  EXPECT_EQ(memory_.bytes.substr(200), "next");
}

TEST_F(BufferedFileTest, RandomCallsGiveTheFileThatTheyGiveWithoutIt) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  struct Case {
    uint64_t bound, unit, steps_per_cut;
  };
  for (const auto [bound, unit, steps_per_cut] :
       {Case{1 << 20, 1, 30}, Case{4000, 1, 30}, Case{16 << 20, 1200, 300}}) {
    buffered_.reset();
    memory_.bytes.clear();
    memory_.eof = 0;
    memory_.writes = 0;
    Open(bound);
    MemoryFile plain;
    for (int step = 0; step < 20'000; ++step) {
      const haddr_t addr = below(3000) * unit;
      const std::string bytes(1 + below(60) * unit, static_cast<char>('a' + below(4)));
      const H5FD_mem_t type = below(3) == 0 ? H5FD_MEM_DRAW : H5FD_MEM_BTREE;
      ASSERT_EQ(Write(type, addr, bytes), 0);
      plain.Write(type, H5P_DEFAULT, addr, bytes.size(), bytes.data());
      const haddr_t from = below(3000) * unit;
      std::string expected(1 + below(80) * unit, '?');
      plain.Read(type, H5P_DEFAULT, from, expected.size(), expected.data());
      ASSERT_EQ(Read(from, expected.size()), expected) << "step " << step;
      ASSERT_EQ(buffered_->Eof(H5FD_MEM_DEFAULT), plain.bytes.size()) << "step " << step;
      if (below(steps_per_cut) != 0) continue;
      plain.eoa = unit == 1 && below(4) != 0 ? plain.bytes.size() : below(3200) * unit;
      plain.Truncate(H5P_DEFAULT, false);
      ASSERT_EQ(Cut(plain.eoa), 0);
      ASSERT_EQ(memory_.bytes, plain.bytes) << "step " << step;
    }
    if (bound > 4000) {
      EXPECT_LT(memory_.writes, plain.writes);
    }
  }
}

}  // namespace
}  // namespace h5mirror::vfd
