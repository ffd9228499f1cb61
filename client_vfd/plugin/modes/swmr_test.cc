#include "client_vfd/plugin/modes/swmr.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "client_vfd/plugin/modes/local_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::HasSubstr;
using Writer = SwmrLook::Writer;

// Version 3, addresses of 8 bytes, an end of file of 48.
std::string Superblock(char flags) {
  std::string bytes("\x89HDF\r\n\x1a\n\x03\x08\x08", 11);
  bytes.resize(48, '\0');
  bytes[11] = flags;
  bytes[28] = 48;
  return bytes;
}

TEST(SwmrFlagsTest, BothFlagsAreSetWhereHdf5SetsOne) {
  const SwmrFlags flags;
  EXPECT_EQ(flags.Marked(Superblock(0)), std::nullopt);
  const auto marked = flags.Marked(Superblock(4) + "more");
  ASSERT_TRUE(marked.has_value());
  EXPECT_EQ((*marked)[11], 5);
  EXPECT_THAT(*marked, testing::EndsWith("more"));
}

TEST(SwmrFlagsTest, AFileThatWasOpenedForSwmrHasThemUntilItsClose) {
  SwmrFlags flags(SwmrFlags::Opened::kForSwmr);
  EXPECT_TRUE(flags.IsToBeMarked());
  flags.OnMarked();
  EXPECT_FALSE(flags.IsToBeMarked());
  EXPECT_TRUE(flags.Marked(Superblock(0)).has_value());
  flags.OnTruncate(true);
  EXPECT_EQ(flags.Marked(Superblock(0)), std::nullopt);
  flags.OnTruncate(false);
  EXPECT_TRUE(flags.Marked(Superblock(0)).has_value()) << "it was not the close";
}

class SwmrLookTest : public testing::Test {
 protected:
  SwmrLookTest() : fd_(mkstemp(path_)) {}
  ~SwmrLookTest() override {
    close(fd_);
    unlink(path_);
  }

  void Write(const std::string& bytes) {
    ASSERT_EQ(pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // As HDF5 without functions of its own opens it.
  SwmrLook LookAsOpened() {
    const std::unique_ptr<UnderFile> under = OpenPosix(path_, H5F_ACC_RDWR);
    return LookForSwmrWriter(*under, under->Descriptor());
  }

  char path_[32] = "/tmp/swmr_test.XXXXXX";
  int fd_;
};

TEST_F(SwmrLookTest, AWriterThatWasKilledLeavesASuperblockToBeClosed) {
  std::string superblock = Superblock(5);
  superblock[13] = 2;  // base address: 512
  Write(std::string(512, 'u') + superblock + std::string(1000, 'd'));
  close(fd_);
  const SwmrLook look = LookAsOpened();
  EXPECT_EQ(look.writer, Writer::kGone);
  EXPECT_EQ(look.offset, 512);
  ASSERT_EQ(look.closed.size(), 48);
  EXPECT_EQ(look.closed[11], 0);
  EXPECT_EQ(look.closed.substr(28, 2), "\x18\x06") << "the size";
  EXPECT_EQ(LookForSwmrWriter(path_).writer, Writer::kGone);
  fd_ = -1;
}

TEST_F(SwmrLookTest, WhoeverHasItOpenMayBeTheWriter) {
  Write(Superblock(5) + std::string(1000, 'd'));
  const SwmrLook look = LookAsOpened();
  EXPECT_EQ(look.writer, Writer::kMaybeAtWork);
  EXPECT_THAT(WhyNotOpened(look, "a.h5"), HasSubstr("h5mirror recover a.h5"));
  EXPECT_EQ(LookForSwmrWriter(path_).writer, Writer::kMaybeAtWork);
}

TEST_F(SwmrLookTest, AFileWithoutTheFlagIsLeftAlone) {
  for (const std::string& bytes :
       {Superblock(0), Superblock(1), std::string(700, 'x'), std::string()}) {
    ASSERT_EQ(ftruncate(fd_, 0), 0);
    Write(bytes + std::string(bytes.empty() ? 0 : 1000, 'd'));
    EXPECT_EQ(LookAsOpened().writer, Writer::kNone);
  }
}

TEST_F(SwmrLookTest, ALeaseIsAskedForAndNotKept) {
  int why_errno = 0;
  EXPECT_EQ(WhoHasOpen(fd_, &why_errno), Writer::kNone);
  EXPECT_EQ(fcntl(fd_, F_GETLEASE), F_UNLCK);
  EXPECT_EQ(fcntl(fd_, F_GETSIG), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(WhoHasOpen(ends[0], &why_errno), Writer::kCannotBeTold);
  EXPECT_NE(why_errno, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace h5mirror::vfd
