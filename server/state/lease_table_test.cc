#include "server/state/lease_table.h"
#include "base/testing/fake_clock.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

class LeaseTableTest : public ::testing::Test {
 protected:
  LeaseTable::ClaimResult Claim(uint8_t session) {
    LeaseHolder holder;
    holder.session_id[0] = session;
    holder.claimed_user = "user" + std::to_string(session);
    return table_.Claim("x.h5", holder, [this](const absl::Status& status) { revoked_ = status; });
  }

  FakeClock clock_;
  LeaseTable table_{clock_, absl::Seconds(10)};
  absl::Status revoked_;
};

TEST_F(LeaseTableTest, SecondWriterIsToldWhoHasIt) {
  ASSERT_NE(Claim(1).lease, 0u);
  const auto second = Claim(2);
  EXPECT_EQ(second.lease, 0u);
  ASSERT_TRUE(second.holder.has_value());
  EXPECT_THAT(second.holder->Describe(), HasSubstr("user1"));
  EXPECT_TRUE(revoked_.ok());
}

TEST_F(LeaseTableTest, ReleasedLeaseIsFreeAtOnce) {
  table_.Release("x.h5", Claim(1).lease);
  EXPECT_NE(Claim(2).lease, 0u);
}

TEST_F(LeaseTableTest, ReleaseOfALostLeaseTouchesNobody) {
  const auto first = Claim(1);
  clock_.Advance(absl::Seconds(11));
  ASSERT_NE(Claim(2).lease, 0u);
  table_.Release("x.h5", first.lease);
  EXPECT_EQ(Claim(3).lease, 0u);
}

TEST_F(LeaseTableTest, SameSessionTakesOverFromItsBrokenStream) {
  const auto first = Claim(1);
  const auto second = Claim(1);
  EXPECT_NE(second.lease, 0u);
  EXPECT_NE(second.lease, first.lease);
  EXPECT_TRUE(absl::IsAborted(revoked_));
}

TEST_F(LeaseTableTest, RenewedLeaseDoesNotExpire) {
  const auto first = Claim(1);
  clock_.Advance(absl::Seconds(9));
  table_.Renew("x.h5", first.lease);
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(Claim(2).lease, 0u);
  EXPECT_EQ(table_.RevokeExpired(), 0);
}

TEST_F(LeaseTableTest, SilentWriterLosesItsLease) {
  Claim(1);
  clock_.Advance(absl::Seconds(11));
  EXPECT_EQ(table_.RevokeExpired(), 1);
  EXPECT_THAT(std::string(revoked_.message()), HasSubstr("10 s"));
  EXPECT_FALSE(table_.HolderOf("x.h5").has_value());
}

TEST_F(LeaseTableTest, SeizedLeaseDoesNotExpireBeforeItIsReleased) {
  Claim(1);
  LeaseHolder admin;
  admin.session_id[0] = 9;
  const LeaseId lease = table_.Seize("x.h5", admin, "test");
  EXPECT_TRUE(absl::IsAborted(revoked_));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(table_.RevokeExpired(), 0);
  EXPECT_EQ(Claim(2).lease, 0u);
  table_.Release("x.h5", lease);
  EXPECT_NE(Claim(2).lease, 0u);
}

TEST_F(LeaseTableTest, WaitsForTheNamedHolderOnly) {
  const LeaseTable::ClaimResult first = Claim(1);
  store::SessionId holder{};
  holder[0] = 1;
  std::thread writer([&] { table_.Release("x.h5", first.lease); });
  table_.AwaitRelease("x.h5", holder, absl::Seconds(30));
  writer.join();
  EXPECT_FALSE(table_.HolderOf("x.h5").has_value());
  Claim(2);
  table_.AwaitRelease("x.h5", holder, absl::InfiniteDuration());  // Not its to give back.
  holder[0] = 2;
  table_.AwaitRelease("x.h5", holder, absl::Milliseconds(1));
  EXPECT_TRUE(table_.HolderOf("x.h5").has_value());
}

}  // namespace
}  // namespace h5mirror::server
