#include "rpc/elsewhere.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/status.h"

namespace h5mirror::rpc {
namespace {

using ::testing::HasSubstr;

const Elsewhere kThere = {"node7:7447", "lab/a", 12};

TEST(ElsewhereTest, TheOwnersAddressPassesTheWire) {
  const absl::Status status = FromGrpc(ToGrpc(ElsewhereError(kThere)));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node7:7447"));
  ASSERT_TRUE(ElsewhereOf(status).has_value());
  EXPECT_EQ(*ElsewhereOf(status), kThere);
}

TEST(ElsewhereTest, ACellWithoutAServerPassesTheWire) {
  const absl::Status status = FromGrpc(ToGrpc(NobodyServesError("it is being opened")));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(IsNobodyServes(status));
  EXPECT_EQ(ElsewhereOf(status), std::nullopt);
  EXPECT_FALSE(IsNobodyServes(ElsewhereError(kThere)));
  EXPECT_FALSE(IsNobodyServes(absl::UnavailableError("Connection refused")));
}

TEST(ElsewhereTest, TheOwnersWordThatItLacksAFilePassesTheWire) {
  const absl::Status missing = absl::NotFoundError("no file lab/a/x.h5");
  const absl::Status status = FromGrpc(ToGrpc(OwnerLacksIt(missing, "lab/a", 12)));
  EXPECT_TRUE(IsOwnerLacksIt(status));
  EXPECT_EQ(status.message(), missing.message());
  EXPECT_EQ(ElsewhereOf(status), std::nullopt);
  EXPECT_FALSE(IsNobodyServes(status));
  EXPECT_FALSE(IsOwnerLacksIt(FromGrpc(ToGrpc(missing))));
  EXPECT_FALSE(IsOwnerLacksIt(NobodyServesError("it is being opened")));
}

TEST(ElsewhereTest, OtherStatusesNameNoServer) {
  EXPECT_EQ(ElsewhereOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ElsewhereOf(FromGrpc(ToGrpc(absl::UnavailableError("stopping")))), std::nullopt);
  EXPECT_EQ(ToGrpc(absl::UnavailableError("stopping")).error_details(), "");
}

TEST(ElsewhereTest, DetailsOfStrangersAreIgnored) {
  for (const char* details : {"\xff\xff", "\x1a\x02\x0a\x00", "text"}) {
    const absl::Status status =
        FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "away", details));
    EXPECT_EQ(status.message(), "away");
    EXPECT_EQ(ElsewhereOf(status), std::nullopt);
  }
}

TEST(ElsewhereTest, AChangeThatWasMadeSendsNobodyOn) {
  for (const absl::Status& status :
       {ElsewhereError({"b:7447", "p", 3}), NobodyServesError("it is being handed over")}) {
    const absl::Status told = WithoutElsewhere(status);
    EXPECT_FALSE(ElsewhereOf(told).has_value());
    EXPECT_FALSE(IsNobodyServes(told));
    EXPECT_EQ(told, absl::UnavailableError(status.message()));
  }
}

}  // namespace
}  // namespace h5mirror::rpc
