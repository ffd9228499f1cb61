#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace h5mirror::server {
namespace {

void TouchAll(Metrics& metrics) {
  metrics.SessionOpened();
  metrics.SessionEnded(absl::StatusCode::kOk);
  metrics.CutMade(store::BarrierKind::kTick);
  metrics.CutDurable(store::BarrierKind::kCommit, absl::Milliseconds(3));
  metrics.VersionsDropped("retention", 1);
  metrics.SetLimitsReached("calls", 1);
  metrics.RequestDone("GetFile", absl::StatusCode::kNotFound, absl::Milliseconds(1));
}

TEST(MetricsTest, EveryMetricIsInTheOperatorsTable) {
  Metrics metrics(1);
  TouchAll(metrics);
  std::ifstream stream(H5M_METRICS_MD);
  ASSERT_TRUE(stream) << H5M_METRICS_MD;
  std::ostringstream text;
  text << stream.rdbuf();
  const std::vector<std::string> names = metrics.Names();
  EXPECT_GE(names.size(), 14u);
  for (const std::string& name : names) {
    EXPECT_NE(text.str().find("| `" + name + "` |"), std::string::npos) << name;
  }
}

TEST(MetricsTest, TableNamesNothingThatIsNotThere) {
  Metrics metrics(1);
  TouchAll(metrics);
  const std::vector<std::string> names = metrics.Names();
  std::ifstream stream(H5M_METRICS_MD);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("| `h5mirror_server_", 0) != 0) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

TEST(MetricsTest, AreServedOnAFreePort) {
  Metrics metrics(1);
  ASSERT_TRUE(metrics.Serve("127.0.0.1:0").ok());
  EXPECT_GT(metrics.port(), 0);
}

}  // namespace
}  // namespace h5mirror::server
