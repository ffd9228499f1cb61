#include "ceph/file_size_max.h"

#include "gtest/gtest.h"

namespace h5mirror::ceph {
namespace {

// As Ceph 16 answers, cut down.
constexpr char kDump[] = R"({"epoch": 5, "default_fscid": 1, "filesystems": [
  {"mdsmap": {"fs_name": "a", "max_file_size": 1099511627776}, "id": 1},
  {"mdsmap": {"fs_name": "b", "max_file_size": 4398046511104}, "id": 2}]})";

TEST(FileSizeMaxTest, ItIsThatOfTheFilesystemThatIsMounted) {
  EXPECT_EQ(FindFileSizeMax(kDump, 1), uint64_t{1} << 40);
  EXPECT_EQ(FindFileSizeMax(kDump, 2), uint64_t{1} << 42);
  EXPECT_EQ(FindFileSizeMax(kDump, 3), std::nullopt);
}

TEST(FileSizeMaxTest, NoNumberMeansTheDefault) {
  EXPECT_EQ(FindFileSizeMax(kDump, 0), uint64_t{1} << 40);
  EXPECT_EQ(FindFileSizeMax(kDump, -1), uint64_t{1} << 40);
  EXPECT_EQ(FindFileSizeMax(R"({"filesystems": [{"id": 1, "mdsmap": {"max_file_size": 1}}]})", 0),
            std::nullopt);
}

TEST(FileSizeMaxTest, OtherAnswersTellNothing) {
  for (const char* answer :
       {"", "{", "[]", "7", R"({"filesystems": 1})", R"({"filesystems": [1]})",
        R"({"filesystems": [{"id": 1}]})", R"({"filesystems": [{"id": 1, "mdsmap": []}]})",
        R"({"filesystems": [{"id": 1, "mdsmap": {"max_file_size": "1"}}]})",
        R"({"filesystems": [{"id": 1, "mdsmap": {"max_file_size": -1}}]})"}) {
    EXPECT_EQ(FindFileSizeMax(answer, 1), std::nullopt) << answer;
  }
}

}  // namespace
}  // namespace h5mirror::ceph
