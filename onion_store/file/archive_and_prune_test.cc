// An archive job beside a prune of the same file. After whatever step of the prune the job comes,
// no retained version is lost, and the prune waits for no archive.
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ArchiveAndPruneTest : public ArchiveFixture {
 protected:
  ~ArchiveAndPruneTest() override {  // The copy must end before members of the base.
    file_.reset();
    store_.reset();
  }
  // Three versions stay, among them the newest. The others have a part of each segment.
  void WriteAndChoose() {
    Write(30, 8);
    for (VersionNumber version = 1; version < 30; ++version) {
      if (version % 10 != 0) dropped_.push_back(version);
    }
    for (VersionNumber version : dropped_) golden_.erase(version);
  }
  // Goes on with a copy of the present disk.
  void OpenCopy(std::shared_ptr<FaultObjectStore> archive) {
    file_.reset();
    store_.reset();
    archive_ = std::move(archive);
    copy_ = env_.CopyNow();
    OpenAgain();
  }
  void OpenAgain() {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    options.archive = archive_;
    store_ = OpenStore(*copy_, "/", options);
    file_ = *store_->OpenFile("x.h5");
  }
  // Prunes, and calls `beside` after its step number `at`. False: it had no such step.
  bool PruneWith(int at, const std::function<void()>& beside) {
    auto job = file_->StartPrune(dropped_);
    Must(job.status());
    for (int step = 1;; ++step) {
      const auto progress = (*job)->Step();
      Must(progress.status());
      if (!progress.ok() || progress->done) return step > at;
      if (step == at) beside();
    }
  }

  std::vector<VersionNumber> dropped_;
  std::unique_ptr<FaultEnv> copy_;
};

// The prune's copies lie in a segment that began after its survey.
TEST_F(ArchiveAndPruneTest, ASegmentThatAPruneBeganIsNotTakenForDead) {
  WriteAndChoose();
  bool had_step = true;
  for (int at = 1; had_step; ++at) {
    SCOPED_TRACE(at);
    OpenCopy(std::make_shared<FaultObjectStore>());
    had_step = PruneWith(at, [&] {
      const ArchiveProgress beside = Archive();
      if (beside.segments_archived > 0) {
        EXPECT_THAT(beside.left, HasSubstr("stay on the disk"));
      }
    });
    CheckAll();
    EXPECT_EQ(Archive().left, "") << "the prune has let go of them";
    OpenAgain();
    CheckAll();
    EXPECT_THAT(Verify(), IsEmpty());
    ASSERT_LE(at, 100) << "a prune of a small file has no end";
  }
}

TEST_F(ArchiveAndPruneTest, APruneCopiesFromTheDiskWhileTheArchiveIsAway) {
  WriteAndChoose();
  Archive({SealSegment::kYes, UINT64_MAX});
  ASSERT_TRUE(IsOnDisk(1)) << "and in the archive too";
  const int gets = archive_->CountCalls("get");
  archive_->FailCalls(1'000'000, absl::UnavailableError("503"));
  bool had_step = true;
  for (int at = 1; had_step; ++at) {
    SCOPED_TRACE(at);
    OpenCopy(archive_);
    had_step = PruneWith(at, [&] { Archive({SealSegment::kNo, 0}); });
    EXPECT_EQ(archive_->CountCalls("get"), gets);
    CheckAll();
    ASSERT_LE(at, 100) << "a prune of a small file has no end";
  }
}

}  // namespace
}  // namespace h5mirror::store
