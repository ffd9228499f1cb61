#include "rpc/munge_token.h"

#include <atomic>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/channel.h"

namespace h5mirror::rpc {
namespace {

using ::testing::HasSubstr;

std::atomic<bool> munged_hangs{false};
std::atomic<int> questions{0};

absl::StatusOr<std::string> MakeFake(const std::string& socket) {
  ++questions;
  while (munged_hangs) absl::SleepFor(absl::Milliseconds(1));
  if (socket == "/none") return absl::UnavailableError("nobody there");
  return "MUNGE:" + (socket.empty() ? "usual" : socket) + ":";
}

TEST(MungeTokenTest, SourceNamesTheSocket) {
  EXPECT_TRUE(IsMungeSource("munge") && IsMungeSource("munge:/run/other"));
  EXPECT_FALSE(IsMungeSource("") || IsMungeSource("MUNGE:x:") || IsMungeSource("munged"));
  EXPECT_EQ(*MakeMungeTokenBy(MakeFake, "munge", absl::Seconds(30)), "MUNGE:usual:");
  EXPECT_EQ(*MakeMungeTokenBy(MakeFake, "munge:/s", absl::Seconds(30)), "MUNGE:/s:");
}

TEST(MungeTokenTest, ErrorsNameTheSetting) {
  const absl::Status status = MakeMungeTokenBy(MakeFake, "munge:/none", absl::Seconds(30)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("token = \"munge\": nobody there"));
}

TEST(MungeTokenTest, AMungedThatHangsMeetsTheDeadlineAndFourThreads) {
  munged_hangs = true;
  questions = 0;
  for (int i = 0; i < 6; ++i) {
    const absl::Status status =
        MakeMungeTokenBy(MakeFake, "munge", absl::Milliseconds(20)).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  munged_hangs = false;
  absl::StatusOr<std::string> token = absl::UnavailableError("");
  for (int i = 0; i < 3000 && !token.ok(); ++i) {
    token = MakeMungeTokenBy(MakeFake, "munge", absl::Seconds(30));
    if (!token.ok()) absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(token.ok()) << token.status();
  EXPECT_LE(questions, 5);
}

TEST(MungeTokenTest, ACredentialIsReplacedOnlyByAnother) {
  ClientOptions options;
  options.target = "here:1";
  const absl::Status refused = absl::UnauthenticatedError("used before");
  options.token = options.token_source = "secret";
  EXPECT_FALSE(RenewCredential(options, "secret", refused)) << "no other token is there";
  options.token_source = "munge:/there/is/no/such/socket";
  EXPECT_FALSE(RenewCredential(options, "secret", absl::UnavailableError("away")));
  EXPECT_FALSE(RenewCredential(options, "secret", refused)) << "munged does not answer";
  EXPECT_EQ(CredentialNow(options), "secret");
}

}  // namespace
}  // namespace h5mirror::rpc
