#include "server/settings/root_fencing.h"

#include <linux/magic.h>

#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

TEST(RootFencingTest, SharedFilesystemsAreKnownByName) {
  EXPECT_EQ(SharedFileSystemName(NFS_SUPER_MAGIC), "NFS");
  EXPECT_EQ(SharedFileSystemName(0x00C36400), "a mounted CephFS");
  EXPECT_EQ(SharedFileSystemName(0x0BD00BD0), "Lustre");
  EXPECT_EQ(SharedFileSystemName(0x47504653), "GPFS");
  EXPECT_EQ(SharedFileSystemName(0xFE534D42), "SMB");
}

TEST(RootFencingTest, FilesystemsOfOneMachineAreNone) {
  constexpr uint64_t kLocal[] = {EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC,     XFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, FUSE_SUPER_MAGIC};
  for (const uint64_t type : kLocal) {
    EXPECT_EQ(SharedFileSystemName(type), "") << type;
  }
}

TEST(RootFencingTest, ARootThatCannotBeAskedIsLeftToItsOpen) {
  Config config;
  config.root = "/no/such/directory";
  EXPECT_TRUE(CheckRootFencing(config).ok());
  config.root = "cephfs:/h5";
  EXPECT_TRUE(CheckRootFencing(config).ok()) << "Ceph fences by itself";
}

}  // namespace
}  // namespace h5mirror::server
