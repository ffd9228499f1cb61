#include "server/cluster/store_host.h"

#include <algorithm>
#include <string>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/testing/fake_ownership.h"

namespace h5mirror::server {
namespace {

TEST(StoreHostTest, ThreadsThatHaveEndedAreJoinedAtTheNextOpen) {
  FakeOwnership ownership;
  ClusterStore store(ownership);
  StoreHost host(
      store,
      [](const std::string&) -> absl::StatusOr<OpenedStore> {
        return absl::NotFoundError("no such directory");
      },
      absl::Seconds(1));
  // As a cell whose directory is missing: one open after the other, for ever. Each thread ends soon
  // after it has told of its end, so a few may be left.
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    absl::Notification done;
    host.Open("x", 1, cluster::Recovery::kNone, [&](const absl::Status& status) {
      EXPECT_TRUE(absl::IsNotFound(status));
      done.Notify();
    });
    done.WaitForNotification();
    most = std::max(most, host.thread_count());
  }
  EXPECT_LT(most, 100u);
  host.AwaitAll();
  EXPECT_EQ(host.thread_count(), 0u);
}

}  // namespace
}  // namespace h5mirror::server
