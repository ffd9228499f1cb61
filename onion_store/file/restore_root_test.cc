// Roots rebuilt from an archive: killed runs, names, copies that change meanwhile.
#include "onion_store/restore_root.h"

#include "onion_store/pages/archived_copy.h"
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr char kId[] = "0123456789abcdef0123456789abcdef";
constexpr ArchiveRequest kCopy{SealSegment::kNo, UINT64_MAX, ArchiveCopy::kKeep};

class RestoreRootTest : public ArchiveFixture {
 protected:
  ~RestoreRootTest() override {  // Before the place of the restored root.
    file_.reset();
    store_.reset();
  }
  std::vector<RestorableFile> List() {
    auto files = ListRestorable(*archive_);
    Must(files.status());
    return files.value_or(std::vector<RestorableFile>());
  }
  // Rebuilds `files` in `fresh_`; with `ends`, to the end.
  absl::Status Restore(std::vector<RestorableFile> files, bool ends = true,
                       const RestoreOptions& options = {}) {
    auto restore = RootRestore::Begin(*fresh_, "/", kId);
    if (!restore.ok()) return restore.status();
    for (RestorableFile& file : files) {
      const auto restored = (*restore)->Restore(*archive_, options, &file);
      if (!restored.ok()) return restored.status();
    }
    return ends ? (*restore)->End() : absl::OkStatus();
  }
  // Goes on with the restored root in place of the other one.
  void GoOn(bool with_archive) {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    if (with_archive) options.archive = archive_;
    store_ = OpenStore(*fresh_, "/", options);
    auto file = store_->OpenFile("x.h5");
    if (file.ok()) file_ = *std::move(file);
  }
  // The new root's file system, once no store uses the former one.
  void Use(std::unique_ptr<FaultEnv> fresh) {
    file_.reset();
    store_.reset();
    fresh_ = std::move(fresh);
  }
  bool IsBegun() { return *(*fresh_->OpenTree("/"))->Exists(".h5mirror/restoring"); }
  std::vector<std::string> Names(std::string_view part) {
    std::vector<std::string> names = archive_->names();
    std::erase_if(names, [&](const auto& name) { return name.find(part) == name.npos; });
    return names;
  }
  // Makes a root in which a run was killed before its call number `call`. False: the run ended.
  bool Kill(uint64_t call, const RestoreOptions& options) {
    Use(std::make_unique<FaultEnv>());
    fresh_->FailCalls(call, UINT64_MAX / 2, absl::InternalError("killed"));
    return !Restore(List(), true, options).ok();
  }
  // Ends the restore without the file. Then nothing of the file is there, or all of it.
  void EndWithoutMore() {
    if (!IsBegun()) return;
    Must(Restore({}));
    GoOn(false);
    if (file_ != nullptr) return CheckAll();
    const auto tree = *fresh_->OpenTree("/");
    for (const char* name : {"x.h5", "x.h5.h5m", ".h5mirror/restore"}) {
      EXPECT_FALSE(*tree->Exists(name)) << name;
    }
  }

  std::unique_ptr<FaultEnv> fresh_ = std::make_unique<FaultEnv>();
};

TEST_F(RestoreRootTest, AKilledRunLeavesNothingOfAFileThatIsNotWhole) {
  Write(3);
  Archive(kCopy);
  uint64_t call = 0;
  for (; Kill(call, {}); ++call) {
    SCOPED_TRACE(call);
    Use(fresh_->CopyNow());
    EndWithoutMore();
  }
  EXPECT_GT(call, 50u);
}

TEST_F(RestoreRootTest, ALossOfPowerLeavesNothingOfAFileThatIsNotWhole) {
  Write(3);
  Archive(kCopy);
  Must(Restore(List()));
  const auto whole = std::move(fresh_);
  for (size_t changes = 0; changes <= whole->change_count(); ++changes) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(testing::Message() << changes << " " << seed);
      Use(whole->Crash(changes, seed));
      EndWithoutMore();
    }
  }
}

TEST_F(RestoreRootTest, AKilledRunIsGoneOnWithInTheOtherWay) {
  Write(3);
  Archive({SealSegment::kNo, 0, ArchiveCopy::kKeep});
  uint64_t call = 0;
  for (; Kill(call, {}); ++call) {
    SCOPED_TRACE(call);
    Use(fresh_->CopyNow());
    if (!IsBegun()) continue;  // The run was about to note its end.
    const bool is_there = *(*fresh_->OpenTree("/"))->Exists("x.h5.h5m/index");
    Must(Restore(List(), true, {.keep_archived = true}));
    const auto tree = *fresh_->OpenTree("/");
    EXPECT_TRUE(is_there || !*tree->Exists("x.h5.h5m/pages-000001"));
    GoOn(true);
    CheckAll();
  }
  EXPECT_GT(call, 50u);
}

TEST_F(RestoreRootTest, AFileWithoutACopyIsListed) {
  Write(3);
  Archive();
  const auto files = List();
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(files[0].status)) << files[0].status;
  EXPECT_TRUE(absl::IsNotFound(Restore(files)));
  EXPECT_TRUE(IsBegun());
}

TEST_F(RestoreRootTest, ANameMayBeADirectoryOfAnother) {
  Write(2);
  Archive(kCopy);
  const auto first = golden_;
  Must(store_->Move("x.h5", "other.h5"));
  file_ = *store_->OpenOrCreateFile("x.h5/y.h5", kPage);
  golden_.clear();
  Write(3);
  Archive(kCopy);
  const auto files = List();
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_THAT(files[0].name, HasSubstr("x.h5.restored-"));
  EXPECT_EQ(files[1].name, "x.h5/y.h5");
  Must(Restore(files));
  GoOn(false);
  file_ = *store_->OpenFile("x.h5/y.h5");
  CheckAll();
  file_ = *store_->OpenFile(files[0].name);
  golden_ = first;
  CheckAll();
}

TEST_F(RestoreRootTest, ANewerFileMayHaveTheNameOfADirectory) {
  file_ = *store_->OpenOrCreateFile("d/y.h5", kPage);
  Write(2);
  Archive(kCopy);
  Must(store_->Move("d/y.h5", "other.h5"));
  Must((*env_.OpenTree("/"))->RemoveDirectory("d"));
  file_ = *store_->OpenOrCreateFile("d", kPage);
  golden_.clear();
  Write(3);
  Archive(kCopy);
  const auto files = List();
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].name, "d");
  EXPECT_THAT(files[1].name, testing::MatchesRegex("d[.]restored-[0-9a-f]{8}/y[.]h5"));
  Must(Restore(files));
}

TEST_F(RestoreRootTest, ACopyThatIsReplacedMeanwhileIsTakenInItsPlace) {
  Write(3, 40);
  Archive(kCopy);
  auto files = List();
  Write(20, 40);
  Archive(kCopy);
  auto restore = RootRestore::Begin(*fresh_, "/", kId);
  Must(restore.status());
  EXPECT_TRUE(*(*restore)->Restore(*archive_, {}, &files[0]));
  EXPECT_EQ(files[0].version, 23);
  Must((*restore)->End());
  restore->reset();
  GoOn(false);
  CheckAll();
}

TEST_F(RestoreRootTest, AFileThatIsThereIsKnownByItsId) {
  Write(2);
  Archive(kCopy);
  Must(Restore(List(), false));
  Must(Restore(List(), false));
  Must(store_->Move("x.h5", "other.h5"));
  file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  golden_.clear();
  Write(3);
  Archive(kCopy);
  EXPECT_TRUE(absl::IsAlreadyExists(Restore(List())));
}

TEST_F(RestoreRootTest, AnIndexThatDoesNotFitIsDamage) {
  Write(3);
  Archive(kCopy);
  const std::string prefix = List().front().prefix;
  archive_->Change(CopyListName(prefix), [&](std::string* bytes) {
    FileCopy copy = *DecodeCopyList(prefix, *bytes);
    copy.heads.back().version = 9;
    *bytes = EncodeCopyList(copy);
  });
  EXPECT_TRUE(absl::IsDataLoss(Restore(List()))) << Restore(List());
}

TEST_F(RestoreRootTest, AFileThatCouldNotBeRemovedIsRemovedLater) {
  Write(3);
  Archive(kCopy);
  file_ = *store_->OpenOrCreateFile("y.h5", kPage);
  golden_.clear();
  Write(2);
  Archive(kCopy);
  auto files = List();
  ASSERT_THAT(files, SizeIs(2));
  auto restore = RootRestore::Begin(*fresh_, "/", kId);
  Must(restore.status());
  int pieces = 0;
  const auto fail = [&](uint64_t) {
    if (++pieces < 2) return absl::OkStatus();  // The index.
    fresh_->FailCall(0, absl::InternalError("cannot be listed"));
    return absl::UnavailableError("away");
  };
  EXPECT_TRUE(
      absl::IsInternal((*restore)->Restore(*archive_, {.on_bytes = fail}, &files[0]).status()));
  const auto tree = *fresh_->OpenTree("/");
  EXPECT_TRUE(*tree->Exists("x.h5"));
  EXPECT_TRUE(*(*restore)->Restore(*archive_, {}, &files[1]));
  Must((*restore)->End());
  EXPECT_FALSE(*tree->Exists("x.h5"));
  EXPECT_TRUE(*tree->Exists("y.h5"));
}

TEST_F(RestoreRootTest, AFileSystemsOwnDirectoryIsNoContent) {
  Write(2);
  Archive(kCopy);
  Must((*fresh_->OpenTree("/"))->MakeDirectory("lost+found", 0700));
  Must(Restore(List()));
}

TEST_F(RestoreRootTest, DeadObjectsAreDeletedFromAnArchiveThatWasTakenOver) {
  Write(3);
  Archive(kCopy);
  Write(3);
  Archive(kCopy);
  Prune({1, 2});
  {
    const auto job = StartJob(kCopy);
    bool is_put = false;
    archive_->SetOnCall([&](const std::string& call) {
      is_put = is_put || (call.starts_with("put") && call.ends_with("-list"));
    });
    while (!is_put) Must(job->Step().status());
    archive_->SetOnCall(nullptr);
  }
  const size_t segments = Names("/pages-").size();
  Must(Restore(List(), true, {.keep_archived = true}));
  GoOn(true);
  Archive(kCopy);
  EXPECT_THAT(Names("/pages-"), SizeIs(testing::Lt(segments)));
  CheckAll();
}

TEST_F(RestoreRootTest, PartsOfCopiesThatWereBrokenOffAreSwept) {
  Write(3, 40);
  for (int i = 0; i < 5; ++i) {
    const auto job = StartJob(kCopy);
    bool is_put = false;
    archive_->SetOnCall([&](const std::string& call) {
      is_put = is_put || (call.starts_with("put") && call.find("-data-") != call.npos);
    });
    while (!is_put) Must(job->Step().status());
    archive_->SetOnCall(nullptr);
    EXPECT_THAT(Names("-data-"), SizeIs(1)) << "of the copy that is broken off now";
  }
  Archive(kCopy);
  Must(Restore(List()));
  GoOn(false);
  CheckAll();
}

TEST_F(RestoreRootTest, ACopyLeavesTheDiskToWriters) {
  Write(3);
  const uint64_t used = env_.used_bytes();
  env_.SetCapacity(used + 16384);
  const ArchiveProgress done = Archive(kCopy);
  EXPECT_EQ(done.copied_version, 0);
  EXPECT_THAT(done.left, HasSubstr("is left to writers"));
  env_.SetCapacity(UINT64_MAX);
  EXPECT_EQ(Archive(kCopy).copied_version, 3);
}

}  // namespace
}  // namespace h5mirror::store
