#include "client_vfd/session/snapshot_pins.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

std::shared_ptr<SnapshotPins> Make() {
  return SnapshotPins::MakeFor(ReaderServer(), absl::Seconds(1));
}

// Else the child, where the thread is no more, would wait for it for ever.
TEST(SnapshotPinsTest, NoThreadIsAmongTheRootsDuringAFork) {
  SnapshotPins::PrepareFork();
  std::atomic<int> done = 0;
  std::thread other([&] {
    const std::shared_ptr<SnapshotPins> pins = Make();
    ++done;
  });
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(done, 0);
  SnapshotPins::AfterFork();
  other.join();
  EXPECT_EQ(done, 1);
}

TEST(SnapshotPinsTest, ARootIsSharedByItsReadersAlsoAfterAFork) {
  const std::shared_ptr<SnapshotPins> root = Make();
  SnapshotPins::PrepareFork();
  SnapshotPins::AfterFork();
  EXPECT_EQ(SnapshotPins::Find(root->id(), ReaderServer(), absl::Seconds(1)), root);
}

}  // namespace
}  // namespace h5mirror::vfd
