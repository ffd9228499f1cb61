#include "hdf5/open_check.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hdf5/handle.h"

namespace h5mirror::hdf5 {
namespace {

using ::testing::HasSubstr;

class StringSource final : public ByteSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size_bytes() const override { return bytes_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    std::memset(out.data(), 0, out.size());
    if (offset < bytes_.size()) bytes_.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  }
  std::string& bytes() { return bytes_; }

 private:
  const std::string name_ = "run.h5@12";
  std::string bytes_;
};

// A group with an attribute, and a dataset in chunks in it.
std::string MakeFile() {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("open_check_test." + std::to_string(getpid()) + ".h5");
  {
    const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Handle group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hsize_t dims[] = {1000}, chunk[] = {10};
    const Handle space(H5Screate_simple(1, dims, nullptr));
    const Handle plist(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(plist.get(), 1, chunk);
    const Handle attribute(
        H5Acreate2(group.get(), "numbers", H5T_NATIVE_INT, space.get(), H5P_DEFAULT, H5P_DEFAULT));
    const std::vector<int> values(1000, 7);
    H5Awrite(attribute.get(), H5T_NATIVE_INT, values.data());
    const Handle dataset(H5Dcreate2(group.get(), "chunks", H5T_NATIVE_INT, space.get(), H5P_DEFAULT,
                                    plist.get(), H5P_DEFAULT));
    H5Dwrite(dataset.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return bytes;
}

class OpenCheckTest : public testing::Test {
 protected:
  OpenCheckTest() { EXPECT_TRUE(StartLibrary().ok()); }

  // Spoils each place where `signature` stands.
  static void Spoil(std::string& bytes, const std::string& signature) {
    size_t at = bytes.find(signature);
    ASSERT_NE(at, std::string::npos);
    for (; at != std::string::npos; at = bytes.find(signature, at)) bytes[at] = '?';
  }
};

TEST_F(OpenCheckTest, AllObjectsOfAGoodFileOpen) {
  StringSource source(MakeFile());
  const auto opened = OpenAllObjects(source);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->objects, 3u);  // The root, the group, the dataset.
  EXPECT_EQ(opened->attributes, 1u);
}

TEST_F(OpenCheckTest, WhatIsNoFileIsNamed) {
  StringSource source(std::string(4096, 'x'));
  EXPECT_THAT(std::string(OpenAllObjects(source).status().message()), HasSubstr("run.h5@12"));
}

TEST_F(OpenCheckTest, ABrokenIndexOfChunksOrOfLinksIsFound) {
  for (const char* signature : {"TREE", "SNOD", "HEAP"}) {
    StringSource source(MakeFile());
    Spoil(source.bytes(), signature);
    EXPECT_TRUE(absl::IsInternal(OpenAllObjects(source).status())) << signature;
  }
}

}  // namespace
}  // namespace h5mirror::hdf5
