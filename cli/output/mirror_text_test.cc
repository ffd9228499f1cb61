#include "cli/output/mirror_text.h"

#include "cli/output/text.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

v1::MirrorStatus Status(v1::MirrorState state) {
  v1::MirrorStatus status;
  status.set_state(state);
  *status.mutable_since_time() = ToProto(absl::FromUnixSeconds(1793714400));
  return status;
}

std::string Line(const v1::MirrorStatus& status) { return MirrorLine(status, absl::UTCTimeZone()); }

TEST(MirrorTextTest, ResyncSaysHowFar) {
  v1::MirrorStatus status = Status(v1::MIRROR_STATE_RESYNCING);
  status.set_resync_total_bytes(33 << 20);
  status.set_resync_sent_bytes(12 << 20);
  EXPECT_EQ(Line(status), "resyncing 36 %, 12 MiB of 33 MiB, since 2026-11-03 14:00:00 UTC");
}

TEST(MirrorTextTest, NearlyAllIsNotAll) {
  v1::MirrorStatus status = Status(v1::MIRROR_STATE_RESYNCING);
  status.set_resync_total_bytes(1000);
  status.set_resync_sent_bytes(999);
  EXPECT_NE(Line(status).find(" 99 %"), std::string::npos) << Line(status);
  status.set_resync_total_bytes(-1);
  EXPECT_NE(Line(status).find(" 0 %"), std::string::npos)
      << "what a stranger sent: " << Line(status);
}

TEST(MirrorTextTest, ConnectedSaysWhatIsToCome) {
  v1::MirrorStatus status = Status(v1::MIRROR_STATE_CONNECTED);
  EXPECT_EQ(Line(status), "connected since 2026-11-03 14:00:00 UTC");
  status.set_pending_cuts(9);
  EXPECT_EQ(Line(status), "connected since 2026-11-03 14:00:00 UTC, 9 cuts not yet durable")
      << "all that the writer has is there";
  status.set_pending_cuts(1);
  status.set_pending_bytes(4096);
  EXPECT_EQ(Line(status),
            "connected since 2026-11-03 14:00:00 UTC, 4 KiB to come, 1 cut not yet durable");
}

TEST(MirrorTextTest, DegradedSaysWhy) {
  v1::MirrorStatus status = Status(v1::MIRROR_STATE_DEGRADED);
  status.set_detail("gone\n");
  EXPECT_EQ(Line(status), "degraded since 2026-11-03 14:00:00 UTC: gone\\x0a");
}

TEST(MirrorTextTest, UnknownIsNoLine) { EXPECT_EQ(Line(v1::MirrorStatus()), ""); }

}  // namespace
}  // namespace h5mirror::tools
