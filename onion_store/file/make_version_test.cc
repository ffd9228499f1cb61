// Versions made on request, closes that are folded into a later version, times of versions.
#include <atomic>
#include <memory>

#include "base/status_macros.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr std::array<uint8_t, 16> kRequest{1, 2, 3};

Provenance Comment(std::string text) {
  Provenance provenance;
  provenance.comment = std::move(text);
  return provenance;
}

class MakeVersionTest : public testing::Test {
 protected:
  MakeVersionTest() : store_(OpenStore(env_, "/")), file_(*store_->OpenOrCreateFile("a.h5", 512)) {}

  // Makes a cut like a close that comes too soon after the newest version.
  absl::Status CutFolded(Writer& writer, std::string_view bytes, absl::Time version_at) {
    H5M_RETURN_IF_ERROR(writer.Write(0, bytes));
    CutRequest request;
    request.kind = BarrierKind::kSync;
    request.size_bytes = writer.content().size();
    request.barrier.seq = 100;
    request.provenance = Comment(std::string(bytes));
    request.version_at = version_at;
    return writer.file().Cut(writer.token(), request, nullptr).status();
  }
  int64_t NewestNumber() { return file_->Info()->newest_version.version; }
  // Waits until `version` exists; the background makes it.
  bool Comes(VersionNumber version) {
    for (int i = 0; i < 2000; ++i) {
      if (NewestNumber() >= version) return true;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  // Waits until the background has applied the newest cut.
  bool AllIsApplied() {
    for (int i = 0; i < 2000; ++i) {
      const auto info = file_->Info();
      if (info->applied_cut == info->last_cut) return true;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(MakeVersionTest, AVersionHasTheTimeOfItsCutHoweverSlowTheDisk) {
  const auto seconds = std::make_shared<std::atomic<int64_t>>(1'000'000'000);
  env_.SetTime([seconds] { return absl::FromUnixSeconds(*seconds); });
  Writer writer(file_, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "one").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(AllIsApplied()) << "else its syncs would move the clock before the next cut";
  const int64_t cut_at = *seconds += 3600;
  env_.SetLie([seconds](const FaultDisk&, const FaultChange& change) {
    if (change.kind == FaultChange::Kind::kSync) *seconds += 60;
    return false;
  });
  ASSERT_TRUE(writer.Write(0, "two").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  EXPECT_GT(*seconds, cut_at);
  EXPECT_EQ(file_->GetVersion(2)->server_time, absl::FromUnixSeconds(cut_at));
}

TEST_F(MakeVersionTest, TheNewestCutOfALivingWriterBecomesAVersion) {
  Writer writer(file_, SessionStart::kContinue);
  EXPECT_TRUE(absl::IsFailedPrecondition(file_->MakeVersion(Comment("x"), kRequest).status()));
  ASSERT_TRUE(writer.Write(0, "one").ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(writer.Write(0, "two").ok()) << "behind the cut, and no part of it";
  auto kept = file_->MakeVersion(Comment("before the beam"), kRequest);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(kept->unchanged);
  EXPECT_EQ(kept->version.version, 1);
  EXPECT_EQ(kept->version.provenance.comment, "before the beam");
  EXPECT_EQ(ReadVersion(*file_, 1), "one");
  EXPECT_EQ(file_->MakeVersion(Comment("again"), kRequest)->version.version, 1)
      << "the same request";
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  EXPECT_EQ(ReadVersion(*file_, 2), "two");
}

TEST_F(MakeVersionTest, WhereNothingHasChangedThereIsNoNewVersion) {
  Writer writer(file_, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "one").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  auto kept = file_->MakeVersion(Comment("same"), kRequest);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->unchanged);
  EXPECT_EQ(kept->version.version, 1);
  EXPECT_EQ(kept->version.provenance.comment, "") << "it stays what it was";
}

TEST_F(MakeVersionTest, ARequestedCommitIsFoundAgainByItsId) {
  Writer writer(file_, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "one").ok());
  CutRequest request;
  request.kind = BarrierKind::kCommit;
  request.size_bytes = 3;
  request.barrier.seq = 1;
  request.request_id = kRequest;
  ASSERT_TRUE(file_->Cut(writer.token(), request, nullptr).ok());
  ASSERT_TRUE(Comes(1));
  EXPECT_EQ(file_->MakeVersion(Comment("x"), kRequest)->version.version, 1);
}

TEST_F(MakeVersionTest, FoldedClosesBecomeOneVersionWhenItIsTime) {
  // The same for all of them, and far enough for three closes on a machine that stands still at
  // times.
  const absl::Time when = absl::Now() + absl::Milliseconds(1500);
  for (const char* bytes : {"one", "two", "six"}) {
    Writer writer(file_, SessionStart::kContinue, "...");
    ASSERT_TRUE(CutFolded(writer, bytes, when).ok());
    ASSERT_TRUE(writer.End().ok());
  }
  EXPECT_EQ(NewestNumber(), 0);
  ASSERT_TRUE(Comes(1));
  EXPECT_EQ(ReadVersion(*file_, 1), "six");
  EXPECT_EQ(file_->GetVersion(1)->provenance.comment, "six");
  absl::SleepFor(absl::Milliseconds(400));
  EXPECT_EQ(NewestNumber(), 1) << "once";
}

TEST_F(MakeVersionTest, AVersionThatComesFirstTakesTheFoldIn) {
  Writer writer(file_, SessionStart::kContinue, "...");
  const absl::Time when = absl::Now() + absl::Seconds(1);
  ASSERT_TRUE(CutFolded(writer, "one", when).ok());
  ASSERT_TRUE(writer.Write(0, "two").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  absl::SleepFor(when + absl::Milliseconds(200) - absl::Now());
  EXPECT_EQ(NewestNumber(), 1);
  ASSERT_TRUE(CutFolded(writer, "six", absl::Now() + absl::Hours(1)).ok());
  auto kept = file_->MakeVersion(Comment("asked"), kRequest);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->version.version, 2) << "one, not one for the fold too";
  EXPECT_EQ(kept->version.provenance.comment, "asked");
}

TEST_F(MakeVersionTest, AStoreThatClosesKeepsWhatWasFolded) {
  {
    Writer writer(file_, SessionStart::kContinue, "...");
    ASSERT_TRUE(CutFolded(writer, "one", absl::Now() + absl::Hours(1)).ok());
    ASSERT_TRUE(writer.End().ok());
  }
  file_.reset();
  store_.reset();
  store_ = OpenStore(env_, "/");
  EXPECT_EQ(ReadVersion(**store_->OpenFile("a.h5"), 1), "one");
}

}  // namespace
}  // namespace h5mirror::store
