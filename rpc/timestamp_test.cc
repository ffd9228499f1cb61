#include "rpc/timestamp.h"

#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

google::protobuf::Timestamp Of(int64_t seconds, int32_t nanos) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(nanos);
  return timestamp;
}

TEST(TimestampTest, TimesComeBackToTheNanosecondAlsoFromBefore1970) {
  for (const int64_t nanos : {int64_t{1}, int64_t{1'793'720'000'250'000'001}, int64_t{-1}}) {
    const absl::Time time = absl::FromUnixNanos(nanos);
    EXPECT_EQ(FromProto(ToProto(time)), time) << nanos;
  }
  EXPECT_EQ(ToProto(absl::FromUnixNanos(-1)).nanos(), 999'999'999) << "never negative";
}

TEST(TimestampTest, WhereThereIsNoneTheTimeIsInfinitelyPast) {
  EXPECT_EQ(FromProto(Of(0, 0)), absl::InfinitePast());
  EXPECT_EQ(FromProto(Of(5, -1)), absl::InfinitePast());
  EXPECT_EQ(FromProto(Of(5, 1'000'000'000)), absl::InfinitePast());
  EXPECT_EQ(FromProto(Of(253'402'300'800, 0)), absl::InfinitePast());
  EXPECT_EQ(FromProto(Of(-62'135'596'801, 0)), absl::InfinitePast());
  EXPECT_EQ(FromProto(Of(253'402'300'799, 0)), absl::FromUnixSeconds(253'402'300'799));
}

}  // namespace
}  // namespace h5mirror::rpc
