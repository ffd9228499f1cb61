#include "h5perf_serial/data_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "h5perf_serial/driver.h"
#include "h5perf_serial/job.h"

namespace h5mirror::perf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DataFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_);
    unsetenv("USER");
    unsetenv("LOGIN");
  }
  void TearDown() override {
    unsetenv("HDF5_PREFIX");
    fs::remove_all(directory_);
  }

  const fs::path directory_ =
      fs::temp_directory_path() / ("h5perf-test-" + std::to_string(getpid()));
};

TEST_F(DataFileTest, WithoutAPrefixItIsTheCurrentDirectory) {
  unsetenv("HDF5_PREFIX");
  EXPECT_EQ(DataFileBase(), "#sio_tmp");
}

TEST_F(DataFileTest, ThePrefixGetsADirectoryOfTheUser) {
  setenv("HDF5_PREFIX", (directory_.string() + "//").c_str(), 1);
  EXPECT_EQ(DataFileBase(), (directory_ / "#sio_tmp").string());
  setenv("LOGIN", "someone", 1);
  EXPECT_EQ(DataFileBase(), (directory_ / "someone" / "#sio_tmp").string());
  setenv("USER", "me", 1);
  EXPECT_EQ(DataFileBase(), (directory_ / "me" / "#sio_tmp").string());
  EXPECT_TRUE(fs::is_directory(directory_ / "me"));
}

TEST_F(DataFileTest, ADirectoryThatCannotBeMadeIsDoneWithout) {
  setenv("HDF5_PREFIX", directory_.c_str(), 1);
  setenv("USER", "a/b", 1);
  EXPECT_EQ(DataFileBase(), (directory_ / "#sio_tmp").string());
}

TEST(VerifyTest, ThePlaceOfAWrongByteIsItsIndexInTheDataset) {
  const Shape shape = {{16, 16}, {2, 4}, {0, 1}};
  Bytes wanted(8), read(8);
  FillBuffer(Contents::kTiled, wanted);
  read = wanted;
  EXPECT_TRUE(VerifyBuffer(shape, {2, 8}, wanted, read, "f").ok());
  read[6] ^= 1;
  EXPECT_THAT(std::string(VerifyBuffer(shape, {2, 8}, wanted, read, "f").message()),
              HasSubstr("element (3,10) was read as 7, and written as 6"));
}

TEST(FillTest, BytesAreTiledOrNoiseThatRepeats) {
  Bytes tiled(300), one(300), other(300);
  FillBuffer(Contents::kTiled, tiled);
  EXPECT_EQ(tiled[127], 127);
  EXPECT_EQ(tiled[128], 0);
  FillBuffer(Contents::kRandom, one);
  FillBuffer(Contents::kRandom, other);
  EXPECT_EQ(one, other);
  EXPECT_NE(one, tiled);
}

TEST(NamesTest, EachDriverHasItsOwn) {
  EXPECT_EQ(Hdf5Name(*ParseDriver("family"), "b"), "b%05d.h5");
  EXPECT_EQ(Hdf5Name(*ParseDriver("multi"), "b"), "b");
  EXPECT_EQ(Hdf5Name(*ParseDriver("split"), "b"), "b.h5");
}

}  // namespace
}  // namespace h5mirror::perf
