#include "client_vfd/session/descriptor_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "client_vfd/session/file_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using ::testing::HasSubstr;

// The descriptor that was opened between two calls, as the lowest that is free.
int LowestFree() {
  const int fd = dup(STDOUT_FILENO);
  close(fd);
  return fd;
}

std::string MakeFile(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(fd);
  return path;
}

TEST(DescriptorMarkTest, AMarkThatIsClosedIsLostForGood) {
  DescriptorMark mark;
  EXPECT_TRUE(mark.is_there()) << "not set yet";
  const int number = LowestFree();
  mark.Set();
  mark.Set();
  EXPECT_TRUE(mark.is_there());
  ASSERT_EQ(close(number), 0);
  EXPECT_FALSE(mark.is_there());
  mark.Set();
  EXPECT_FALSE(mark.is_there());
}

TEST(DescriptorMarkTest, ANumberThatIsAnotherFileByNowIsLostToo) {
  DescriptorMark mark, other;
  const int number = LowestFree();
  mark.Set();
  ASSERT_EQ(close(number), 0);
  other.Set();  // A memory file as well.
  ASSERT_EQ(LowestFree(), number + 1);
  EXPECT_FALSE(mark.is_there());
  EXPECT_TRUE(other.is_there());
  close(number);
}

TEST(DescriptorMarkTest, AReaderReadsAndClosesNoOtherFile) {
  const std::string mirrored = MakeFile("mirrored", "mirrored");
  const std::string others = MakeFile("others", "OTHERS..");
  const DescriptorMark mark;
  const int program = open(mirrored.c_str(), O_RDONLY);
  const int number = LowestFree();
  absl::StatusOr<std::unique_ptr<FileReader>> reader = FileReader::Open(program, mark);
  ASSERT_TRUE(reader.ok()) << reader.status();
  char bytes[8];
  ASSERT_TRUE((*reader)->Read({0, 8}, bytes).ok());
  EXPECT_EQ(std::string(bytes, 8), "mirrored");
  ASSERT_EQ(close(number), 0);
  ASSERT_EQ(open(others.c_str(), O_RDONLY), number);
  const absl::Status read = (*reader)->Read({0, 8}, bytes);
  EXPECT_THAT(std::string(read.message()), HasSubstr("the program has closed"));
  EXPECT_FALSE((*reader)->Stat().ok());
  EXPECT_TRUE((*reader)->DataExtents().empty());
  reader->reset();
  EXPECT_EQ(pread(number, bytes, 8, 0), 8) << "the program's file is still open";
  close(number);
  close(program);
}

// The program opens the mirrored file again, after it has closed all.
TEST(DescriptorMarkTest, AReaderClosesNoOtherDescriptorOfItsOwnFile) {
  const std::string mirrored = MakeFile("mirrored-twice", "mirrored");
  const int program = open(mirrored.c_str(), O_RDONLY);
  const int number = LowestFree();
  DescriptorMark mark;
  absl::StatusOr<std::unique_ptr<FileReader>> reader = FileReader::Open(program, mark);
  ASSERT_TRUE(reader.ok()) << reader.status();
  mark.Set();
  ASSERT_EQ(close(number), 0);
  ASSERT_EQ(close(number + 1), 0) << "the mark";
  ASSERT_EQ(open(mirrored.c_str(), O_RDONLY), number);
  reader->reset();
  char bytes[8];
  EXPECT_EQ(pread(number, bytes, 8, 0), 8) << "the program's descriptor is still open";
  close(number);
  close(program);
}

}  // namespace
}  // namespace h5mirror::vfd
