#include "base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(int value) {
  if (value < 0) return absl::OutOfRangeError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<int> first, Make(a));
  H5M_ASSIGN_OR_RETURN(const auto second, Make(b));
  return *first + *second;
}

absl::Status Check(int value) {
  H5M_RETURN_IF_ERROR(Make(value).status());
  return absl::AlreadyExistsError("reached the end");
}

TEST(StatusMacrosTest, AssignMovesTheValueOut) { EXPECT_EQ(Sum(2, 3).value(), 5); }

TEST(StatusMacrosTest, FirstErrorIsReturned) {
  EXPECT_EQ(Sum(-1, 3).status(), absl::OutOfRangeError("negative"));
  EXPECT_EQ(Check(-1), absl::OutOfRangeError("negative"));
  EXPECT_TRUE(absl::IsAlreadyExists(Check(1)));
}

}  // namespace
}  // namespace h5mirror
