// The time of the last comparison with the local file is kept, and survives a crash.
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/index/version_index.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChecksTest : public testing::Test {
 protected:
  ChecksTest() : store_(OpenStore(env_, "/")), file_(*store_->OpenOrCreateFile("x.h5", 0)) {
    Writer writer(file_, SessionStart::kNewGeneration);
    EXPECT_TRUE(writer.Write(0, std::string(10'000, 'x')).ok());
    EXPECT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    EXPECT_TRUE(writer.End().ok());
  }

  // The findings of a verification.
  std::vector<std::string> Damage() {
    auto job = *file_->StartVerify({});
    std::vector<std::string> messages;
    while (true) {
      const auto progress = job->Step();
      EXPECT_TRUE(progress.ok()) << progress.status();
      if (!progress.ok()) return messages;
      for (const auto& damage : progress->found) messages.push_back(damage.message);
      if (progress->done) return messages;
    }
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(ChecksTest, AFileThatWasNeverComparedSaysSo) {
  EXPECT_FALSE(file_->Info()->last_check.has_value());
  EXPECT_THAT(*store_->CheckedFiles(), IsEmpty());
}

TEST_F(ChecksTest, ADifferenceKeepsTheTimeOfTheLastEquality) {
  const auto never = file_->RecordCheck(1, 4096);
  ASSERT_TRUE(never.ok()) << never.status();
  EXPECT_EQ(never->equal_time, absl::InfinitePast());
  const auto equal = file_->RecordCheck(1, 0);
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_EQ(equal->equal_time, equal->time);
  const auto differs = file_->RecordCheck(1, 8192);
  ASSERT_TRUE(differs.ok()) << differs.status();
  EXPECT_EQ(differs->equal_time, equal->time);
  const auto info = file_->Info();
  ASSERT_TRUE(info.ok() && info->last_check.has_value());
  EXPECT_EQ(info->last_check->differing_bytes, 8192u);
  EXPECT_EQ(info->last_check->equal_time, equal->time);
}

TEST_F(ChecksTest, AVersionThatNeverWasIsRefused) {
  for (const VersionNumber version : {0, -1, 2}) {
    const absl::Status refused = file_->RecordCheck(version, 0).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("never had a version"));
  }
}

TEST_F(ChecksTest, ADamagedOneIsNoReasonToRefuseTheFile) {
  file_.reset();
  store_.reset();
  {
    const auto tree = *env_.OpenTree("/");
    SqliteVfs vfs(*tree);
    const auto index = *VersionIndex::Open(vfs, *tree, "x.h5.h5m");
    CheckInfo odd;
    odd.version = -7;
    ASSERT_TRUE(index->SetLastCheck(odd).ok());
  }
  store_ = OpenStore(env_, "/");
  file_ = *store_->OpenFile("x.h5");
  const auto info = file_->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_FALSE(info->last_check.has_value());
  EXPECT_THAT(Damage(), ElementsAre(HasSubstr("last check")));
  Writer writer(file_, SessionStart::kContinue);
  EXPECT_TRUE(writer.begun().ok());
  EXPECT_TRUE(file_->RecordCheck(1, 0).ok());
  EXPECT_EQ(file_->Info()->last_check->version, 1);
  EXPECT_THAT(Damage(), IsEmpty());
}

TEST_F(ChecksTest, ItOutlivesACrash) {
  ASSERT_TRUE(file_->RecordCheck(1, 12'288).ok());
  file_.reset();
  store_.reset();
  auto crashed = env_.Crash(env_.change_count(), 1);
  const auto store = OpenStore(*crashed, "/");
  EXPECT_THAT(*store->CheckedFiles(), ElementsAre("x.h5"));
  const auto info = (*store->OpenFile("x.h5"))->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_TRUE(info->last_check.has_value());
  EXPECT_EQ(info->last_check->differing_bytes, 12'288u);
}

}  // namespace
}  // namespace h5mirror::store
