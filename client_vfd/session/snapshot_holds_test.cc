#include "client_vfd/session/snapshot_holds.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

std::shared_ptr<SnapshotHolds> Make() {
  return SnapshotHolds::MakeFor(ReaderServer(), absl::Seconds(1));
}

// Else the child, where the thread is no more, would wait for it for ever.
TEST(SnapshotHoldsTest, NoThreadIsAmongTheRootsDuringAFork) {
  SnapshotHolds::PrepareFork();
  std::atomic<int> done = 0;
  std::thread other([&] {
    const std::shared_ptr<SnapshotHolds> holds = Make();
    ++done;
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(done, 0);
  SnapshotHolds::AfterFork();
  other.join();
  EXPECT_EQ(done, 1);
}

TEST(SnapshotHoldsTest, ARootIsSharedByItsReadersAlsoAfterAFork) {
  const std::shared_ptr<SnapshotHolds> root = Make();
  SnapshotHolds::PrepareFork();
  SnapshotHolds::AfterFork();
  EXPECT_EQ(SnapshotHolds::Find(root->id(), ReaderServer(), absl::Seconds(1)), root);
}

}  // namespace
}  // namespace h5mirror::vfd
