#include "client_vfd/plugin/modes/writable_mode.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/testing/memory_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::ElementsAre;

// A mode of its own over a file in memory.
class MemoryMode final : public WritableMode {
 public:
  MemoryMode(const HostLibrary& host, std::unique_ptr<MemoryFile> memory)
      : WritableMode(host, std::move(memory), {}) {}
  herr_t Close() override { return CloseLayers(); }
};

// Writes down which calls come through.
class NotingBytes final : public FileBytes {
 public:
  NotingBytes(std::string name, FileBytes& below, std::vector<std::string>* notes)
      : name_(std::move(name)), below_(below), notes_(*notes) {}
  ~NotingBytes() override { notes_.push_back(name_ + " gone"); }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    notes_.push_back(name_ + " read");
    return below_.Read(type, dxpl, addr, size, buffer);
  }
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
               const void* buffer) override {
    notes_.push_back(name_ + " write");
    return below_.Write(type, dxpl, addr, size, buffer);
  }
  herr_t Truncate(hid_t dxpl, hbool_t closing) override { return below_.Truncate(dxpl, closing); }
  herr_t Flush(hid_t dxpl, hbool_t closing) override { return below_.Flush(dxpl, closing); }
  haddr_t Eof(H5FD_mem_t type) const override { return below_.Eof(type); }
  herr_t BeforeClose() override {
    notes_.push_back(name_ + " closes");
    return close_result;
  }

  herr_t close_result = 0;

 private:
  const std::string name_;
  FileBytes& below_;
  std::vector<std::string>& notes_;
};

// Version 3, addresses of 8 bytes.
std::string Superblock(char flags) {
  std::string bytes("\x89HDF\r\n\x1a\n\x03\x08\x08", 11);
  bytes.resize(48, '\0');
  bytes[11] = flags;
  bytes[28] = 48;
  return bytes;
}

class WritableModeTest : public testing::Test {
 protected:
  NotingBytes& AddLayer(const char* name) {
    auto layer = std::make_unique<NotingBytes>(name, mode_->bytes(), &notes_);
    NotingBytes& added = *layer;
    mode_->AddLayer(std::move(layer));
    return added;
  }
  herr_t Write(H5FD_mem_t type, haddr_t addr, const std::string& bytes) {
    return mode_->Write(type, H5P_DEFAULT, addr, bytes.size(), bytes.data());
  }

  HostLibrary host_{};
  std::vector<std::string> notes_;
  std::unique_ptr<MemoryFile> owned_memory_ = std::make_unique<MemoryFile>(Superblock(0));
  MemoryFile& memory_ = *owned_memory_;  // the mode's
  std::unique_ptr<MemoryMode> mode_ = std::make_unique<MemoryMode>(host_, std::move(owned_memory_));
};

TEST_F(WritableModeTest, CallsGoThroughTheLayersFromTheTop) {
  AddLayer("lower");
  AddLayer("upper");
  ASSERT_EQ(Write(H5FD_MEM_DRAW, 48, "raw"), 0);
  std::string read(3, '?');
  ASSERT_EQ(mode_->Read(H5FD_MEM_DRAW, H5P_DEFAULT, 48, 3, read.data()), 0);
  EXPECT_EQ(read, "raw");
  EXPECT_EQ(mode_->Eof(H5FD_MEM_DEFAULT), 51u);
  EXPECT_THAT(notes_, ElementsAre("upper write", "lower write", "upper read", "lower read"));
}

TEST_F(WritableModeTest, AtTheCloseEachLayerIsGoneBeforeTheNextHandsOn) {
  AddLayer("lower");
  AddLayer("upper").close_result = -1;
  EXPECT_EQ(mode_->Close(), -1) << "the lower one's success changes nothing";
  EXPECT_THAT(notes_, ElementsAre("upper closes", "upper gone", "lower closes", "lower gone"));
}

TEST_F(WritableModeTest, WithoutACloseTheLayersGoFromTheTop) {
  AddLayer("lower");
  AddLayer("upper");
  mode_.reset();
  EXPECT_THAT(notes_, ElementsAre("upper gone", "lower gone"));
}

TEST_F(WritableModeTest, ASuperblockForSwmrGetsAllFlagsAndGivesTheLockUp) {
  ASSERT_EQ(Write(H5FD_MEM_SUPER, 0, Superblock(0)), 0);
  EXPECT_EQ(memory_.unlocks, 0);
  ASSERT_EQ(Write(H5FD_MEM_SUPER, 0, Superblock(4)), 0);
  EXPECT_EQ(memory_.bytes[11], 5);
  EXPECT_EQ(memory_.unlocks, 1);
  ASSERT_EQ(Write(H5FD_MEM_DRAW, 0, Superblock(4)), 0) << "raw data may look like one";
  EXPECT_EQ(memory_.bytes[11], 4);
}

TEST_F(WritableModeTest, AFileThatWasOpenedForSwmrIsMarkedBeforeItsFirstWrite) {
  mode_->OpenedForSwmr();
  EXPECT_EQ(memory_.bytes[11], 0);
  ASSERT_EQ(Write(H5FD_MEM_DRAW, 48, "raw"), 0);
  EXPECT_EQ(memory_.bytes[11], 5);
  EXPECT_EQ(memory_.writes, 2);
  ASSERT_EQ(Write(H5FD_MEM_DRAW, 48, "raw"), 0);
  EXPECT_EQ(memory_.writes, 3) << "once";
}

TEST_F(WritableModeTest, TheSuperblockOfAKilledSwmrWriterIsMendedAtTheFirstRead) {
  memory_.bytes = Superblock(5) + std::string(1000, 'd');
  memory_.eof = memory_.bytes.size();
  AddLayer("layer");
  mode_->ExpectFirstRead({"a.h5", "", FirstRead::kAskedBefore});
  std::string read(12, '?');
  ASSERT_EQ(mode_->Read(H5FD_MEM_SUPER, H5P_DEFAULT, 0, 12, read.data()), 0);
  EXPECT_EQ(read[11], 0);
  ASSERT_EQ(mode_->Read(H5FD_MEM_SUPER, H5P_DEFAULT, 0, 12, read.data()), 0);
  EXPECT_THAT(notes_, ElementsAre("layer write", "layer read", "layer read"));
}

TEST_F(WritableModeTest, AMendThatCannotBeWrittenFailsTheRead) {
  memory_.bytes = Superblock(5) + std::string(1000, 'd');
  memory_.eof = memory_.bytes.size();
  memory_.writes_left = 0;
  mode_->ExpectFirstRead({"a.h5", "", FirstRead::kAskedBefore});
  std::string read(12, '?');
  EXPECT_LT(mode_->Read(H5FD_MEM_SUPER, H5P_DEFAULT, 0, 12, read.data()), 0);
}

}  // namespace
}  // namespace h5mirror::vfd
