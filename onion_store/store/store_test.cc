#include "onion_store/store.h"

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_place.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPage = 4096;

CutRequest CommitOf(uint64_t size_bytes) {
  CutRequest request;
  request.kind = BarrierKind::kCommit;
  request.size_bytes = size_bytes;
  return request;
}
StoreOptions RootOption(const std::filesystem::path& root) {
  StoreOptions options;
  options.root = root;
  return options;
}

// A store on a real file system.
class StoreTest : public testing::Test {
 protected:
  StoreTest() { Reopen(); }

  void Reopen(StoreOptions options = {}) {
    store_.reset();
    store_ = OpenStore(place_->env(), place_->root(), options);
  }
  std::shared_ptr<File> Create(const std::string& name) {
    auto file = store_->OpenOrCreateFile(name, 0);
    EXPECT_TRUE(file.ok()) << file.status();
    return *file;
  }
  std::string HeadOf(const std::string& name) { return place_->Read(name); }
  // Writes `content` as one version of `name`.
  void Commit(const std::string& name, const std::string& content) {
    Writer writer(Create(name), SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, content).ok());
    auto cut = writer.CutDurably(BarrierKind::kCommit);
    ASSERT_TRUE(cut.ok()) << cut.status();
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(writer.file().WaitApplied(absl::Seconds(20)).ok());
  }

  std::unique_ptr<TestPlace> place_ = MakeTestPlace();
  std::unique_ptr<Store> store_;
};

TEST(StoreCloseTest, LosesNoCutThatOnlyTheBackgroundHolds) {
  for (int round = 0; round < 50; ++round) {
    FaultEnv env;
    auto store = OpenStore(env, "/");
    CutNumber newest = 0;
    {
      Writer writer(*store->OpenOrCreateFile("x.h5", kPage), SessionStart::kNewGeneration);
      ASSERT_TRUE(writer.Write(0, std::string(kPage, 'a')).ok());
      ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
      ASSERT_TRUE(writer.Write(0, std::string(kPage, 'b')).ok());
      newest = writer.Cut(BarrierKind::kCommit).value_or(0);
      ASSERT_TRUE(writer.End().ok());
    }
    // No time to wait: Close() does the work that the background does not reach.
    ASSERT_TRUE(store->Close(absl::ZeroDuration()).ok());
    store = OpenStore(env, "/");
    const auto file = *store->OpenFile("x.h5");
    ASSERT_EQ(ReadVersion(*file, 2), std::string(kPage, 'b')) << "cut " << newest << " is lost";
  }
}

TEST_F(StoreTest, ACommitIsAPlainFileAndAVersion) {
  std::string content(10000, 'a');
  Commit("d/x.h5", content);
  EXPECT_EQ(HeadOf("d/x.h5"), content);
  auto file = store_->OpenFile("d/x.h5");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetVersion(0)->version, 1);
  EXPECT_EQ(ReadVersion(**file, 1), content);
}

TEST_F(StoreTest, OldVersionsStayWhenPagesChange) {
  Commit("x.h5", std::string(3 * kPage, 'a'));
  Writer writer(Create("x.h5"), SessionStart::kContinue, std::string(3 * kPage, 'a'));
  ASSERT_TRUE(writer.Write(kPage + 10, "changed").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  EXPECT_EQ(ReadVersion(writer.file(), 1), std::string(3 * kPage, 'a'));
  EXPECT_EQ(ReadVersion(writer.file(), 2), writer.content());
  ASSERT_TRUE(writer.file().WaitApplied(absl::Seconds(20)).ok());
  EXPECT_EQ(ReadVersion(writer.file(), 1), std::string(3 * kPage, 'a'));
  EXPECT_EQ(HeadOf("x.h5"), writer.content());
}

TEST_F(StoreTest, ACommitThatChangesNothingMakesNoVersion) {
  Commit("x.h5", std::string(5000, 'a'));
  Writer writer(Create("x.h5"), SessionStart::kContinue, std::string(5000, 'a'));
  ASSERT_TRUE(writer.Write(100, std::string(200, 'a')).ok());
  auto cut = writer.CutDurably(BarrierKind::kCommit);
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->unchanged);
  EXPECT_EQ(cut->version, 1);
  EXPECT_EQ(writer.file().Info()->version_count, 1);
}

TEST_F(StoreTest, WaitAppliedWaitsForALostWritersCutAndForCommitsThatNobodyAwaits) {
  auto file = Create("x.h5");
  Writer lost(file, SessionStart::kContinue);
  ASSERT_TRUE(lost.Write(0, "tick").ok());
  ASSERT_TRUE(lost.Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(lost.End(SessionEnd::kLost).ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  EXPECT_EQ(file->GetVersion(0)->provenance.comment, "writer lost");
  Writer next(file, SessionStart::kContinue, "tick");
  ASSERT_TRUE(next.Write(0, "next").ok());
  ASSERT_TRUE(next.Cut(BarrierKind::kCommit).ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  EXPECT_EQ(HeadOf("x.h5"), "next");
  EXPECT_EQ(file->Info()->version_count, 2);
  ASSERT_TRUE(next.End().ok());
}

// A writer's session may differ from the session of the last cut, as after a fork.
TEST_F(StoreTest, ALostWriterLeavesTheLastCutAlsoWhereItIsOfItsSessionBefore) {
  auto file = Create("x.h5");
  for (const BarrierKind kind : {BarrierKind::kSync, BarrierKind::kCommit}) {
    Writer writer(file, SessionStart::kContinue, file->GetVersion(0).ok() ? "tick" : "");
    ASSERT_TRUE(writer.Write(0, kind == BarrierKind::kSync ? "tick" : "kept").ok());
    ASSERT_TRUE(writer.CutDurably(kind).ok());
    ASSERT_TRUE(writer.End().ok());
    Writer again(file, SessionStart::kContinue, writer.content());
    ASSERT_TRUE(again.End(SessionEnd::kLost).ok());
    ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
    const bool lost = file->GetVersion(0)->provenance.comment == "writer lost";
    EXPECT_EQ(lost, kind == BarrierKind::kSync);
  }
  EXPECT_EQ(file->Info()->version_count, 2);
}

TEST_F(StoreTest, AFencedTokenWritesNothing) {
  Writer first(Create("x.h5"), SessionStart::kContinue);
  ASSERT_TRUE(first.Write(0, "first").ok());
  ASSERT_TRUE(first.Cut(BarrierKind::kTick).ok());
  ASSERT_TRUE(first.Write(0, "uncut").ok());
  Writer second(Create("x.h5"), SessionStart::kContinue, "first");
  EXPECT_GT(second.token(), first.token());
  EXPECT_TRUE(absl::IsAborted(first.Write(0, "late!")));
  ASSERT_TRUE(second.End().ok());
  ASSERT_TRUE(Create("x.h5")->WaitApplied(absl::Seconds(20)).ok());
  Reopen();
  EXPECT_EQ(HeadOf("x.h5"), "first");
  EXPECT_EQ(Create("x.h5")->GetVersion(0)->provenance.comment, "writer lost");
}

TEST_F(StoreTest, AStoreWithoutACutLeavesNoTrace) {
  Writer writer(Create("x.h5"), SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, "bytes").ok());
  ASSERT_TRUE(writer.End().ok());
  EXPECT_FALSE(place_->Exists("x.h5.h5m"));
  EXPECT_FALSE(place_->Exists("x.h5"));
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile("x.h5").status()));
}

TEST_F(StoreTest, ANewGenerationKeepsTheOldHeadsVersions) {
  Commit("x.h5", std::string(9000, 'a'));
  Commit("x.h5", std::string(100, 'b'));
  auto file = Create("x.h5");
  EXPECT_EQ(file->GetVersion(0)->generation, 2);
  EXPECT_EQ(ReadVersion(*file, 1), std::string(9000, 'a'));
  EXPECT_EQ(HeadOf("x.h5"), std::string(100, 'b'));
  Reopen();
  EXPECT_EQ(ReadVersion(*Create("x.h5"), 1), std::string(9000, 'a'));
}

TEST_F(StoreTest, ARollbackIsANewVersionAndCostsOnlyWhatDiffers) {
  if (!place_->is_here()) GTEST_SKIP() << "CephFS tells no holes: design 048";
  const uint64_t size = uint64_t{1} << 40;  // sparse
  Writer writer(Create("x.h5"), SessionStart::kContinue);
  auto write = [&](uint64_t offset, std::string_view bytes) {
    Extent extent{offset, bytes.size()};
    return writer.file().Write(writer.token(), {&extent, 1}, {&bytes, 1});
  };
  auto commit = [&] {
    absl::Notification done;
    auto cut = writer.file().Cut(writer.token(), CommitOf(size), [&](auto) { done.Notify(); });
    ASSERT_TRUE(cut.ok()) << cut.status();
    done.WaitForNotification();
  };
  ASSERT_TRUE(write(size / 2, "old bytes").ok());
  commit();
  ASSERT_TRUE(write(size / 2, "new bytes").ok());
  commit();
  ASSERT_TRUE(writer.End().ok());
  absl::Time start = absl::Now();
  auto made = writer.file().Rollback(1, {}, {1, 2, 3});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_EQ(made->version, 3);
  EXPECT_EQ(writer.file().Rollback(1, {}, {1, 2, 3})->version, 3) << "a repeat is harmless";
  std::string bytes(9, '\0');
  auto reader = writer.file().OpenVersion(3);
  ASSERT_TRUE((*reader)->Read(size / 2, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, "old bytes");
  EXPECT_EQ((*reader)->NextData(0)->offset / (1 << 20), size / 2 / (1 << 20));
}

TEST_F(StoreTest, APlainFileIsTakenInAsVersionOne) {
  place_->Write("x.h5", 0, "plain");
  auto file = Create("x.h5");
  EXPECT_EQ(file->GetVersion(0)->provenance.comment, "found on the server");
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  EXPECT_EQ(ReadVersion(*file, 1), "plain");
}

TEST_F(StoreTest, AHeadChangedOutsideBecomesAVersionAndOldOnesSayWhatTheyLost) {
  Commit("x.h5", std::string(3 * kPage, 'a'));
  store_.reset();
  place_->Write("x.h5", kPage, "vi was here");
  Reopen();
  auto file = Create("x.h5");
  EXPECT_EQ(file->GetVersion(0)->provenance.comment, "outside change");
  std::string page(kPage, '\0');
  auto reader = file->OpenVersion(1);
  EXPECT_TRUE((*reader)->Read(0, absl::MakeSpan(page)).ok());
  absl::Status lost = (*reader)->Read(kPage, absl::MakeSpan(page));
  EXPECT_TRUE(absl::IsDataLoss(lost));
  EXPECT_THAT(std::string(lost.message()), HasSubstr("page 1 of x.h5@1"));
}

TEST(StoreLeftoversTest, AFirstSessionThatWasCutShortLeavesNothing) {
  FaultEnv env;
  auto store = OpenStore(env, "/");
  Writer writer(*store->OpenOrCreateFile("d/x.h5", kPage), SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, std::string(3 * kPage, 'a')).ok());
  const auto crashed = env.CopyNow();
  const auto tree = crashed->OpenTree("/");
  ASSERT_TRUE(*(*tree)->Exists("d/x.h5.h5m/gen-1"));
  StoreOptions options;
  options.background_threads = 0;
  auto again = OpenStore(*crashed, "/", options);
  while (again->RunBackground()) continue;
  EXPECT_FALSE(*(*tree)->Exists("d/x.h5.h5m"));
  EXPECT_TRUE((*tree)->List(".h5mirror/open")->empty());
  Writer next(*again->OpenOrCreateFile("d/x.h5", kPage), SessionStart::kContinue);
  EXPECT_TRUE(next.begun().ok()) << next.begun();
}

TEST(StoreLeftoversTest, WhatHadAnIndexStaysWhereItIs) {
  FaultEnv env;
  auto store = OpenStore(env, "/");
  Writer writer(*store->OpenOrCreateFile("x.h5", kPage), SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, std::string(3 * kPage, 'a')).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  const auto crashed = env.CopyNow();
  const auto tree = crashed->OpenTree("/");
  for (const char* lost : {"x.h5", "x.h5.h5m/index"}) ASSERT_TRUE((*tree)->Remove(lost).ok());
  const size_t before = (*tree)->List("x.h5.h5m")->size();
  StoreOptions options;
  options.background_threads = 0;
  auto again = OpenStore(*crashed, "/", options);
  while (again->RunBackground()) continue;
  EXPECT_EQ((*tree)->List("x.h5.h5m")->size(), before);
}

// A power loss keeps a writer's uncut bytes, and loses its mark.
TEST_F(StoreTest, WhatAHeadHasGrownByIsCutOff) {
  const std::string content(2 * kPage + 100, 'a');
  Commit("x.h5", content);
  for (const size_t grown : {size_t{7}, size_t{kPage}, size_t{3 * kPage}}) {
    store_.reset();
    place_->Write("x.h5", content.size(), std::string(grown, 'x'));
    Reopen();
    auto file = Create("x.h5");
    EXPECT_EQ(file->GetVersion(0)->version, 1) << grown << " bytes of growth became a version";
    EXPECT_EQ(ReadVersion(*file, 1), content);
    EXPECT_EQ(place_->SizeOf("x.h5"), content.size());
  }
}

TEST_F(StoreTest, AFlippedBitIsNeverServed) {
  auto file = Create("x.h5");  // Held: an open file that changes is no "outside change".
  Commit("x.h5", std::string(3 * kPage, 'a'));
  place_->Write("x.h5", 2 * kPage + 5, "b");
  std::string page(kPage, '\0');
  auto reader = file->OpenVersion(1);
  absl::Status read = (*reader)->Read(2 * kPage, absl::MakeSpan(page));
  EXPECT_TRUE(absl::IsDataLoss(read));
  EXPECT_THAT(std::string(read.message()), HasSubstr("read page 2 of x.h5@1: checksum"));
}

TEST_F(StoreTest, AFlippedBitIsNotPassedOnToAPreImage) {
  auto file = Create("x.h5");
  Commit("x.h5", std::string(3 * kPage, 'a'));
  place_->Write("x.h5", 2 * kPage + 5, "b");
  Writer writer(file, SessionStart::kContinue, std::string(3 * kPage, 'a'));
  ASSERT_TRUE(writer.Write(kPage, std::string(2 * kPage, 'c')).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  std::string page(kPage, '\0');
  auto reader = file->OpenVersion(1);
  EXPECT_TRUE((*reader)->Read(kPage, absl::MakeSpan(page)).ok());
  EXPECT_EQ(page, std::string(kPage, 'a'));
  EXPECT_TRUE(absl::IsDataLoss((*reader)->Read(2 * kPage, absl::MakeSpan(page))));
  EXPECT_EQ(ReadVersion(*file, 2), writer.content());
}

TEST_F(StoreTest, AReaderOfOldVersionsDoesNotStopTheWriter) {
  Commit("x.h5", std::string(3 * kPage, 'a'));
  for (char byte : {'b', 'c'}) {  // The second time the segment of version 1 exists.
    Reopen();
    auto file = Create("x.h5");
    std::string before = ReadVersion(*file, 0);
    EXPECT_EQ(ReadVersion(*file, 1), std::string(3 * kPage, 'a'));
    Writer writer(file, SessionStart::kContinue, before);
    ASSERT_TRUE(writer.Write(0, std::string(kPage, byte)).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    EXPECT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
    EXPECT_TRUE(file->Info().ok()) << file->Info().status();
  }
}

TEST_F(StoreTest, AHistoryWithoutItsIndexIsNotThrownAway) {
  Commit("x.h5", std::string(3 * kPage, 'a'));
  Commit("x.h5", std::string(3 * kPage, 'b'));
  store_.reset();
  for (const char* name : {"x.h5.h5m/index", "x.h5.h5m/index-wal"}) {
    if (place_->Exists(name)) place_->Remove(name);
  }
  Reopen();
  auto file = store_->OpenOrCreateFile("x.h5", 0);
  EXPECT_TRUE(absl::IsDataLoss(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("put the index back"));
  EXPECT_TRUE(place_->Exists("x.h5.h5m/head-1"));
}

TEST_F(StoreTest, AMissingHeadSaysTheWayOut) {
  Commit("x.h5", std::string(3 * kPage, 'a'));
  store_.reset();
  place_->Remove("x.h5");
  Reopen();
  auto file = store_->OpenFile("x.h5");
  EXPECT_TRUE(absl::IsDataLoss(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("is missing: put it back"));
}

TEST_F(StoreTest, CloseStopsBetweenRoundsAndTheNextStartGoesOn) {
  const std::string old_bytes(100 << 20, 'a'), new_bytes(100 << 20, 'b');
  auto file = Create("x.h5");
  Writer writer(file, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, old_bytes).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(30)).ok());
  ASSERT_TRUE(writer.Write(0, new_bytes).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  EXPECT_TRUE(store_->Close(absl::ZeroDuration()).ok());
  EXPECT_EQ(file->Info().status().code(), absl::StatusCode::kUnavailable);
  file.reset();
  Reopen();
  EXPECT_TRUE(ReadVersion(*Create("x.h5"), 1) == old_bytes);
  EXPECT_TRUE(ReadVersion(*Create("x.h5"), 2) == new_bytes);
  ASSERT_TRUE(Create("x.h5")->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_TRUE(HeadOf("x.h5") == new_bytes);
}

TEST_F(StoreTest, ASecondStoreOnTheRootIsRefused) {
  auto second = Store::Open(place_->env(), RootOption(place_->root()));
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process serves"));
}

TEST_F(StoreTest, ANewerFormatIsRefused) {
  store_.reset();
  place_->Put(".h5mirror/format", "h5mirror store 9\n");
  auto store = Store::Open(place_->env(), RootOption(place_->root()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status()));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("format 9, this program knows 1"));
}

TEST_F(StoreTest, SymlinksOutOfTheRootAreRefused) {
  if (!place_->is_here()) GTEST_SKIP() << "env_contract_test has it";
  std::filesystem::create_directory_symlink("/", place_->root() / "out");
  auto file = store_->OpenOrCreateFile("out/x.h5", 0);
  EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << file.status();
}

TEST_F(StoreTest, TokensGrowAcrossRestarts) {
  Token first = *Create("x.h5")->Acquire();
  Reopen();
  EXPECT_GT(*Create("x.h5")->Acquire(), first);
}

TEST_F(StoreTest, TheListIsInOrderAndHoldsOnlyMirroredFiles) {
  for (const char* name : {"b.h5", "a/z.h5", "a.h5", "a/b/c.h5"}) Commit(name, "x");
  place_->Write("plain.h5", 0, "not mirrored");
  std::vector<std::string> names;
  auto all = store_->List("", "", 10);
  for (const FileSummary& file : *all) names.push_back(file.name);
  EXPECT_THAT(names, testing::ElementsAre("a.h5", "a/b/c.h5", "a/z.h5", "b.h5"));
  auto rest = store_->List("", "a/b/c.h5", 1);
  ASSERT_EQ(rest->size(), 1u);
  EXPECT_EQ((*rest)[0].name, "a/z.h5");
  EXPECT_EQ(store_->List("a", "", 10)->size(), 2u);
}

// 16 sessions overwrite 16 MiB each at random between two cuts, with next to no memory.
TEST_F(StoreTest, OverwritesBetweenTwoCutsNeedLittleMemory) {
  constexpr uint64_t kBytes = 16 << 20, kMax = 2 << 20;
  StoreOptions options;
  options.memory_max_bytes = kMax;
  Reopen(options);
  std::vector<std::unique_ptr<Writer>> writers;
  const std::string block(kPage, 'b');
  for (int i = 0; i < 16; ++i) {
    std::string name = "f" + std::to_string(i);
    Commit(name, std::string(kBytes, 'a'));
    writers.push_back(std::make_unique<Writer>(Create(name), SessionStart::kContinue, ""));
  }
  std::mt19937_64 random(7);
  uint64_t used_max = 0;
  for (uint64_t n = 0; n < kBytes / kPage; ++n) {
    for (auto& writer : writers) {
      Extent extent{random() % (kBytes / kPage) * kPage, kPage};
      std::string_view piece = block;
      ASSERT_TRUE(writer->file().Write(writer->token(), {&extent, 1}, {&piece, 1}).ok());
    }
    used_max = std::max(used_max, store_->memory_used_bytes());
  }
  EXPECT_LE(used_max, kMax + kMax / 10);
  for (auto& writer : writers) {
    ASSERT_TRUE(writer->file().Cut(writer->token(), CommitOf(kBytes), nullptr).ok());
  }
  for (auto& writer : writers) ASSERT_TRUE(writer->End().ok());
  for (auto& writer : writers) {
    std::string page(kPage, '\0');
    ASSERT_TRUE((*writer->file().OpenVersion(1))->Read(0, absl::MakeSpan(page)).ok());
    EXPECT_EQ(page, std::string(kPage, 'a'));
  }
}

TEST(CheckNameTest, RefusesWhatLeavesTheRootOrIsOurs) {
  EXPECT_TRUE(CheckName("a/b c/x.h5").ok());
  EXPECT_TRUE(CheckName("\xc3\xa9.h5").ok());
  for (const char* name : {"", "/a", "a//b", "a/", ".", "..", "a/../b", "a/./b", "x.h5m", "x.h5m/y",
                           ".h5mirror/lock", "a\nb", "\xff", "\xc0\xaf"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckName(name))) << name;
  }
  EXPECT_FALSE(CheckName(std::string(248, 'a')).ok());
  EXPECT_TRUE(CheckName(std::string(247, 'a')).ok());
}

// A full disk: an error to the session, an intact history, and normal work once there is space
// again.
TEST(FullDiskTest, AFirstStartThatFailsAnywhereCanBeRepeated) {
  for (uint64_t call = 0;; ++call) {
    FaultEnv env;
    env.FailCall(call, absl::ResourceExhaustedError("No space left on device"));
    StoreOptions options;
    options.root = "/";
    Store::Open(env, options).IgnoreError();
    if (!env.fault_met()) return;
    EXPECT_TRUE(Store::Open(env, options).ok()) << "after a failure of call " << call;
  }
}

TEST(FullDiskTest, WhatWasAckedStays) {
  FaultEnv env;
  auto store = OpenStore(env, "/");
  auto file = *store->OpenOrCreateFile("x.h5", 512);
  Writer writer(file, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, std::string(5000, 'a')).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  env.SetCapacity(100'000);
  absl::Status full;
  for (int i = 0; i < 200 && full.ok(); ++i) full = writer.Write(0, std::string(2000, 'b'));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_FALSE(writer.Cut(BarrierKind::kCommit).ok());
  EXPECT_TRUE(writer.End().ok());
  env.SetCapacity(UINT64_MAX);
  EXPECT_EQ(ReadVersion(*file, 1), std::string(5000, 'a'));
  Writer next(file, SessionStart::kContinue, std::string(5000, 'a'));
  ASSERT_TRUE(next.Write(0, "b").ok());
  ASSERT_TRUE(next.CutDurably(BarrierKind::kCommit).ok());
  EXPECT_EQ(ReadVersion(*file, 2), next.content());
}

}  // namespace
}  // namespace h5mirror::store
