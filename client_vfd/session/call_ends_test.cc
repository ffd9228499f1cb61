#include "client_vfd/session/call_ends.h"

#include "gtest/gtest.h"
#include "rpc/status.h"

namespace h5mirror::vfd {
namespace {

TEST(CallEndsTest, AStreamThatItsServerCancelsIsCutShort) {
  for (const absl::Status& ended :
       {rpc::FromServer(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED")),
        absl::UnavailableError("Socket closed"), absl::DeadlineExceededError("no answer"),
        rpc::ElsewhereError({"node-b:7447", "beam", 2})}) {
    EXPECT_TRUE(IsCutShort(ended)) << ended;
  }
  EXPECT_FALSE(IsCutShort(absl::OkStatus()));
  EXPECT_FALSE(IsCutShort(absl::NotFoundError("none")));
}

TEST(CallEndsTest, AServerThatNamesAnotherOneIsThere) {
  const absl::Status elsewhere = rpc::ElsewhereError({"node-b:7447", "beam", 2});
  EXPECT_FALSE(IsAway(elsewhere));
  EXPECT_FALSE(IsPassing(elsewhere));
  EXPECT_TRUE(IsPassing(absl::ResourceExhaustedError("busy")));
}

TEST(CallEndsTest, AUserWithoutARightIsRefused) {
  for (const absl::Status& refused :
       {absl::UnauthenticatedError(""), absl::PermissionDeniedError(""),
        absl::NotFoundError("no such file")}) {
    EXPECT_TRUE(RefusesUser(refused)) << refused;
  }
  EXPECT_FALSE(RefusesUser(absl::DeadlineExceededError("no answer")));
  EXPECT_FALSE(RefusesUser(absl::OkStatus()));
}

}  // namespace
}  // namespace h5mirror::vfd
