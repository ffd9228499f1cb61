// An archive that is slow, busy, full or wrong: errors name file, version and object, no byte is
// lost on the disk, and the next job goes on.
#include "onion_store/pages/page_segments.h"
#include "onion_store/pages/segment_object.h"
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ArchiveFaultsTest : public ArchiveFixture {
 protected:
  std::string object() { return archive_->names().at(0); }
  // Checks the names in the message of `status`.
  static void ExpectNamed(const absl::Status& status, const std::string& object) {
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("x.h5@1"), HasSubstr("pages-000001"), HasSubstr(object)));
  }
  // An apply finds segment 1 full, and no room on the disk for the next one. After a crash the file
  // would go on with segment 1, as its row says.
  void FailToBeginSegment2() {
    file_.reset();
    store_.reset();
    {
      const auto tree = *env_.OpenTree("/");
      SqliteVfs vfs(*tree);
      const auto index = *VersionIndex::Open(vfs, *tree, "x.h5.h5m");
      FileRow row = *index->ReadFileRow();
      row.pages_end_bytes = kPageSegmentBytesMax;
      Must(index->WriteFileRow(row));
    }
    Open();
    env_.FailOpensOf("pages-000002", absl::ResourceExhaustedError("No space left on device"));
    Writer writer(file_, SessionStart::kContinue, golden_.rbegin()->second);
    Must(writer.Write(0, Bytes(kPage)));
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    Must(writer.End());
    golden_[cut->version] = writer.content();
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    const auto has_failed = [&] {
      const absl::Status applied = file_->WaitApplied(absl::Milliseconds(1));
      return applied.message().find("No space") != std::string_view::npos;
    };
    while (!has_failed()) ASSERT_LT(absl::Now(), deadline);
  }
};

TEST_F(ArchiveFaultsTest, AReadWhileTheArchiveIsBusyOrSlowCanBeTriedAgain) {
  Write(4);
  Archive();
  for (const absl::Status& fault :
       {absl::UnavailableError("503"), absl::DeadlineExceededError("slow")}) {
    archive_->FailCalls(1, fault);
    const absl::Status read = ReadError(1);
    EXPECT_EQ(read.code(), fault.code()) << read;
    ExpectNamed(read, object());
  }
  CheckAll();
}

TEST_F(ArchiveFaultsTest, AnObjectThatVanishedIsDataLossAndOnlyItsVersionsAreLost) {
  Write(4);
  Archive();
  const std::string name = object();
  archive_->Lose(name);
  const absl::Status read = ReadError(1);
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  ExpectNamed(read, name);
  EXPECT_THAT(read.message(), HasSubstr("the object is lost"));
  EXPECT_TRUE(ReadVersion(*file_, 4) == golden_[4]);
  const auto found = Verify();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].place, DamagePlace::kPages);
  EXPECT_EQ(found[0].file, "x.h5.h5m/pages-000001");
  EXPECT_EQ(found[0].oldest, 1);
  EXPECT_EQ(found[0].newest, 3);
  EXPECT_THAT(found[0].message, HasSubstr(name));
  golden_.erase(golden_.begin(), golden_.find(4));
  Write(2);
  CheckAll();
}

TEST_F(ArchiveFaultsTest, AnObjectThatWasCutShortIsDataLoss) {
  Write(4);
  Archive();
  archive_->Change(object(), [](std::string* bytes) { bytes->resize(100); });
  const absl::Status read = ReadError(1);
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  ExpectNamed(read, object());
  const auto found = Verify();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message, HasSubstr("it has 100 bytes, and should have"));
}

TEST_F(ArchiveFaultsTest, WrongBytesAreFoundByTheirChecksums) {
  Write(4);
  Archive();
  archive_->Change(object(), [](std::string* bytes) { bytes->at(bytes->size() - 1) ^= 1; });
  absl::Status wrong;
  for (VersionNumber version = 1; version < 4 && wrong.ok(); ++version) wrong = ReadError(version);
  EXPECT_TRUE(absl::IsDataLoss(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), AllOf(HasSubstr("checksum"), HasSubstr(object())));
  const auto found = Verify();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message, HasSubstr("crc32c"));
}

TEST_F(ArchiveFaultsTest, AnotherFilesObjectIsNotTaken) {
  Write(4);
  Archive();
  archive_->Change(object(), [](std::string* bytes) { bytes->at(16) ^= 1; });
  const auto found = Verify();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message, HasSubstr("header"));
}

// Damage by a connection, and by a cache that kept the bytes.
TEST_F(ArchiveFaultsTest, DamageThatPassesIsReadAgain) {
  Write(4);
  Archive();
  archive_->Change(object(), [](std::string* bytes) { bytes->at(bytes->size() - 1) ^= 1; });
  VersionNumber reads_it = 1;
  while (reads_it < 4 && ReadError(reads_it).ok()) ++reads_it;
  ASSERT_LT(reads_it, 4);
  archive_->Change(object(), [](std::string* bytes) { bytes->at(bytes->size() - 1) ^= 1; });
  EXPECT_TRUE(ReadVersion(*file_, reads_it) == golden_[reads_it]);
}

TEST_F(ArchiveFaultsTest, AVerificationOfAnArchiveThatIsAwaySaysSo) {
  Write(4);
  Archive();
  archive_->FailCalls(1000, absl::UnavailableError("503"));
  auto job = *file_->StartVerify({});
  absl::Status status;
  for (bool done = false; !done && status.ok();) {
    const auto progress = job->Step();
    status = progress.status();
    if (progress.ok()) done = progress->done;
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(object()));
  archive_->FailCalls(0, absl::OkStatus());
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveFaultsTest, AFileOnTheDiskIsVerifiedWithoutTheArchiveOfItsCopy) {
  Write(4);
  Archive({SealSegment::kYes, 1 << 30, ArchiveCopy::kKeep});
  archive_->FailCalls(1000, absl::UnavailableError("503"));
  auto job = *file_->StartVerify({});
  VerifyProgress last;
  while (!last.done) {
    auto progress = job->Step();
    Must(progress.status());
    if (!progress.ok()) break;
    last = *std::move(progress);
    EXPECT_THAT(last.found, IsEmpty());
  }
  EXPECT_THAT(last.left, AllOf(HasSubstr("copy"), HasSubstr("503")));
  archive_->FailCalls(0, absl::OkStatus());
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveFaultsTest, EachStepOfAJobCanBeTriedAgain) {
  Write(4);
  auto job = StartJob();
  int failed = 0;
  for (bool done = false; !done;) {
    archive_->FailCalls(1, absl::UnavailableError("503"));
    auto step = job->Step();
    if (!step.ok()) {
      ASSERT_TRUE(absl::IsUnavailable(step.status())) << step.status();
      EXPECT_TRUE(IsOnDisk(1));
      ++failed;
      archive_->FailCalls(0, absl::OkStatus());
      step = job->Step();
    }
    Must(step.status());
    done = step->done;
  }
  EXPECT_GE(failed, 2) << "put, head";
  EXPECT_FALSE(IsOnDisk(1));
  archive_->FailCalls(0, absl::OkStatus());
  CheckAll();
}

TEST_F(ArchiveFaultsTest, AFullArchiveIsSaidAndLeavesTheSegment) {
  Write(4);
  archive_->FailCalls(1, absl::ResourceExhaustedError("quota"));
  auto job = StartJob();
  const absl::Status full = Finish(*job).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), AllOf(HasSubstr("pages-000001"), HasSubstr("quota")));
  EXPECT_TRUE(IsOnDisk(1));
  job.reset();
  Write(1);
  CheckAll();
  EXPECT_EQ(Archive().segments_archived, 2);
  CheckAll();
}

TEST_F(ArchiveFaultsTest, AnObjectThatArrivedWrongIsPutAgain) {
  Write(4);
  int puts = 0;
  archive_->SetOnPut([&](std::string* bytes) {
    if (puts++ == 0) bytes->at(bytes->size() / 2) ^= 4;
  });
  EXPECT_EQ(Archive().segments_archived, 1);
  EXPECT_EQ(puts, 2);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveFaultsTest, AnArchiveThatStoresOtherBytesGetsNone) {
  Write(4);
  for (const bool is_short : {true, false}) {
    archive_->SetOnPut([&](std::string* bytes) {
      is_short ? bytes->resize(bytes->size() - 1) : void(bytes->at(70) ^= 1);
    });
    const absl::Status wrong = Finish(*StartJob()).status();
    EXPECT_TRUE(absl::IsDataLoss(wrong)) << wrong;
    EXPECT_THAT(wrong.message(), AllOf(HasSubstr("pages-000001"), HasSubstr("files/")));
    EXPECT_TRUE(IsOnDisk(1));
    EXPECT_THAT(archive_->names(), IsEmpty());
  }
  CheckAll();
  archive_->SetOnPut(nullptr);
  Archive();
  CheckAll();
}

TEST_F(ArchiveFaultsTest, ASegmentThatWasReplacedSinceIsPutUnderAnotherName) {
  Write(4);
  {
    auto job = StartJob();
    while (archive_->CountCalls("put") == 0) Must(job->Step().status());
  }
  const std::string before = object();
  auto segment = *(*env_.OpenTree("/"))->Open("x.h5.h5m/pages-000001", OpenKind::kWrite, 0);
  Must(WriteAt(*segment, *segment->Size(), "more"));
  Archive({SealSegment::kNo, 0});
  EXPECT_THAT(archive_->names(), SizeIs(1));
  EXPECT_NE(object(), before);
  CheckAll();
}

TEST_F(ArchiveFaultsTest, ASegmentThatIsNotDurablySealedIsNotArchived) {
  Write(4);
  FailToBeginSegment2();
  EXPECT_EQ(Archive().segments_to_archive, 0);
  EXPECT_TRUE(IsOnDisk(1));
  EXPECT_THAT(archive_->names(), IsEmpty());
  env_.FailOpensOf("", absl::OkStatus());
  Open();
  Must(file_->WaitApplied(absl::Seconds(30)));
  CheckAll();
  EXPECT_EQ(Archive({SealSegment::kNo, 0}).segments_archived, 1);
  CheckAll();
}

TEST_F(ArchiveFaultsTest, ASegmentThatIsNotDurablySealedIsNotPruned) {
  Write(4);
  FailToBeginSegment2();
  Prune({1, 2, 3});
  EXPECT_TRUE(IsOnDisk(1)) << "no row needs it, but the file goes on with it after a crash";
  env_.FailOpensOf("", absl::OkStatus());
  Open();
  Must(file_->WaitApplied(absl::Seconds(30)));
  CheckAll();
  Prune({});
  EXPECT_FALSE(IsOnDisk(1));
  CheckAll();
}

TEST_F(ArchiveFaultsTest, AFullDiskStopsTheRecallAndLeavesNothing) {
  Write(6);
  Archive();
  archive_->SetOnCall([&](const std::string&) {  // Other writers fill the disk meanwhile.
    env_.SetCapacity(env_.used_bytes() + 600);
  });
  const absl::Status full = file_->Rollback(2, {}, {1}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  archive_->SetOnCall(nullptr);
  env_.SetCapacity(UINT64_MAX);
  EXPECT_FALSE(IsOnDisk(1));
  const auto entries = (*env_.OpenTree("/"))->List("x.h5.h5m");
  for (const DirectoryEntry& entry : *entries) {
    EXPECT_NE(entry.name.rfind("run-", 0), 0u) << entry.name;
  }
  Must(file_->Rollback(2, {}, {1}).status());
}

TEST_F(ArchiveFaultsTest, WhatTheDiskHasNoRoomForIsNotFetched) {
  Write(6);
  const uint64_t bytes = Archive().archived_bytes;
  const int calls = archive_->CountCalls("");
  // The segment would just fit, and leave writers no room.
  env_.SetCapacity(env_.used_bytes() + bytes + bytes / 8);
  const absl::Status made = file_->Rollback(2, {}, {1}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(made)) << made;
  EXPECT_THAT(made.message(), HasSubstr("x.h5: to bring 1 segment of old pages back from the "
                                        "archive takes " +
                                        std::to_string(bytes) + " bytes"));
  EXPECT_EQ(archive_->CountCalls(""), calls);
  const absl::Status forked = store_->Fork(*file_, 2, "y.h5", {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(forked)) << forked;
  EXPECT_EQ(archive_->CountCalls(""), calls);
  env_.SetCapacity(UINT64_MAX);
  Must(file_->Rollback(2, {}, {1}).status());
  // A repeat needs none of these bytes.
  while (!Archive({SealSegment::kNo, 0}).left.empty()) continue;  // The apply no longer needs it.
  env_.SetCapacity(env_.used_bytes() + bytes);
  const auto again = file_->Rollback(2, {}, {1});
  Must(again.status());
  EXPECT_EQ(again->version, 7);
  env_.SetCapacity(UINT64_MAX);
}

TEST_F(ArchiveFaultsTest, AnObjectThatIsNotWhatItWasIsNotBroughtBack) {
  Write(6);
  Archive();
  archive_->Change(object(), [](std::string* bytes) { bytes->at(bytes->size() - 1) ^= 1; });
  const absl::Status made = file_->Rollback(1, {}, {1}).status();
  EXPECT_TRUE(absl::IsDataLoss(made)) << made;
  EXPECT_FALSE(IsOnDisk(1));
  EXPECT_EQ(file_->GetVersion(0)->version, 6);
}

}  // namespace
}  // namespace h5mirror::store
