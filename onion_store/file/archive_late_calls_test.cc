// A server loses a file's cell at each step of an archive job, and the next server goes on. Then
// each put and each deletion of the first server arrives once more, late. They must touch nothing
// that the second server relies on.
#include <set>

#include "onion_store/pages/archived_copy.h"
#include "onion_store/restore_root.h"
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr char kId[] = "0123456789abcdef0123456789abcdef";
constexpr ArchiveRequest kAll{SealSegment::kYes, 0, ArchiveCopy::kKeep};

class ArchiveLateCallsTest : public ArchiveFixture {
 protected:
  ~ArchiveLateCallsTest() override { Close(); }

  void Close() {
    file_.reset();
    store_.reset();
  }
  // A file that has changed since its history and copy went to the archive.
  void MakeBase() {
    Write(4);
    Archive(kAll);
    Prune({1, 2});
    Write(3);
    Close();
    disk_ = env_.CopyNow();
    objects_ = archive_->objects();
  }
  // Begins with the state of MakeBase().
  void BeginAnew() {
    Close();
    place_ = disk_->CopyNow();
    archive_ = std::make_shared<FaultObjectStore>(objects_);
    calls_.clear();
    puts_.clear();
    archive_->SetOnCall([this](const std::string& call) { calls_.push_back(call); });
    archive_->SetOnPut([this](std::string* bytes) {
      if (damages_first_ && puts_.empty()) bytes->at(bytes->size() / 2) ^= 4;
      puts_.emplace_back(calls_.back().substr(4), *bytes);
    });
    OpenHere();
  }
  void OpenHere() {
    Close();
    StoreOptions options;
    options.page_size_bytes = kPage;
    options.archive = archive_;
    store_ = OpenStore(*place_, "/", options);
    file_ = *store_->OpenFile("x.h5");
  }
  // Makes `count` steps of the first server's job. True: the job has ended.
  bool Step(const ArchiveRequest& request, int count) {
    const auto job = StartJob(request);
    for (int i = 0; i < count; ++i) {
      const auto progress = job->Step();
      EXPECT_TRUE(progress.ok()) << progress.status();
      if (!progress.ok() || progress->done) return true;
    }
    return false;
  }
  // The calls of the first server arrive once more.
  void ComeLate() {
    archive_->SetOnCall(nullptr);
    archive_->SetOnPut(nullptr);
    PutAgain();
    for (const std::string& call : calls_) {
      if (call.starts_with("delete ")) Must(archive_->Delete(call.substr(7), absl::Seconds(1)));
    }
    PutAgain();
  }
  void PutAgain() {
    for (const auto& [name, bytes] : puts_) {
      TextSource source(bytes);
      archive_->Put(name, source, absl::Seconds(1)).IgnoreError();
    }
  }
  // Reads all versions: from the disk with the archive, and from the archive alone.
  void CheckEverything() {
    CheckAll();
    EXPECT_THAT(Verify(), SizeIs(0));
    const VersionNumber newest = golden_.rbegin()->first;
    auto files = ListRestorable(*archive_);
    Must(files.status());
    ASSERT_THAT(*files, SizeIs(1));
    Must(files->front().status);
    EXPECT_EQ(files->front().version, newest);
    Close();
    FaultEnv fresh;
    auto restore = RootRestore::Begin(fresh, "/", kId);
    Must(restore.status());
    Must((*restore)->Restore(*archive_, {}, &files->front()).status());
    Must((*restore)->End());
    restore->reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(fresh, "/", options);
    file_ = *store_->OpenFile("x.h5");
    CheckAll();
    Close();
  }
  // The first server's job ends after each number of steps. Returns how many there were.
  int LoseTheCellAtEachStep(const ArchiveRequest& first) {
    int steps = 0;
    for (bool is_done = false; !is_done && !HasFailure(); ++steps) {
      SCOPED_TRACE(steps);
      BeginAnew();
      is_done = Step(first, steps);
      archive_->SetOnCall(nullptr);
      archive_->SetOnPut(nullptr);
      OpenHere();
      Archive(kAll);
      ComeLate();
      CheckEverything();
    }
    return steps;
  }

  std::unique_ptr<FaultEnv> disk_;
  std::map<std::string, std::string> objects_;
  std::unique_ptr<FaultEnv> place_;
  bool damages_first_ = false;
  std::vector<std::string> calls_;  // of the first server
  std::vector<std::pair<std::string, std::string>> puts_;
};

TEST_F(ArchiveLateCallsTest, LateCallsOfAJobTakeNothing) {
  MakeBase();
  EXPECT_GT(LoseTheCellAtEachStep(kAll), 15);
}

// An object that arrived damaged is deleted: that deletion comes late, too.
TEST_F(ArchiveLateCallsTest, LateDeletionsOfWhatArrivedWrongTakeNothing) {
  MakeBase();
  damages_first_ = true;
  EXPECT_GT(LoseTheCellAtEachStep(kAll), 15);
}

// The first server is set up to have no copies, and deletes them.
TEST_F(ArchiveLateCallsTest, LateDeletionsOfCopiesTakeNothing) {
  MakeBase();
  EXPECT_GT(LoseTheCellAtEachStep({SealSegment::kYes, 0, ArchiveCopy::kNone}), 10);
}

TEST_F(ArchiveLateCallsTest, AnObjectThatAFormerServerBeganIsPutUnderAnotherName) {
  Write(4);
  {
    auto job = StartJob();
    while (archive_->CountCalls("put") == 0) Must(job->Step().status());
  }
  const std::vector<std::string> before = archive_->names();
  Open();
  Archive({SealSegment::kNo, 0});
  ASSERT_THAT(archive_->names(), SizeIs(1));
  EXPECT_NE(archive_->names(), before);
  CheckAll();
}

// Each put in turn arrives damaged. Its deletion may come late, even if it had no answer.
TEST_F(ArchiveLateCallsTest, NoNameIsPutAgainAfterItsDeletion) {
  for (int wrong = 0, puts = 1; wrong < puts && !HasFailure(); ++wrong) {
    SCOPED_TRACE(wrong);
    Write(2);
    std::set<std::string> deleted;
    puts = 0;
    bool has_failed = false;
    archive_->SetOnCall([&](const std::string& call) {
      EXPECT_FALSE(call.starts_with("put ") && deleted.contains(call.substr(4))) << call;
      if (!call.starts_with("delete ")) return;
      deleted.insert(call.substr(7));
      if (puts > wrong && !std::exchange(has_failed, true)) {
        archive_->FailCalls(1, absl::DeadlineExceededError("late"));
      }
    });
    archive_->SetOnPut([&](std::string* bytes) {
      if (puts++ == wrong) bytes->at(bytes->size() / 2) ^= 4;
    });
    const auto job = StartJob(kAll);
    int errors = 0;
    while (errors < 5) {
      const auto progress = job->Step();
      if (!progress.ok()) ++errors;
      if (progress.ok() && progress->done) break;
    }
    EXPECT_LE(errors, 2);
    archive_->SetOnCall(nullptr);
    archive_->SetOnPut(nullptr);
    CheckAll();
    Must(ListRestorable(*archive_)->front().status);
    EXPECT_EQ(ListRestorable(*archive_)->front().version, golden_.rbegin()->first);
  }
}

TEST_F(ArchiveLateCallsTest, NoCopyIsBuiltOnOneThatHasLostAPart) {
  Write(4);
  Archive(kAll);
  const std::string before = ListRestorable(*archive_)->front().prefix;
  archive_->Lose(before + "-data-000000");
  Write(1);
  Archive(kAll);
  const RestorableFile now = ListRestorable(*archive_)->front();
  Must(now.status);
  EXPECT_EQ(now.version, golden_.rbegin()->first);
  const FileCopy copy = *GetCopyList(*archive_, now.prefix);
  for (const CopyHead& head : copy.heads) {
    for (const CopyLayer& layer : head.layers) EXPECT_EQ(layer.prefix, now.prefix);
  }
}

TEST_F(ArchiveLateCallsTest, ACopyIsNotNamedIfAVerificationGaveUpTheOneBelow) {
  Write(4);
  Archive(kAll);
  const std::string before = ListRestorable(*archive_)->front().prefix;
  Write(1);
  auto job = StartJob(kAll);
  while (ListRestorable(*archive_)->front().prefix == before) Must(job->Step().status());
  archive_->Lose(before + "-data-000000");
  EXPECT_THAT(Verify(), SizeIs(1));
  const auto left = Finish(*job);
  Must(left.status());
  EXPECT_THAT(left->left, HasSubstr("given up"));
  EXPECT_EQ(left->copied_version, 0);
  job.reset();
  Archive(kAll);
  Must(ListRestorable(*archive_)->front().status);
  EXPECT_THAT(Verify(), SizeIs(0));
}

TEST_F(ArchiveLateCallsTest, AListWithoutItsPartsIsNoCopy) {
  Write(4);
  Archive(kAll);
  const RestorableFile whole = ListRestorable(*archive_)->front();
  FileCopy late = *GetCopyList(*archive_, whole.prefix);
  late.prefix = NewCopyPrefix(late.file_id, *NumberOfCopy(whole.prefix) + 1);
  late.index.prefix = late.prefix;
  const std::string list = EncodeCopyList(late);
  TextSource source(list);
  Must(archive_->Put(CopyListName(late.prefix), source, absl::Seconds(1)));
  const RestorableFile found = ListRestorable(*archive_)->front();
  Must(found.status);
  EXPECT_EQ(found.prefix, whole.prefix);
  archive_->Lose(whole.prefix + "-data-000000");
  const RestorableFile lost = ListRestorable(*archive_)->front();
  EXPECT_EQ(lost.name, "x.h5");
  EXPECT_TRUE(absl::IsDataLoss(lost.status)) << lost.status;
  EXPECT_THAT(std::string(lost.status.message()), HasSubstr("-data-00000"));
}

TEST_F(ArchiveLateCallsTest, AVerificationFindsACopyThatLostAnObjectAndTheNextPassMakesAnother) {
  Write(4);
  Archive(kAll);
  EXPECT_THAT(Verify(), SizeIs(0));
  const std::string prefix = ListRestorable(*archive_)->front().prefix;
  for (const std::string& lost : {prefix + "-data-000000", CopyListName(prefix)}) {
    const int copies = archive_->CountCalls("put");
    Archive(kAll);
    EXPECT_EQ(archive_->CountCalls("put"), copies) << "nothing has changed";
    const std::string now = ListRestorable(*archive_)->front().prefix;
    archive_->Lose(now + lost.substr(prefix.size()));
    const auto found = Verify();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_THAT(found[0].message, HasSubstr(lost.substr(prefix.size())));
    EXPECT_THAT(Verify(), SizeIs(0)) << "it has no copy that counts now";
    Archive(kAll);
    Must(ListRestorable(*archive_)->front().status);
    EXPECT_NE(ListRestorable(*archive_)->front().prefix, now);
    EXPECT_THAT(Verify(), SizeIs(0));
  }
}

// The clock of the first server was ahead.
TEST_F(ArchiveLateCallsTest, ACopyIsNewerThanAllThatAreThere) {
  Write(4);
  const FileId id = file_->file_id();
  const uint64_t ahead = static_cast<uint64_t>(absl::GetCurrentTimeNanos()) + 3600'000'000'000;
  TextSource part("a part of a copy that was broken off");
  Must(archive_->Put(NewCopyPrefix(id, ahead) + "-data-000000", part, absl::Seconds(1)));
  Archive(kAll);
  EXPECT_GT(*NumberOfCopy(ListRestorable(*archive_)->front().prefix), ahead);
}

}  // namespace
}  // namespace h5mirror::store
