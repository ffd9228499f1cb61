#include "client_vfd/plugin/held_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

// A local file in memory, with sec2's manners, as the driver below.
struct MemoryFile {
  H5FD_t base{};
  std::string bytes;
  haddr_t eoa = 0;
  int writes = 0;
  int writes_left = 1'000'000'000;
};

MemoryFile* Of(H5FD_t* file) { return reinterpret_cast<MemoryFile*>(file); }
const MemoryFile* Of(const H5FD_t* file) { return reinterpret_cast<const MemoryFile*>(file); }

herr_t ReadMemory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) {
  std::memset(buffer, 0, size);
  if (addr < Of(file)->bytes.size()) Of(file)->bytes.copy(static_cast<char*>(buffer), size, addr);
  return 0;
}

herr_t WriteMemory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) {
  MemoryFile& memory = *Of(file);
  if (memory.writes_left == 0) return -1;
  --memory.writes_left;
  ++memory.writes;
  if (memory.bytes.size() < addr + size) memory.bytes.resize(addr + size, '\0');
  memory.bytes.replace(addr, size, static_cast<const char*>(buffer), size);
  return 0;
}

herr_t TruncateMemory(H5FD_t* file, hid_t, hbool_t) {
  Of(file)->bytes.resize(Of(file)->eoa, '\0');
  return 0;
}

const H5FD_class_t* MemoryClass() {
  static const H5FD_class_t made = [] {
    H5FD_class_t memory_class{};
    memory_class.read = ReadMemory;
    memory_class.write = WriteMemory;
    memory_class.truncate = TruncateMemory;
    memory_class.get_eof = [](const H5FD_t* file, H5FD_mem_t) {
      return haddr_t{Of(file)->bytes.size()};
    };
    memory_class.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; };
    return memory_class;
  }();
  return &made;
}

class HeldFileTest : public testing::Test {
 protected:
  explicit HeldFileTest(std::string content = "", uint64_t memory_bytes_max = 1 << 20) {
    memory_.base.cls = MemoryClass();
    memory_.bytes = std::move(content);
    memory_.eoa = memory_.bytes.size();
    Open(memory_bytes_max);
  }

  void Open(uint64_t memory_bytes_max) {
    held_ = std::make_unique<HeldFile>(
        HeldFile::Target{&host_, &memory_.base, nullptr, "test.h5", memory_bytes_max});
  }
  herr_t Write(H5FD_mem_t type, haddr_t addr, const std::string& bytes) {
    return held_->Write(type, H5P_DEFAULT, addr, bytes.size(), bytes.data());
  }
  std::string Read(haddr_t addr, size_t size) {
    std::string out(size, '?');
    EXPECT_GE(held_->Read(H5FD_MEM_DEFAULT, H5P_DEFAULT, addr, size, out.data()), 0);
    return out;
  }
  // As H5Fflush, with what HDF5 writes in between.
  herr_t Cut(haddr_t eoa) {
    memory_.eoa = eoa;
    if (held_->Truncate(H5P_DEFAULT, false) < 0) return -1;
    return held_->Flush(H5P_DEFAULT, false);
  }

  HostLibrary host_{};
  MemoryFile memory_;
  std::unique_ptr<HeldFile> held_;
};

TEST_F(HeldFileTest, MetadataIsReadBackAndCountedBeforeItIsInTheFile) {
  EXPECT_EQ(Write(H5FD_MEM_OHDR, 4, "header"), 0);
  EXPECT_EQ(Write(H5FD_MEM_DRAW, 0, "raw"), 0);
  EXPECT_EQ(memory_.bytes, "raw");
  EXPECT_EQ(held_->Eof(H5FD_MEM_DEFAULT), 10u);
  EXPECT_EQ(Read(0, 12), std::string("raw\0header\0\0", 12));
  EXPECT_EQ(Cut(10), 0);
  EXPECT_EQ(memory_.bytes, std::string("raw\0header", 10));
}

TEST_F(HeldFileTest, AnObjectsFlushPutsNothingAndTheCloseEverything) {
  Write(H5FD_MEM_OHDR, 0, "header");
  EXPECT_EQ(held_->Flush(H5P_DEFAULT, false), 0);
  EXPECT_EQ(memory_.bytes, "");
  EXPECT_EQ(held_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, "header");
}

TEST_F(HeldFileTest, RawDataOverHeldMetadataIsTheNewer) {
  Write(H5FD_MEM_OHDR, 0, "header");
  Write(H5FD_MEM_DRAW, 2, "ra");
  EXPECT_EQ(Read(0, 6), "heraer");
  Cut(6);
  EXPECT_EQ(memory_.bytes, "heraer");
}

TEST_F(HeldFileTest, WhatIsBeyondTheNewEndIsForgotten) {
  Write(H5FD_MEM_OHDR, 0, "header");
  EXPECT_EQ(Cut(3), 0);
  EXPECT_EQ(memory_.bytes, "hea");
  EXPECT_EQ(held_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, "hea");
}

TEST_F(HeldFileTest, TheGlobalHeapIsHeldAndRawDataIsNot) {
  const std::string heap = "GCOL\1" + std::string(4091, 'x');
  Write(H5FD_MEM_DRAW, 0, heap);
  EXPECT_EQ(memory_.bytes, "");
  Write(H5FD_MEM_DRAW, 8192, "GCOL\1");
  EXPECT_EQ(memory_.writes, 1);
  EXPECT_EQ(Read(0, 4096), heap);
}

TEST_F(HeldFileTest, BeyondTheBoundAllIsPut) {
  Open(8192);
  for (haddr_t n = 0; n < 100; ++n)
    EXPECT_EQ(Write(H5FD_MEM_OHDR, n * 1024, std::string(1000, 'm')), 0);
  EXPECT_GT(memory_.bytes.size(), 80'000u);
  EXPECT_EQ(Cut(99 * 1024 + 1000), 0);
  EXPECT_EQ(memory_.bytes.size(), 99u * 1024 + 1000);
}

TEST_F(HeldFileTest, AFailedPutFailsTheFlushTouchesNothingOfTheLastCutAndIsMadeUpForLater) {
  Write(H5FD_MEM_SUPER, 0, "old");
  ASSERT_EQ(Cut(3), 0);
  Write(H5FD_MEM_SUPER, 0, "new");
  Write(H5FD_MEM_OHDR, 10, "far");
  memory_.writes_left = 0;
  EXPECT_LT(Cut(13), 0);
  EXPECT_LT(held_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes.substr(0, 3), "old");
  memory_.writes_left = 1;
  EXPECT_LT(held_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes.substr(0, 3), "old") << "what was appended comes first";
  memory_.writes_left = 1;
  EXPECT_EQ(held_->BeforeClose(), 0);
  EXPECT_EQ(memory_.bytes, std::string("new\0\0\0\0\0\0\0far", 13));
}

TEST_F(HeldFileTest, FromSwmrOnNothingIsHeld) {
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

TEST_F(HeldFileTest, RandomCallsGiveTheFileThatTheyGiveWithoutIt) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (const uint64_t bound : {uint64_t{1} << 20, uint64_t{4000}}) {
    held_.reset();
    memory_.bytes.clear();
    memory_.writes = 0;
    Open(bound);
    MemoryFile plain;
    plain.base.cls = MemoryClass();
    for (int step = 0; step < 20'000; ++step) {
      const haddr_t addr = below(3000);
      const std::string bytes(1 + below(60), static_cast<char>('a' + below(4)));
      const H5FD_mem_t type = below(3) == 0 ? H5FD_MEM_DRAW : H5FD_MEM_BTREE;
      ASSERT_EQ(Write(type, addr, bytes), 0);
      WriteMemory(&plain.base, type, H5P_DEFAULT, addr, bytes.size(), bytes.data());
      const haddr_t from = below(3000);
      std::string expected(1 + below(80), '?');
      ReadMemory(&plain.base, type, H5P_DEFAULT, from, expected.size(), expected.data());
      ASSERT_EQ(Read(from, expected.size()), expected) << "step " << step;
      ASSERT_EQ(held_->Eof(H5FD_MEM_DEFAULT), plain.bytes.size()) << "step " << step;
      if (below(30) != 0) continue;
      plain.eoa = below(4) != 0 ? plain.bytes.size() : below(3200);
      TruncateMemory(&plain.base, H5P_DEFAULT, false);
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
