#include "onion_store/shared/history_files.h"

#include <memory>
#include <utility>

#include "base/hex.h"
#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/file/state/open_history.h"

namespace h5mirror::store {
namespace {

constexpr FileId kId = {1, 2, 3};
constexpr char kMarks[] = ".h5mirror/pruning";

class HistoryFilesTest : public testing::Test {
 protected:
  HistoryFiles Files(StoreKind kind, const std::string& name = "a/b/x.h5") {
    context_ = std::make_shared<StoreContext>(env_, StoreOptions(), *env_.OpenTree("/"), kind);
    EXPECT_TRUE(context_->tree->MakeDirectory(".h5mirror", 0700).ok());
    EXPECT_TRUE(context_->tree->MakeDirectory(".h5mirror/open", 0700).ok());
    HistoryFiles files(context_, name);
    files.Identify(kId, 512);
    return files;
  }
  bool Exists(const std::string& name) { return *context_->tree->Exists(name); }

  FaultEnv env_;
  std::shared_ptr<StoreContext> context_;
};

TEST_F(HistoryFilesTest, APartOfAPageCountsAsAPage) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  EXPECT_EQ(files.PagesIn(0), 0);
  EXPECT_EQ(files.PagesIn(1), 1);
  EXPECT_EQ(files.PagesIn(512), 1);
  EXPECT_EQ(files.PagesIn(513), 2);
  EXPECT_EQ(files.PageOf(511), 0);
  EXPECT_EQ(files.PageOf(512), 1);
}

TEST_F(HistoryFilesTest, ItsPartsLieBesideTheHead) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  EXPECT_EQ(files.HistoryName("index"), "a/b/x.h5.h5m/index");
  EXPECT_EQ(files.GenerationName(7), "a/b/x.h5.h5m/gen-7");
  EXPECT_EQ(files.OldHeadName(6), "a/b/x.h5.h5m/head-6");
}

TEST_F(HistoryFilesTest, MarksOfARootNameTheFile) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  const std::string mark = StrCat(kMarks, "/", HexOf(kId));
  files.SetMark(kMarks);
  ASSERT_TRUE(Exists(mark));
  auto file = context_->tree->Open(mark, OpenKind::kRead, 0);
  std::string content(files.name().size(), '?');
  ASSERT_TRUE((*file)->ReadAt(0, absl::MakeSpan(content)).ok());
  EXPECT_EQ(content, files.name());
  files.RemoveMark(kMarks);
  EXPECT_FALSE(Exists(mark));
}

TEST_F(HistoryFilesTest, AStoreOfOneFileHasNoMarksButThatOfAnOpenFile) {
  const HistoryFiles files = Files(StoreKind::kOneFile);
  files.SetMark(kMarks);
  EXPECT_FALSE(Exists(kMarks));
  EXPECT_EQ(files.OpenMarkName(), "a/b/x.h5.h5m/open");
}

TEST_F(HistoryFilesTest, DirectoriesThatAreThereAreNoError) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  EXPECT_TRUE(files.MakeDirectories().ok());
  EXPECT_TRUE(Exists("a/b/x.h5.h5m"));
  EXPECT_TRUE(files.MakeDirectories().ok());
  EXPECT_TRUE(files.SyncNamesAbove().ok());
}

TEST_F(HistoryFilesTest, AnEmptyHistoryIsMadeAnewAfterItWasRemoved) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  OpenHistory history(files, StoreKind::kRoot);
  ASSERT_TRUE(history.Make().ok());
  history.NoteNewName();
  history.RemoveEmpty();
  EXPECT_FALSE(Exists(files.directory()));
  EXPECT_FALSE(history.TakeNewNames());
  ASSERT_TRUE(history.Make().ok());
  EXPECT_TRUE(Exists(files.directory()));
}

TEST_F(HistoryFilesTest, NewNamesAreToBeSyncedOnce) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  OpenHistory history(files, StoreKind::kRoot);
  history.NoteNewName();
  EXPECT_TRUE(history.TakeNewNames());
  EXPECT_FALSE(history.TakeNewNames());
}

TEST_F(HistoryFilesTest, TheMarkOfAnOpenFileComesAndGoes) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  OpenHistory history(files, StoreKind::kRoot);
  history.ClearMark();
  history.SetMark();
  EXPECT_TRUE(Exists(files.OpenMarkName()));
  EXPECT_FALSE(history.TakeNewNames()) << "a root's mark is only a hint";
  history.ClearMark();
  EXPECT_FALSE(Exists(files.OpenMarkName()));
}

TEST_F(HistoryFilesTest, AMarkThatTheLoadFoundIsClearedToo) {
  const HistoryFiles files = Files(StoreKind::kRoot);
  OpenHistory(files, StoreKind::kRoot).SetMark();
  OpenHistory history(files, StoreKind::kRoot);
  history.FoundMark(true);
  history.ClearMark();
  EXPECT_FALSE(Exists(files.OpenMarkName()));
}

TEST_F(HistoryFilesTest, TheMarkOfOneFileMustSurviveWhatItsCutsSurvive) {
  const HistoryFiles files = Files(StoreKind::kOneFile);
  OpenHistory history(files, StoreKind::kOneFile);
  ASSERT_TRUE(history.Make().ok());
  history.SetMark();
  EXPECT_TRUE(history.TakeNewNames());
}

}  // namespace
}  // namespace h5mirror::store
