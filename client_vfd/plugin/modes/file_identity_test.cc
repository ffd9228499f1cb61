#include "client_vfd/plugin/modes/file_identity.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Kind = FileIdentity::Kind;

FileIdentity Local(dev_t device, ino_t inode, const void* store = nullptr) {
  return {Kind::kLocal, device, inode, store, "", ""};
}
FileIdentity Reader(const char* version) { return {Kind::kReader, 0, 0, nullptr, "", version}; }
FileIdentity Remote(const char* name, const char* version = "") {
  return {Kind::kRemote, 0, 0, nullptr, name, version};
}

// Both ways round.
int Both(const FileIdentity& a, const FileIdentity& b) {
  const int order = Compare(a, b);
  EXPECT_EQ(order<0, Compare(b, a)> 0);
  EXPECT_EQ(order == 0, Compare(b, a) == 0);
  return order;
}

TEST(FileIdentityTest, LocalFilesAreOneByDeviceAndInode) {
  EXPECT_EQ(Both(Local(1, 2), Local(1, 2)), 0);
  EXPECT_LT(Both(Local(1, 2), Local(1, 3)), 0);
  EXPECT_LT(Both(Local(1, 9), Local(2, 3)), 0);
}

TEST(FileIdentityTest, EmbeddedFilesAreOneByTheirStore) {
  const int stores[2] = {};
  EXPECT_EQ(Both(Local(1, 2, &stores[0]), Local(0, 0, &stores[0])), 0) << "it was new at the open";
  EXPECT_LT(Both(Local(1, 2, &stores[0]), Local(1, 2, &stores[1])), 0);
  EXPECT_EQ(Both(Local(1, 2, &stores[0]), Local(1, 2)), 0) << "read as a plain file";
}

TEST(FileIdentityTest, ReadersAreOneByWhatTheyRead) {
  EXPECT_EQ(Both(Reader("a"), Reader("a")), 0);
  EXPECT_LT(Both(Reader("a"), Reader("b")), 0);
}

TEST(FileIdentityTest, ARemoteFileThatIsWrittenIsOneForAllOpens) {
  EXPECT_EQ(Both(Remote("s\na"), Remote("s\na")), 0);
  EXPECT_EQ(Both(Remote("s\na"), Remote("s\na", "cut 3")), 0);
  EXPECT_LT(Both(Remote("s\na"), Remote("s\nb")), 0);
  EXPECT_EQ(Both(Remote("s\na", "cut 3"), Remote("s\na", "cut 3")), 0);
  EXPECT_LT(Both(Remote("s\na", "cut 3"), Remote("s\na", "cut 4")), 0);
}

TEST(FileIdentityTest, KindsAreNeverOne) {
  EXPECT_LT(Both(Local(0, 0), Reader("")), 0);
  EXPECT_LT(Both(Local(0, 0), Remote("")), 0);
  EXPECT_LT(Both(Reader(""), Remote("", "")), 0);
}

}  // namespace
}  // namespace h5mirror::vfd
