#include "base/errno_status.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

TEST(ErrnoStatusTest, MessageSaysWhatWasTriedAndWhy) {
  EXPECT_EQ(ErrnoToStatus(ENOENT, "open /data/run7.h5"),
            absl::NotFoundError("open /data/run7.h5: No such file or directory"));
}

TEST(ErrnoStatusTest, FullDiskAndQuotaAreExhaustion) {
  EXPECT_TRUE(absl::IsResourceExhausted(ErrnoToStatus(ENOSPC, "write")));
  EXPECT_TRUE(absl::IsResourceExhausted(ErrnoToStatus(EDQUOT, "write")));
}

TEST(ErrnoStatusTest, ReadOnlyFilesystemIsAPermission) {
  EXPECT_TRUE(absl::IsPermissionDenied(ErrnoToStatus(EROFS, "write")));
  EXPECT_TRUE(absl::IsPermissionDenied(ErrnoToStatus(EACCES, "write")));
}

TEST(ErrnoStatusTest, DeviceErrorsAreNotWorthARetryAndBusyOnesAre) {
  EXPECT_TRUE(absl::IsInternal(ErrnoToStatus(EIO, "read")));
  EXPECT_TRUE(absl::IsUnavailable(ErrnoToStatus(EBUSY, "open")));
}

}  // namespace
}  // namespace h5mirror
