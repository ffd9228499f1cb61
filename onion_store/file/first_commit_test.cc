// All bytes of a first commit are direct: the cost of its checksums, and the calls that wait for
// them.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/file/apply/direct_pass.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kFrame = 1 << 20;

std::string BytesAt(uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((offset + i) * 2654435761 >> 13);
  return bytes;
}

// Writes as a sender does: frame by frame, with ends inside pages.
void WriteFrames(Writer& writer, uint64_t from, uint64_t end) {
  for (uint64_t at = from; at < end;) {
    const uint64_t length =
        std::min(at % kFrame == 0 ? kFrame - 77 : kFrame - at % kFrame, end - at);
    ASSERT_TRUE(writer.Write(at, BytesAt(at, length)).ok());
    at += length;
  }
}

std::vector<std::string> Verify(File& file) {
  std::vector<std::string> found;
  auto job = file.StartVerify({});
  EXPECT_TRUE(job.ok()) << job.status();
  for (bool is_done = !job.ok(); !is_done;) {
    const auto progress = (*job)->Step();
    EXPECT_TRUE(progress.ok()) << progress.status();
    if (!progress.ok()) break;
    is_done = progress->done;
    for (const Damage& damage : progress->found) found.push_back(damage.message);
  }
  return found;
}

TEST(FirstCommitTest, IsNotReadBack) {
  FaultEnv disk;
  CountingEnv env(disk);
  auto store = OpenStore(env, "/");
  auto file = *store->OpenOrCreateFile("x.h5", 4096);
  Writer writer(file, SessionStart::kContinue);
  for (const uint64_t end : {20 * kFrame + 5, 50 * kFrame}) {  // A first commit, and an append.
    WriteFrames(writer, writer.content().size(), end);
    ASSERT_TRUE(writer.Write(100, "a superblock").ok());
    env.counts().Clear();
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
    EXPECT_LT(env.counts().bytes, kFrame) << "up to " << end;
  }
  EXPECT_THAT(Verify(*file), testing::IsEmpty());
  EXPECT_EQ(ReadVersion(*file, 2), writer.content());
  ASSERT_TRUE(writer.End().ok());
}

// Bytes are written before the first cut; then written again in part, staged, cut off, and written
// again.
TEST(FirstCommitTest, SumsAreThoseOfTheHeadWhateverWasWrittenTwice) {
  FaultEnv env;
  auto store = OpenStore(env, "/");
  auto file = *store->OpenOrCreateFile("x.h5", 4096);
  Writer writer(file, SessionStart::kContinue);
  WriteFrames(writer, 0, 3 * kFrame);
  ASSERT_TRUE(writer.Write(9000, "in part").ok());
  ASSERT_TRUE(writer.Write(3 * kFrame + 4096, BytesAt(1, 5000)).ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(writer.Write(20'000, BytesAt(2, 10'000)).ok());  // Staged, and merged with it.
  ASSERT_TRUE(writer.Truncate(2 * kFrame + 50).ok());
  ASSERT_TRUE(writer.Write(4 * kFrame, BytesAt(3, 8192)).ok());
  ASSERT_TRUE(writer.Truncate(4 * kFrame + 4100).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.Write(4 * kFrame + 8192, BytesAt(4, 4096)).ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(writer.Write(4 * kFrame + 8200, "staged").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_THAT(Verify(*file), testing::IsEmpty());
  EXPECT_EQ(ReadVersion(*file, 2), writer.content());
  ASSERT_TRUE(writer.End().ok());
}

// A disk on which sums are not held beside the head, so that an apply must read it back.
class ReadBackTest : public testing::Test {
 protected:
  ReadBackTest() {
    env_.FailOpensOf("/run-", absl::ResourceExhaustedError("No space left on device"));
    env_.SetAfterRead([this](const std::string& name) {
      if (name != "x.h5") return;
      if (++head_reads_ == 1 && at_first_read_ != nullptr) at_first_read_();
    });
    store_ = OpenStore(env_, "/");
    file_ = *store_->OpenOrCreateFile("x.h5", 4096);
  }

  FaultEnv env_;
  std::atomic<int> head_reads_{0};
  std::function<void()> at_first_read_;  // at the first read of the head; set before there is a cut
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(ReadBackTest, ALaterCutBecomesDurableMeanwhile) {
  Writer writer(file_, SessionStart::kContinue);
  WriteFrames(writer, 0, 20 * kFrame + 3 * DirectPass::kStepBytes);
  absl::Notification is_durable;
  absl::StatusOr<FileInfo> then = absl::UnknownError("");
  at_first_read_ = [&] {
    ASSERT_TRUE(writer.Write(5, "later").ok());
    const auto cut = writer.Cut(BarrierKind::kSync, [&](const absl::StatusOr<DurableCut>& result) {
      EXPECT_TRUE(result.ok()) << result.status();
      then = file_->Info();
      is_durable.Notify();
    });
    ASSERT_TRUE(cut.ok()) << cut.status();
  };
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(is_durable.WaitForNotificationWithTimeout(absl::Seconds(60)));
  ASSERT_TRUE(then.ok()) << then.status();
  EXPECT_EQ(then->applied_cut, 0) << "it waited until the first cut was in the head";
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_THAT(Verify(*file_), testing::IsEmpty());
  ASSERT_TRUE(writer.End().ok());
}

TEST_F(ReadBackTest, AStoreThatClosesMeanwhileLeavesItToTheNextOne) {
  Writer writer(file_, SessionStart::kContinue);
  WriteFrames(writer, 0, 20 * kFrame + 3 * DirectPass::kStepBytes);
  absl::Notification begins;
  at_first_read_ = [&] {
    begins.Notify();
    // OpenFile() fails so once the store closes; soon after, the store sets the flag that stops an
    // apply.
    while (!absl::IsUnavailable(store_->OpenFile("x.h5").status()))
      absl::SleepFor(absl::Milliseconds(1));
  };
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  begins.WaitForNotification();
  ASSERT_TRUE(writer.End().ok());
  ASSERT_TRUE(store_->Close(absl::ZeroDuration()).ok());
  file_.reset();
  store_ = OpenStore(env_, "/");
  file_ = *store_->OpenFile("x.h5");
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_THAT(Verify(*file_), testing::IsEmpty());
  EXPECT_EQ(ReadVersion(*file_, 1), writer.content());
}

}  // namespace
}  // namespace h5mirror::store
