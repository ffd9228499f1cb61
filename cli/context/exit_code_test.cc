#include "cli/context/exit_code.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

TEST(ExitCodeTest, CodesMeanOneThing) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), 6);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError("")), 8);
}

}  // namespace
}  // namespace h5mirror::tools
