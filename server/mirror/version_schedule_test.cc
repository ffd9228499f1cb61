#include "server/mirror/version_schedule.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

store::CutRequest RequestOfGroup(store::BarrierKind kind) {
  store::CutRequest request;
  request.kind = kind;
  request.group = store::GroupCut{.id = {4}, .number = 1, .members = {"m.h5"}};
  return request;
}

TEST(VersionScheduleTest, AFlushOfAGroupIsACommit) {
  VersionSchedule schedule;
  store::CutRequest request = RequestOfGroup(store::BarrierKind::kTick);
  schedule.Apply(kNow, /*closes=*/false, request);
  EXPECT_EQ(request.kind, store::BarrierKind::kCommit);
}

TEST(VersionScheduleTest, ACloseOfAGroupIsNotPutOff) {
  v1::OpenSession open;
  open.mutable_version_min_interval()->set_seconds(3600);
  auto schedule = VersionSchedule::Make(open);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  schedule->Newest(1, kNow);
  store::CutRequest alone;
  alone.kind = store::BarrierKind::kCommit;
  schedule->Apply(kNow + absl::Seconds(1), /*closes=*/true, alone);
  EXPECT_EQ(alone.kind, store::BarrierKind::kSync);
  store::CutRequest request = RequestOfGroup(store::BarrierKind::kCommit);
  schedule->Apply(kNow + absl::Seconds(1), /*closes=*/true, request);
  EXPECT_EQ(request.kind, store::BarrierKind::kCommit);
  EXPECT_EQ(request.version_at, absl::InfiniteFuture());
}

}  // namespace
}  // namespace h5mirror::server
