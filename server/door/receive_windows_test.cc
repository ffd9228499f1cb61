#include "server/door/receive_windows.h"

#include <gtest/gtest.h>

#include "grpcpp/grpcpp.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kBudgetBytes = uint64_t{64} << 20;

TEST(ReceiveWindowsTest, OneSessionsWindowDoublesUpToTheLargest) {
  uint32_t window = NextWindowBytes(65535, kBudgetBytes, 1);
  EXPECT_EQ(window, kFirstWindowBytes);
  window = NextWindowBytes(window, kBudgetBytes, 1);
  EXPECT_EQ(window, 2 * kFirstWindowBytes);
  for (int i = 0; i < 20; ++i) window = NextWindowBytes(window, kBudgetBytes, 1);
  EXPECT_EQ(window, kWindowBytesMax);
}

TEST(ReceiveWindowsTest, ManySessionsShareTheBudget) {
  EXPECT_EQ(NextWindowBytes(kWindowBytesMax, kBudgetBytes, 64), 1u << 20);
  EXPECT_EQ(NextWindowBytes(kWindowBytesMax, kBudgetBytes, 1 << 20), kWindowBytesMin);
  EXPECT_EQ(NextWindowBytes(kWindowBytesMax, kBudgetBytes, 0), kWindowBytesMax);
}

// This test fails when the project moves to a gRPC whose windows need another bound.
TEST(ReceiveWindowsTest, ThisGrpcLetsItsWindowsBeBounded) {
  EXPECT_TRUE(BoundProbedWindows(kBudgetBytes)) << grpc::Version();
}

}  // namespace
}  // namespace h5mirror::server
