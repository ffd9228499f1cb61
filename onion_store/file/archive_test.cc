// Segments of saved pages that go to an archive, are read there, come back and are deleted.
#include <atomic>

#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class ArchiveTest : public ArchiveFixture {};

TEST_F(ArchiveTest, WhatIsArchivedLeavesTheDiskAndReadsAsBefore) {
  Write(6);
  ASSERT_TRUE(IsOnDisk(1));
  const uint64_t before = file_->Info()->history_bytes;
  const ArchiveProgress done = Archive();
  EXPECT_EQ(done.segments_archived, 1);
  EXPECT_EQ(done.segments_to_archive, 1);
  EXPECT_EQ(done.archived_bytes, before);
  EXPECT_EQ(done.freed_bytes, before);
  EXPECT_EQ(done.left, "");
  EXPECT_FALSE(IsOnDisk(1));
  EXPECT_THAT(archive_->names(), ElementsAre(StartsWith("files/")));
  CheckAll();
  Open();
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveTest, LaterVersionsAreSavedInAnotherSegment) {
  Write(3);
  Archive();
  Write(3);
  ASSERT_TRUE(IsOnDisk(2));
  CheckAll();
  EXPECT_EQ(Archive().segments_archived, 1);
  EXPECT_THAT(archive_->names(), SizeIs(2));
  Write(2);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveTest, TheNewestSegmentStaysUnlessItIsSealed) {
  Write(3);
  const ArchiveProgress done = Archive({SealSegment::kNo, 0});
  EXPECT_EQ(done.segments_to_archive, 0);
  EXPECT_TRUE(IsOnDisk(1));
  EXPECT_EQ(archive_->CountCalls(""), 0);
}

TEST_F(ArchiveTest, SoManyBytesAsAreWantedStayOnTheDiskToo) {
  for (int i = 0; i < 3; ++i) {
    Write(3);
    Archive({SealSegment::kYes, UINT64_MAX});
  }
  EXPECT_THAT(archive_->names(), SizeIs(3));
  EXPECT_TRUE(IsOnDisk(1) && IsOnDisk(2) && IsOnDisk(3));
  const uint64_t newest = (*env_.OpenTree("/"))->Stat("x.h5.h5m/pages-000003")->size_bytes;
  Archive({SealSegment::kNo, newest});
  EXPECT_FALSE(IsOnDisk(1) || IsOnDisk(2));
  EXPECT_TRUE(IsOnDisk(3));
  EXPECT_EQ(archive_->CountCalls("put"), 3);
  CheckAll();
}

TEST_F(ArchiveTest, WithoutAnArchiveNothingGoesThere) {
  Open(false);
  Write(3);
  EXPECT_TRUE(absl::IsFailedPrecondition(file_->StartArchive({}).status()));
}

TEST_F(ArchiveTest, AStoreThatHasLostItsArchiveSaysWhatItNeeds) {
  Write(3);
  Archive();
  Open(false);
  const absl::Status read = ReadError(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(read.message(), HasSubstr("x.h5@1"));
  EXPECT_THAT(read.message(), HasSubstr(archive_->names()[0]));
  EXPECT_TRUE(ReadVersion(*file_, 3) == golden_[3]) << "it is in the head";
  Write(1);
  EXPECT_THAT(Verify(), SizeIs(1));
}

TEST_F(ArchiveTest, OneJobAtATime) {
  Write(3);
  auto job = StartJob();
  EXPECT_TRUE(absl::IsFailedPrecondition(file_->StartArchive({}).status()));
  job.reset();
  EXPECT_TRUE(file_->StartArchive({}).ok());
}

TEST_F(ArchiveTest, AReaderThatWasOpenGoesOn) {
  Write(4);
  auto reader = *file_->OpenVersion(1);
  Archive();
  EXPECT_TRUE(ReadAll(*reader) == golden_[1]);
}

TEST_F(ArchiveTest, BlocksAreReadOnceForAllTheirPages) {
  Write(6);
  Archive();
  const int before = archive_->CountCalls("get");
  CheckAll();
  EXPECT_EQ(archive_->CountCalls("get"), before + 1);
}

// While a job waits for the archive, commits become durable, and rollbacks and prunes go on.
TEST_F(ArchiveTest, NoCallOfTheArchiveHoldsALock) {
  Write(4);
  const std::vector<std::string> verbs{"put", "head", "get", "delete"};
  for (const std::string& verb : verbs) {
    SCOPED_TRACE(verb);
    std::atomic<int> times{0};
    archive_->SetOnCall([&](const std::string& call) {
      if (call.rfind(verb, 0) != 0 || times++ > 0) return;
      Write(1);
      Must(file_->Tag(0, "tag", TagMode::kMove).status());
      auto verify = file_->StartVerify({});
      Must(verify.status());
      Must((*verify)->Step().status());
    });
    Archive();
    if (verb == "delete") Prune({1, 2, 3, 4});
    archive_->SetOnCall(nullptr);
    EXPECT_GT(times.load(), 0);
  }
  CheckAll();
}

TEST_F(ArchiveTest, ARollbackBringsItsSegmentsBackFirst) {
  Write(6);
  Archive();
  auto made = file_->Rollback(2, {}, {1});
  Must(made.status());
  golden_[made->version] = golden_[2];
  EXPECT_TRUE(IsOnDisk(1));
  Must(file_->WaitApplied(absl::Seconds(30)));
  CheckAll();
  // Its object still exists: the segment only leaves the disk.
  const int puts = archive_->CountCalls("put");
  while (!Archive({SealSegment::kNo, 0}).left.empty()) continue;  // The apply no longer needs it.
  EXPECT_FALSE(IsOnDisk(1));
  EXPECT_EQ(archive_->CountCalls("put"), puts);
  CheckAll();
}

TEST_F(ArchiveTest, ARollbackWithoutItsArchiveChangesNothing) {
  Write(6);
  Archive();
  archive_->FailCalls(1000, absl::UnavailableError("503"));
  const absl::Status made = file_->Rollback(2, {}, {1}).status();
  EXPECT_TRUE(absl::IsUnavailable(made)) << made;
  EXPECT_EQ(file_->GetVersion(0)->version, 6);
  archive_->FailCalls(0, absl::OkStatus());
  CheckAll();
  Write(1);
}

TEST_F(ArchiveTest, SegmentsOfARollbackThatIsNotInTheHeadStay) {
  Write(6);
  Archive();
  Must(file_->Rollback(2, {}, {1}).status());
  // Even if all is applied by now: after a restart the reverts are read again.
  auto crashed = env_.CopyNow();
  StoreOptions options;
  options.page_size_bytes = kPage;
  options.archive = std::make_shared<FaultObjectStore>();  // an empty archive
  auto store = OpenStore(*crashed, "/", options);
  auto file = *store->OpenFile("x.h5");
  Must(file->WaitApplied(absl::Seconds(30)));
  EXPECT_TRUE(ReadVersion(*file, 7) == golden_[2]);
}

TEST_F(ArchiveTest, AForkBringsTheSegmentsOfItsSourceBackFirst) {
  Write(6);
  Archive();
  auto made = store_->Fork(*file_, 2, "y.h5", {});
  Must(made.status());
  EXPECT_TRUE(IsOnDisk(1));
  auto fork = *store_->OpenFile("y.h5");
  EXPECT_TRUE(ReadVersion(*fork, 1) == golden_[2]);
}

TEST_F(ArchiveTest, APromotionBringsSegmentsBackFirst) {
  Write(3);
  Must(store_->Fork(*file_, 3, "y.h5", {}).status());
  const std::shared_ptr<File> original = file_;
  const auto golden = golden_;
  file_ = *store_->OpenFile("y.h5");
  golden_ = {{1, golden_.at(3)}};
  Write(3);
  Archive();
  std::atomic<int> calls{0};
  archive_->SetOnCall([&](const std::string&) { ++calls; });
  PromoteRequest request;
  request.version = 2;
  request.request_id = {2};
  const auto made = original->Promote(*file_, request);
  Must(made.status());
  EXPECT_EQ(made->version.version, 4);
  EXPECT_GT(calls.load(), 0);
  EXPECT_TRUE(ReadVersion(*original, 4) == golden_.at(2));
  EXPECT_TRUE(ReadVersion(*original, 3) == golden.at(3));
}

// The newest version has the bytes of the forked version again: both are read and compared.
TEST_F(ArchiveTest, APromotionBringsBackTheVersionsThatItMayCompare) {
  Write(3);
  Must(store_->Fork(*file_, 3, "y.h5", {}).status());
  Write(3);
  Must(file_->Rollback(3, {}, {1}).status());
  Must(file_->WaitApplied(absl::Seconds(30)));
  while (!Archive().left.empty()) continue;  // The apply no longer needs it.
  ASSERT_FALSE(IsOnDisk(1));
  const auto fork = *store_->OpenFile("y.h5");
  Writer writer(fork, SessionStart::kContinue, golden_[3]);
  Must(writer.Write(0, Bytes(kPage)));
  Must(writer.CutDurably(BarrierKind::kCommit).status());
  Must(writer.End());
  archive_->SetOnCall([&](const std::string& call) { EXPECT_FALSE(IsOnDisk(1)) << call; });
  PromoteRequest request;
  request.version = 2;
  request.request_id = {2};
  const auto made = file_->Promote(*fork, request);
  Must(made.status());
  archive_->SetOnCall(nullptr);
  EXPECT_EQ(made->version.version, 8);
  EXPECT_TRUE(IsOnDisk(1)) << "it was brought back as a whole, before the lock was taken";
  EXPECT_TRUE(ReadVersion(*file_, 8) == writer.content());
}

TEST_F(ArchiveTest, APromotionOfNoForkAsksNoArchive) {
  Write(4);
  Archive();
  const std::shared_ptr<File> original = file_;
  file_ = *store_->OpenOrCreateFile("z.h5", kPage);
  golden_.clear();
  Write(4);
  Archive();
  const int calls = archive_->CountCalls("");
  PromoteRequest request;
  request.version = 1;
  request.request_id = {2};
  const absl::Status made = original->Promote(*file_, request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(made)) << made;
  EXPECT_THAT(made.message(), HasSubstr("z.h5 is no fork"));
  EXPECT_EQ(archive_->CountCalls(""), calls);
}

TEST_F(ArchiveTest, AFileThatIsMovedKeepsItsObjects) {
  Write(6);
  Archive();
  file_.reset();
  Must(store_->Move("x.h5", "d/y.h5"));
  file_ = *store_->OpenFile("d/y.h5");
  CheckAll();
}

TEST_F(ArchiveTest, APruneDeletesObjectsThatNoVersionNeeds) {
  Write(4);
  Archive();
  Write(4);
  Archive();
  ASSERT_THAT(archive_->names(), SizeIs(2));
  Prune({1, 2});
  EXPECT_THAT(archive_->names(), SizeIs(2)) << "versions 3 and 4 need the first one";
  CheckAll();
  Prune({3, 4});
  EXPECT_THAT(archive_->names(), SizeIs(1));
  CheckAll();
  Prune({5, 6, 7});
  EXPECT_THAT(archive_->names(), IsEmpty());
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveTest, AnArchiveThatIsAwayLeavesObjectsToTheNextPrune) {
  Write(4);
  Archive();
  archive_->FailCalls(1, absl::UnavailableError("503"));
  const PruneProgress left = Prune({1, 2, 3});
  EXPECT_THAT(left.left, HasSubstr("1 objects of the archive are not deleted yet"));
  EXPECT_THAT(left.left, HasSubstr("503"));
  EXPECT_THAT(archive_->names(), SizeIs(1));
  EXPECT_THAT(Verify(), IsEmpty());
  EXPECT_EQ(Prune({}).left, "");
  EXPECT_THAT(archive_->names(), IsEmpty());
}

TEST_F(ArchiveTest, AnArchiveJobDeletesWhatAPruneLeft) {
  Write(4);
  Archive();
  archive_->FailCalls(1, absl::UnavailableError("503"));
  Prune({1, 2, 3});
  EXPECT_EQ(Archive({SealSegment::kNo, 0}).objects_deleted, 1);
  EXPECT_THAT(archive_->names(), IsEmpty());
}

// The segment is pruned while its object is put.
TEST_F(ArchiveTest, APruneInTheMidstOfAPutLeavesNoObject) {
  Write(4);
  std::atomic<bool> pruned{false};
  archive_->SetOnCall([&](const std::string& call) {
    if (call.rfind("put", 0) != 0 || pruned.exchange(true)) return;
    Prune({1, 2, 3});
  });
  const ArchiveProgress done = Archive();
  EXPECT_TRUE(pruned.load());
  EXPECT_EQ(done.segments_archived, 0);
  EXPECT_EQ(done.objects_deleted, 1);
  EXPECT_THAT(archive_->names(), IsEmpty());
  CheckAll();
}

TEST_F(ArchiveTest, WhatIsPrunedDuringAVerificationIsNoDamage) {
  Write(4);
  Archive();
  auto verify = *file_->StartVerify({});
  Must(verify->Step().status());
  Prune({1, 2, 3});
  EXPECT_THAT(archive_->names(), IsEmpty());
  for (bool done = false; !done;) {
    auto progress = verify->Step();
    Must(progress.status());
    EXPECT_THAT(progress->found, IsEmpty());
    done = progress->done;
  }
}

TEST_F(ArchiveTest, AReaderInTheMidstOfAPruneIsToldOrReadsOn) {
  Write(8);
  Archive();
  auto dropped = *file_->OpenVersion(2), retained = *file_->OpenVersion(8);
  Prune({1, 2, 3, 4, 5, 6, 7});
  std::string bytes(kPage, '\0');
  const absl::Status read = dropped->Read(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(absl::IsOutOfRange(read)) << read;
  EXPECT_TRUE(ReadAll(*retained) == golden_[8]);
}

TEST_F(ArchiveTest, APurgedFileLosesItsObjectsAndARemovedOneKeepsThem) {
  Write(4);
  Archive();
  file_.reset();
  auto removed = store_->Remove("x.h5", {}, absl::Hours(1));
  Must(removed.status());
  Must(store_->PurgeRemoved(removed->expires - absl::Seconds(1)).status());
  EXPECT_THAT(archive_->names(), SizeIs(1));
  Must(store_->Undelete(removed->id, "").status());
  file_ = *store_->OpenFile("x.h5");
  CheckAll();
  file_.reset();
  removed = store_->Remove("x.h5", {}, absl::Hours(1));
  Must(removed.status());
  Must(store_->PurgeOneRemoved(removed->id));
  EXPECT_THAT(archive_->names(), IsEmpty());
  EXPECT_THAT(*(*env_.OpenTree("/"))->List(".h5mirror/removed"), IsEmpty());
}

TEST_F(ArchiveTest, APurgeWithoutItsArchiveIsFinishedByTheNextOne) {
  Write(4);
  Archive();
  file_.reset();
  auto removed = store_->Remove("x.h5", {}, absl::Hours(1));
  Must(removed.status());
  archive_->FailCalls(1, absl::UnavailableError("503"));
  Must(store_->PurgeOneRemoved(removed->id));
  EXPECT_THAT(*store_->ListRemoved(), IsEmpty());
  EXPECT_THAT(archive_->names(), SizeIs(1));
  const int calls = archive_->CountCalls("");
  Open();
  EXPECT_EQ(archive_->CountCalls(""), calls) << "a start waits for no archive";
  Must(store_->PurgeRemoved(absl::UnixEpoch()).status());
  EXPECT_THAT(archive_->names(), IsEmpty());
  EXPECT_THAT(*(*env_.OpenTree("/"))->List(".h5mirror/removed"), IsEmpty());
}

TEST_F(ArchiveTest, ADeadArchiveIsAskedOnceInAPurge) {
  absl::Time expires;
  for (int i = 0; i < 3; ++i) {
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
    golden_.clear();
    Write(2);
    Archive();
    file_.reset();
    const auto removed = store_->Remove("x.h5", {}, absl::Hours(1));
    Must(removed.status());
    expires = removed->expires;
  }
  archive_->FailCalls(1000, absl::DeadlineExceededError("no answer"));
  EXPECT_EQ(*store_->PurgeRemoved(expires), 3);
  EXPECT_EQ(archive_->CountCalls("delete"), 1);
  archive_->FailCalls(0, absl::OkStatus());
  Must(store_->PurgeRemoved(expires).status());
  EXPECT_THAT(archive_->names(), IsEmpty());
}

// If the objects cannot be read, no report may call them damaged.
TEST_F(ArchiveTest, AWrongArchiveIsNoDamage) {
  Write(3);
  Archive();
  auto verify = *file_->StartVerify({});
  archive_->FailCalls(1000, absl::FailedPreconditionError("it lacks the object \"root\""));
  absl::Status end;
  for (bool done = false; end.ok() && !done;) {
    const auto progress = verify->Step();
    end = progress.status();
    done = progress.ok() && progress->done;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(end)) << end;
}

}  // namespace
}  // namespace h5mirror::store
