#include "ceph/fence.h"

#include <errno.h>

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::ceph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FenceTest, NothingIsStoppedBeforeTheFirstSign) {
  const Fence fence(nullptr);
  EXPECT_TRUE(fence.Check().ok());
  EXPECT_FALSE(fence.is_tripped());
}

TEST(FenceTest, TheFirstReasonStaysAndIsToldOnce) {
  std::vector<std::string> told;
  Fence fence([&told](const std::string& why) { told.push_back(why); });
  fence.Trip("the first").IgnoreError();
  const absl::Status second = fence.Trip("the second");
  EXPECT_THAT(told, ElementsAre("the first"));
  EXPECT_TRUE(absl::IsInternal(second)) << second;
  EXPECT_THAT(std::string(fence.Check().message()), HasSubstr("the first"));
}

TEST(FenceTest, AListenerMayLookAtTheFence) {
  Fence* self = nullptr;
  absl::Status seen;
  Fence fence([&](const std::string&) { seen = self->Check(); });
  self = &fence;
  fence.Trip("gone").IgnoreError();
  EXPECT_TRUE(absl::IsInternal(seen)) << seen;
}

TEST(FenceTest, OnlyErrorsOfALostSessionFence) {
  for (const int error : {ESHUTDOWN, ENOTCONN, EBADF}) EXPECT_TRUE(MeansFenced(error)) << error;
  for (const int error : {ENOENT, ENOSPC, EIO, ETIMEDOUT, EAGAIN, EPERM, EINTR, ESTALE}) {
    EXPECT_FALSE(MeansFenced(error)) << error;
  }
}

}  // namespace
}  // namespace h5mirror::ceph
