#include "client_vfd/session/call_ends.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(CallEndsTest, AServerThatCancelsACallIsLost) {
  const absl::Status ended = AsLostServer(absl::CancelledError("node-a:7447: CANCELLED"));
  EXPECT_EQ(ended, absl::UnavailableError("node-a:7447: CANCELLED"));
  EXPECT_TRUE(IsAway(ended));
  EXPECT_EQ(AsLostServer(absl::NotFoundError("none")), absl::NotFoundError("none"));
  EXPECT_EQ(AsLostServer(absl::OkStatus()), absl::OkStatus());
}

// AsLostServer() is asked only behind it, where kUnavailable has the call made again.
TEST(CallEndsTest, AStreamThatItsServerCancelsIsCutShort) {
  for (const absl::Status& ended :
       {absl::CancelledError("CANCELLED"), absl::UnavailableError("Socket closed"),
        absl::DeadlineExceededError("no answer"),
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
