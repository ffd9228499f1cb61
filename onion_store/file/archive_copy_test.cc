// Copies of heads and indexes in an archive, and roots that are rebuilt from them.
#include "onion_store/restore_root.h"

#include "base/hex.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/testing/archive_fixture.h"

namespace h5mirror::store {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kId[] = "0123456789abcdef0123456789abcdef";
constexpr ArchiveRequest kCopy{SealSegment::kNo, UINT64_MAX, ArchiveCopy::kKeep};

class ArchiveCopyTest : public ArchiveFixture {
 protected:
  ~ArchiveCopyTest() override {  // Before the place of the restored root.
    file_.reset();
    store_.reset();
  }
  std::vector<RestorableFile> List() {
    auto files = ListRestorable(*archive_);
    Must(files.status());
    return files.value_or(std::vector<RestorableFile>());
  }
  // Rebuilds all files in a root of its own, in `fresh_`.
  absl::Status Restore(const RestoreOptions& options = {}) {
    auto restore = RootRestore::Begin(*fresh_, "/", kId);
    if (!restore.ok()) return restore.status();
    for (RestorableFile& file : List()) {
      const auto restored = (*restore)->Restore(*archive_, options, &file);
      if (!restored.ok()) return restored.status();
    }
    return (*restore)->End();
  }
  // Goes on with the restored root in place of the other one.
  void GoOn(bool with_archive) {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    if (with_archive) options.archive = archive_;
    store_ = OpenStore(*fresh_, "/", options);
    file_ = *store_->OpenFile("x.h5");
  }
  // Drops the versions that no copy has.
  void ForgetAfter(VersionNumber version) {
    golden_.erase(golden_.upper_bound(version), golden_.end());
  }
  std::vector<std::string> Names(std::string_view part) {
    std::vector<std::string> names = archive_->names();
    std::erase_if(names, [&](const auto& name) { return name.find(part) == name.npos; });
    return names;
  }
  uint64_t BytesPut() {
    uint64_t bytes = 0;
    for (const std::string& name : Names("/copy-")) {
      bytes += archive_->Head(name, absl::Seconds(1))->size_bytes;
    }
    return bytes;
  }

  std::unique_ptr<FaultEnv> fresh_ = std::make_unique<FaultEnv>();
};

TEST_F(ArchiveCopyTest, AFileIsRebuiltWithAllItsVersions) {
  Write(6);
  Must(file_->Tag(3, "good", TagMode::kKeep).status());
  const ArchiveProgress done = Archive(kCopy);
  EXPECT_EQ(done.copied_version, 6);
  EXPECT_GT(done.copied_bytes, 0u);
  EXPECT_EQ(done.left, "");
  const auto files = List();
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].name, "x.h5");
  EXPECT_EQ(files[0].version, 6);
  EXPECT_EQ(files[0].versions, 6);
  EXPECT_EQ(files[0].size_bytes, kSizePages * kPage);
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_EQ(file_->FindVersionTagged("good")->version, 3);
  EXPECT_THAT(Verify(), IsEmpty());
  Write(3);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

// As in CephFS without a ceph-mgr.
TEST_F(ArchiveCopyTest, FreeSpaceThatNobodyCountsIsEnough) {
  env_.SetCountsSpace(false);
  Write(2);
  EXPECT_EQ(Archive(kCopy).copied_version, 2);
  EXPECT_THAT(List(), SizeIs(1));
}

TEST_F(ArchiveCopyTest, SegmentsMayStayInTheArchive) {
  Write(6);
  Archive(kCopy);
  Must(Restore({.keep_archived = true}));
  GoOn(true);
  EXPECT_EQ(file_->Info()->history_bytes, 0u);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
  Write(3);
  const uint64_t puts = archive_->CountCalls("put");
  EXPECT_EQ(Archive(kCopy).copied_version, 9);
  // A segment, one part of changes, the index and the list.
  EXPECT_EQ(archive_->CountCalls("put") - puts, 4u);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveCopyTest, WhatHasNotChangedIsNotCopiedAgain) {
  Write(3);
  Archive(kCopy);
  const int puts = archive_->CountCalls("put");
  EXPECT_EQ(Archive(kCopy).copied_version, 0);
  EXPECT_EQ(archive_->CountCalls("put"), puts);
  Must(file_->Tag(2, "later", TagMode::kKeep).status());
  EXPECT_EQ(Archive(kCopy).copied_version, 3);
  // The index and the list: the head is that of the last copy.
  EXPECT_EQ(archive_->CountCalls("put"), puts + 2);
  Must(Restore());
  GoOn(false);
  EXPECT_EQ(file_->FindVersionTagged("later")->version, 2);
  CheckAll();
}

TEST_F(ArchiveCopyTest, ManyCopiesOfChangesMakeTheNewestVersion) {
  Write(2, 40);
  Archive(kCopy);
  const uint64_t first = BytesPut();
  for (int i = 0; i < 20; ++i) {
    Write(1, 1);
    EXPECT_EQ(Archive(kCopy).copied_version, 3 + i);
    EXPECT_THAT(Names("-list"), SizeIs(1)) << "of older copies there is no list";
  }
  EXPECT_LT(BytesPut(), 3 * first);
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveCopyTest, ARootShowsTheCopyAndNoLaterVersion) {
  Write(4);
  Archive(kCopy);
  Write(3);
  Must(Restore());
  GoOn(false);
  ForgetAfter(4);
  EXPECT_EQ(file_->Info()->newest_version.version, 4);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
  Write(2);
  CheckAll();
}

TEST_F(ArchiveCopyTest, ShrinkingAndGrowingFilesAreCopied) {
  Write(2);
  Archive(kCopy);
  for (const uint64_t pages : {10, 35, 1, 50}) {
    Writer writer(file_, SessionStart::kContinue, golden_.rbegin()->second);
    Must(writer.Truncate(pages * kPage - 7));
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    golden_[cut->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
    if (pages != 1) Archive(kCopy);  // Also two changes of size in one copy.
  }
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveCopyTest, OlderGenerationsComeBack) {
  Write(3);
  Archive(kCopy);
  Write(2);  // of the first generation, after its first copy
  {
    Writer writer(file_, SessionStart::kNewGeneration, "");
    Must(writer.Write(0, Bytes(9 * kPage)));
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    golden_[cut->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  Archive(kCopy);
  Write(2);
  Archive(kCopy);
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(ArchiveCopyTest, APruneKeepsTheObjectsOfTheLastCopy) {
  Write(8);
  Archive({SealSegment::kYes, 0, ArchiveCopy::kKeep});
  ASSERT_THAT(Names("/pages-"), SizeIs(1));
  const auto before = golden_;
  Prune({1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(Names("/pages-"), SizeIs(1));
  golden_ = before;
  Must(Restore());
  const auto after = golden_;
  {
    // The last copy still has the dropped versions, and all of them can be read.
    auto restored = OpenStore(*fresh_, "/", {});
    auto file = *restored->OpenFile("x.h5");
    for (const auto& [version, bytes] : before) {
      EXPECT_TRUE(ReadVersion(*file, version) == bytes) << version;
    }
  }
  const ArchiveProgress done = Archive(kCopy);
  EXPECT_EQ(done.copied_version, 8);
  EXPECT_EQ(done.objects_deleted, 1);
  EXPECT_THAT(Names("/pages-"), IsEmpty());
  fresh_ = std::make_unique<FaultEnv>();
  Must(Restore());
  GoOn(false);
  golden_.erase(golden_.begin(), golden_.find(8));
  CheckAll();
}

TEST_F(ArchiveCopyTest, EachBrokenOffCopyLeavesTheLastOne) {
  Write(4);
  Archive(kCopy);
  const auto first = golden_;
  for (int failing = 0;; ++failing) {
    golden_ = first;
    Write(1);
    auto job = StartJob(kCopy);
    int calls = 0;
    archive_->SetOnCall([&](const std::string&) {
      if (calls++ == failing) archive_->FailCalls(1000, absl::UnavailableError("away"));
    });
    const auto done = Finish(*job);
    archive_->SetOnCall(nullptr);
    archive_->FailCalls(0, absl::OkStatus());
    job.reset();
    fresh_ = std::make_unique<FaultEnv>();
    Must(Restore());
    auto restored = OpenStore(*fresh_, "/", {});
    auto file = *restored->OpenFile("x.h5");
    const VersionNumber newest = file->Info()->newest_version.version;
    for (const auto& [version, bytes] : first) {
      EXPECT_TRUE(ReadVersion(*file, version) == bytes) << version << " after " << failing;
    }
    EXPECT_GE(newest, 4);
    if (done.ok()) break;
    ASSERT_LT(failing, 100);
  }
  Archive(kCopy);
  EXPECT_THAT(Names("-list"), SizeIs(1));
}

TEST_F(ArchiveCopyTest, WhatIsDamagedIsNamedAndNotRestored) {
  Write(4);
  Archive(kCopy);
  for (const std::string& name : Names("")) {
    for (const size_t at : {size_t{0}, size_t{20}, size_t{70}}) {
      archive_->Change(name, [&](std::string* bytes) { (*bytes)[at] ^= 1; });
      fresh_ = std::make_unique<FaultEnv>();
      const absl::Status status = Restore();
      EXPECT_TRUE(absl::IsDataLoss(status)) << name << " " << at << " " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
      StoreOptions options;
      options.root = "/";
      EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(*fresh_, options).status()));
      archive_->Change(name, [&](std::string* bytes) { (*bytes)[at] ^= 1; });
    }
  }
  // The next run goes on where this one stopped.
  Must(Restore());
  GoOn(false);
  CheckAll();
}

class DamagedHeadTest : public ArchiveCopyTest {
 protected:
  static constexpr uint64_t kPageOf = 7;  // that rots

  void Rot() { Must(env_.FlipBit("x.h5", 8 * (kPageOf * kPage + 3))); }
  // A version that changes some pages from `first` on.
  void WritePages(uint64_t first, uint64_t count) {
    Writer writer(file_, SessionStart::kContinue, golden_.rbegin()->second);
    Must(writer.Write(first * kPage, Bytes(count * kPage)));
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    golden_[cut->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  // The pages of a version whose reads fail. All others must be as they were written.
  std::vector<uint64_t> LostPages(VersionNumber version) {
    std::vector<uint64_t> lost;
    auto reader = file_->OpenVersion(version);
    Must(reader.status());
    const std::string& wanted = golden_.at(version);
    for (uint64_t page = 0; page * kPage < wanted.size(); ++page) {
      std::string bytes(std::min<size_t>(kPage, wanted.size() - page * kPage), '\0');
      const absl::Status read = (*reader)->Read(page * kPage, absl::MakeSpan(bytes));
      if (absl::IsDataLoss(read)) lost.push_back(page);
      EXPECT_TRUE(!read.ok() || bytes == wanted.substr(page * kPage, kPage)) << page;
    }
    return lost;
  }
};

TEST_F(DamagedHeadTest, ItsPageIsLeftOutAndToldOf) {
  Write(1);
  WritePages(20, 3);
  Rot();
  const ArchiveProgress done = Archive(kCopy);
  EXPECT_EQ(done.copied_version, 2);
  EXPECT_THAT(done.left, HasSubstr("lacks 512 B of damaged pages (read page 7 of x.h5@2"));
  auto files = List();
  ASSERT_THAT(files, SizeIs(1));
  auto restore = RootRestore::Begin(*fresh_, "/", kId);
  Must((*restore)->Restore(*archive_, {}, &files[0]).status());
  EXPECT_EQ(files[0].lost_bytes, kPage);
  Must((*restore)->End());
  restore->reset();
  GoOn(false);
  EXPECT_THAT(LostPages(1), ElementsAre(kPageOf));
  EXPECT_THAT(LostPages(2), ElementsAre(kPageOf));
  EXPECT_THAT(Verify(), SizeIs(1));
  // As in the lost root: an overwrite heals the page.
  WritePages(kPageOf, 1);
  EXPECT_THAT(LostPages(3), IsEmpty());
  EXPECT_THAT(LostPages(2), ElementsAre(kPageOf));
}

TEST_F(DamagedHeadTest, ALaterCopyHasWhatWasWrittenOverIt) {
  Write(1);
  Rot();
  Archive(kCopy);
  WritePages(kPageOf - 1, 3);
  const ArchiveProgress done = Archive(kCopy);
  EXPECT_EQ(done.copied_version, 2);
  EXPECT_THAT(done.left, IsEmpty()) << "it lacks nothing any more";
  Must(Restore());
  GoOn(false);
  EXPECT_THAT(LostPages(2), IsEmpty());
  EXPECT_THAT(LostPages(1), ElementsAre(kPageOf));
}

TEST_F(DamagedHeadTest, TheBytesThatTheLastCopyHasStay) {
  Write(1, 40);
  Archive(kCopy);
  Rot();
  // So many changes that a copy would put everything again.
  for (int i = 0; i < 8; ++i) {
    WritePages(10, 20);
    EXPECT_EQ(Archive(kCopy).copied_version, 2 + i);
  }
  EXPECT_THAT(LostPages(9), ElementsAre(kPageOf));
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

// A list has at most 1,000 of them.
TEST_F(DamagedHeadTest, LayersBecomeOneBesideTheOneThatHasTheBytes) {
  Write(1, 40);
  Archive(kCopy);
  WritePages(kPageOf, 1);
  Archive(kCopy);
  Rot();
  for (int i = 0; i < 24; ++i) {
    WritePages(20, 1);
    Archive(kCopy);
  }
  const auto names = archive_->names();
  EXPECT_LT(std::count_if(names.begin(), names.end(),
                          [](const auto& name) { return name.find("-data-") != name.npos; }),
            12);
  Must(Restore());
  GoOn(false);
  CheckAll();
  EXPECT_THAT(Verify(), IsEmpty());
}

// The changes since that copy are no longer known.
TEST_F(DamagedHeadTest, ACopyWithTheBytesIsNotReplacedByOneWithout) {
  Write(2);
  Archive(kCopy);
  Rot();
  WritePages(20, 2);
  Prune({2});
  const absl::Status refused = Finish(*StartJob(kCopy)).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the last copy stays"));
  Must(Restore());
  GoOn(false);
  ForgetAfter(1);
  CheckAll();
}

TEST_F(ArchiveCopyTest, ARootThatIsNotEmptyIsRefused) {
  Write(2);
  Archive(kCopy);
  EXPECT_THAT(std::string(RootRestore::Begin(env_, "/", kId).status().message()),
              HasSubstr("is not empty"));
  ASSERT_TRUE(RootRestore::Begin(*fresh_, "/", kId).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RootRestore::Begin(*fresh_, "/", "ffffffffffffffffffffffffffffffff").status()));
  EXPECT_TRUE(RootRestore::Begin(*fresh_, "/", kId).ok());
}

TEST_F(ArchiveCopyTest, AnEndedRestoreIsNotRepeated) {
  Write(2);
  Archive(kCopy);
  Must(Restore());
  EXPECT_TRUE(absl::IsFailedPrecondition(Restore()));
}

TEST_F(ArchiveCopyTest, TwoFilesOfOneNameBothComeBack) {
  Write(2);
  Archive(kCopy);
  const auto first = golden_;
  Must(store_->Move("x.h5", "other.h5"));
  file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  golden_.clear();
  Write(3);
  Archive(kCopy);
  const auto files = List();
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].name, "x.h5");
  EXPECT_THAT(files[1].name, HasSubstr("x.h5.restored-"));
  Must(Restore());
  GoOn(false);
  CheckAll();
  file_ = *store_->OpenFile(files[1].name);
  golden_ = first;
  CheckAll();
}

TEST_F(ArchiveCopyTest, ARenameIsCopied) {
  Write(2);
  Archive(kCopy);
  file_.reset();
  Must(store_->Move("x.h5", "d/y.h5"));
  file_ = *store_->OpenFile("d/y.h5");
  EXPECT_EQ(Archive(kCopy).copied_version, 2);
  const auto files = List();
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(files[0].name, "d/y.h5");
  Must(Restore());
}

TEST_F(ArchiveCopyTest, WithoutCopiesTheyAreDeleted) {
  Write(3);
  Archive(kCopy);
  ASSERT_THAT(Names("/copy-"), Not(IsEmpty()));
  Archive({SealSegment::kNo, 0});
  EXPECT_THAT(Names("/copy-"), IsEmpty());
  CheckAll();
  Prune({1, 2});
  EXPECT_THAT(Names("/pages-"), IsEmpty());
}

TEST_F(ArchiveCopyTest, AFileThatIsPurgedHasNoCopy) {
  Write(3);
  Archive(kCopy);
  file_.reset();
  const auto removed = store_->Remove("x.h5", {}, absl::ZeroDuration());
  Must(removed.status());
  EXPECT_THAT(List(), SizeIs(1));
  Must(store_->PurgeOneRemoved(removed->id));
  EXPECT_THAT(archive_->names(), IsEmpty());
}

TEST(ArchivedCopyFormatTest, ListsAndPartsThatCannotBeAreRefused) {
  FileCopy copy;
  copy.file_id[0] = 7;
  copy.prefix = NewCopyPrefix(copy.file_id, 5);
  copy.name = "x.h5";
  copy.page_size_bytes = 4096;
  copy.versions = 1;
  copy.index_bytes = 1024;
  copy.index.prefix = copy.prefix;
  copy.index.parts = {{100, 1}};
  CopyLayer all = copy.index;
  copy.heads = {{1, 1, 1, 100, {all}}};
  EXPECT_EQ(*DecodeCopyList(copy.prefix, EncodeCopyList(copy)), copy);
  const auto refuses = [&](auto change) {
    FileCopy wrong = copy;
    change(wrong);
    return absl::IsDataLoss(DecodeCopyList(copy.prefix, EncodeCopyList(wrong)).status());
  };
  FileCopy damaged = copy;
  damaged.heads[0].is_damaged = true;
  damaged.heads[0].layers[0].lost = {{0, 10}, {20, 5}};
  EXPECT_EQ(*DecodeCopyList(copy.prefix, EncodeCopyList(damaged)), damaged);
  EXPECT_EQ(damaged.lost_bytes(), 15u);
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].layers[0].lost = {{20, 5}, {0, 10}}; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].layers[0].lost = {{0, 0}}; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].layers[0].lost = {{1, UINT64_MAX}}; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.index.lost = {{0, 10}}; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.name = "../x.h5"; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.name = "x.h5m/.h5m"; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.owner = "unix:a/../b"; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.file_id[0] = 8; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.page_size_bytes = 4097; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads.clear(); }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].layers.clear(); }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].layers[0].from = 1; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.heads[0].size_bytes = UINT64_MAX; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) { wrong.index.parts[0].length = UINT64_MAX; }));
  EXPECT_TRUE(refuses([](FileCopy& wrong) {
    FileId other{};
    wrong.index.prefix = NewCopyPrefix(other, 1);
  }));
  const FileId id = copy.file_id;
  const auto refuses_part = [&](const Part& part) {
    return absl::IsDataLoss(DecodePart(id, EncodePart(id, part)).status());
  };
  EXPECT_EQ(DecodePart(id, EncodePart(id, {{{5, 3}}, "abc"}))->bytes, "abc");
  EXPECT_TRUE(refuses_part({{{5, 4}}, "abc"}));
  EXPECT_TRUE(refuses_part({{{5, 0}, {5, 3}}, "abc"}));
  EXPECT_TRUE(refuses_part({{{UINT64_MAX - 1, 3}}, "abc"}));
  EXPECT_TRUE(refuses_part({{{5, UINT64_MAX - 1}, {9, 5}}, "abc"}));
  EXPECT_TRUE(absl::IsDataLoss(DecodePart({}, EncodePart(id, {{{5, 3}}, "abc"})).status()));
  EXPECT_TRUE(absl::IsDataLoss(NumberOfCopy("files/x/copy-1-2").status()));
}

}  // namespace
}  // namespace h5mirror::store
