#include "client_vfd/plugin/modes/left_out_bytes.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "client_vfd/plugin/testing/memory_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Changes = LeftOutBytes::Changes;

class LeftOutBytesTest : public testing::Test {
 protected:
  // A path is told once in a process: each test has its own.
  LeftOutBytesTest()
      : log_(testing::TempDir() + "left_out_" + std::to_string(getpid()) + "_" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~LeftOutBytesTest() override { unlink(log_.c_str()); }

  LeftOutBytes Make(Changes changes) {
    return LeftOutBytes(host_, {log_ + ".h5", log_, "mode=off"}, memory_, memory_, changes);
  }
  herr_t Write(LeftOutBytes& bytes, const std::string& text) {
    return bytes.Write(H5FD_MEM_DEFAULT, H5P_DEFAULT, 0, text.size(), text.data());
  }
  std::string Told() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string log_;
  HostLibrary host_{};
  MemoryFile memory_{"content"};
};

TEST_F(LeftOutBytesTest, BytesThatAreThereAlreadyAreNoChange) {
  LeftOutBytes bytes = Make(Changes::kWritesAndTruncates);
  ASSERT_EQ(Write(bytes, "con"), 0);
  ASSERT_EQ(bytes.Truncate(H5P_DEFAULT, true), 0);
  ASSERT_EQ(bytes.Flush(H5P_DEFAULT, true), 0);
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(memory_.writes, 1) << "it is passed on all the same";
}

TEST_F(LeftOutBytesTest, TheFirstChangeIsToldAndNoMoreIsCompared) {
  LeftOutBytes bytes = Make(Changes::kWritesAndTruncates);
  ASSERT_EQ(Write(bytes, "CON"), 0);
  EXPECT_THAT(Told(), HasSubstr("mode=off"));
  const int reads = memory_.reads;
  ASSERT_EQ(Write(bytes, "con"), 0);
  EXPECT_EQ(memory_.reads, reads);
  EXPECT_EQ(memory_.bytes, "content");
}

TEST_F(LeftOutBytesTest, AnotherSizeIsAChange) {
  LeftOutBytes bytes = Make(Changes::kWritesAndTruncates);
  memory_.eoa = 3;
  ASSERT_EQ(bytes.Truncate(H5P_DEFAULT, false), 0);
  EXPECT_THAT(Told(), HasSubstr("mode=off"));
  EXPECT_EQ(memory_.bytes, "con");
}

TEST_F(LeftOutBytesTest, OverABufferOnlyWritesAre) {
  LeftOutBytes bytes = Make(Changes::kWrites);
  memory_.eoa = 3;
  ASSERT_EQ(bytes.Truncate(H5P_DEFAULT, false), 0);
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace h5mirror::vfd
