// A head on which every read hangs: a slow disk, or a cluster's file system on which a stopped
// program has the head open. Only that file waits.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class FrozenHeadTest : public testing::Test {
 protected:
  FrozenHeadTest() {
    StoreOptions options;
    options.background_threads = 2;
    store_ = OpenStore(env_, "/", options);
  }
  ~FrozenHeadTest() override { Thaw(); }
  void Thaw() {
    if (!thawed_.HasBeenNotified()) thawed_.Notify();
  }
  // Makes a file with a version and a later cut: so the next cut becomes durable without a read of
  // the head.
  std::unique_ptr<Writer> NewWriter(const std::string& name) {
    auto writer =
        std::make_unique<Writer>(*store_->OpenOrCreateFile(name, 0), SessionStart::kContinue);
    for (const BarrierKind kind : {BarrierKind::kCommit, BarrierKind::kSync}) {
      EXPECT_TRUE(writer->Write(0, std::string(9000, kind == BarrierKind::kSync ? 'b' : 'a')).ok());
      EXPECT_TRUE(writer->CutDurably(kind).ok());
      EXPECT_TRUE(writer->file().WaitApplied(absl::Seconds(60)).ok());
    }
    return writer;
  }

  FaultEnv env_;
  absl::Notification thawed_;
  std::unique_ptr<Store> store_;
};

TEST_F(FrozenHeadTest, OtherFilesBecomeDurableAndAreApplied) {
  std::vector<std::unique_ptr<Writer>> frozen;
  for (const char* name : {"frozen-1.h5", "frozen-2.h5", "frozen-3.h5"}) {
    frozen.push_back(NewWriter(name));
  }
  auto other = NewWriter("other.h5");
  env_.SetAfterRead([this](const std::string& name) {
    if (absl::StartsWith(name, "frozen-") && absl::EndsWith(name, ".h5")) {
      thawed_.WaitForNotification();
    }
  });
  for (const auto& writer : frozen) {
    ASSERT_TRUE(writer->Write(5000, "c").ok());
    ASSERT_TRUE(writer->CutDurably(BarrierKind::kSync).ok()) << "its apply hangs after this";
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(other->Write(100 * i, "d").ok());
    ASSERT_TRUE(other->CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(other->file().WaitApplied(absl::Seconds(60)).ok());
  }
  EXPECT_FALSE(frozen[0]->file().WaitApplied(absl::ZeroDuration()).ok());
  Thaw();
  for (const auto& writer : frozen) {
    ASSERT_TRUE(writer->CutDurably(BarrierKind::kCommit).ok());
    EXPECT_TRUE(writer->file().WaitApplied(absl::Seconds(60)).ok());
    EXPECT_EQ(ReadVersion(writer->file(), 2), writer->content());
    EXPECT_TRUE(writer->End().ok());
  }
  EXPECT_TRUE(other->End().ok());
}

}  // namespace
}  // namespace h5mirror::store
