#include "hdf5/source_driver.h"

#include <unistd.h>
#include <cstring>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::hdf5 {
namespace {

class StringSource final : public ByteSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size_bytes() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    if (!error_.ok()) return error_;
    std::memset(out.data(), 0, out.size());
    if (offset < bytes_.size()) {
      bytes_.copy(out.data(), out.size(), offset);
    }
    return absl::OkStatus();
  }

  std::string name_ = "run.h5@12";
  std::string bytes_;
  absl::Status error_;
};

// A file with one group `g` in it, of the newest format or the oldest.
std::string MakeFile(H5F_libver_t oldest) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("source_driver_test." + std::to_string(getpid()) + ".h5");
  const Handle fapl(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_libver_bounds(fapl.get(), oldest, H5F_LIBVER_LATEST);
  {
    const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl.get()));
    const Handle group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return bytes;
}

class SourceDriverTest : public testing::Test {
 protected:
  SourceDriverTest() { EXPECT_TRUE(StartLibrary().ok()); }
};

TEST_F(SourceDriverTest, HdfReadsFromTheSource) {
  for (const H5F_libver_t oldest : {H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST}) {
    StringSource source(MakeFile(oldest));
    auto file = SourceFile::Open(source, nullptr);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_GT(H5Lexists(file->id(), "g", H5P_DEFAULT), 0);
    EXPECT_LT(H5Gcreate2(file->id(), "h", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), 0);
  }
}

TEST_F(SourceDriverTest, TheFlagsOfAWriterAreNotSeen) {
  StringSource source(MakeFile(H5F_LIBVER_LATEST));
  ASSERT_EQ(source.bytes_[8], 3);
  // Only the flags: then the checksum is wrong as well, and is made right.
  source.bytes_[11] = 5;
  auto file = SourceFile::Open(source, nullptr);
  EXPECT_TRUE(file.ok()) << file.status();
}

TEST_F(SourceDriverTest, TheSourcesOwnErrorComesBack) {
  StringSource source(MakeFile(H5F_LIBVER_LATEST));
  source.error_ = absl::DataLossError("read page 0 of run.h5@12: checksum");
  auto file = SourceFile::Open(source, nullptr);
  EXPECT_TRUE(absl::IsDataLoss(file.status())) << file.status();
}

TEST_F(SourceDriverTest, WhatIsNoFileIsNamed) {
  StringSource source(std::string(4096, 'x'));
  auto file = SourceFile::Open(source, nullptr);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()), testing::HasSubstr("open run.h5@12"));
}

}  // namespace
}  // namespace h5mirror::hdf5
