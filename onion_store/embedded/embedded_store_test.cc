#include "onion_store/embedded/embedded_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

class EmbeddedStoreTest : public testing::Test {
 protected:
  EmbeddedStoreTest() {
    std::string pattern = testing::TempDir() + "/embedded_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
    head_ = root_ / "x.h5";
  }
  ~EmbeddedStoreTest() override { std::filesystem::remove_all(root_); }

  absl::StatusOr<std::unique_ptr<EmbeddedLease>> Take(LockKind kind = LockKind::kExclusive,
                                                      absl::Duration timeout = {}) {
    return EmbeddedLease::Take(Env::Posix(), head_, kind, "test", timeout);
  }
  std::unique_ptr<EmbeddedStore> Open() {
    auto lease = Take();
    EXPECT_TRUE(lease.ok()) << lease.status();
    auto store = EmbeddedStore::Open(*std::move(lease), {});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  std::shared_ptr<File> FileOf(Store& store) {
    auto file = store.OpenOrCreateFile("x.h5", 0);
    EXPECT_TRUE(file.ok()) << file.status();
    return *file;
  }
  // Makes one version, in a store of its own.
  void Commit(const std::string& content) {
    auto store = Open();
    Writer writer(FileOf(*store), SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, content).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(store->Close(absl::Seconds(30)).ok());
  }
  std::string Head() {
    std::ifstream in(head_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  absl::StatusOr<std::shared_ptr<File>> OpenToRead() {
    return OpenEmbeddedToRead(Env::Posix(), head_, "test", absl::Seconds(5), &notice_);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::filesystem::path root_, head_;
  std::string notice_;
};

TEST_F(EmbeddedStoreTest, VersionsAreKeptBesideTheFileAndNothingElse) {
  Commit(std::string(10000, 'a'));
  Commit(std::string(9000, 'b'));
  EXPECT_EQ(Head(), std::string(9000, 'b'));
  EXPECT_THAT(Names(), testing::UnorderedElementsAre("x.h5", "x.h5.h5m"));
  auto file = OpenToRead();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadVersion(**file, 1), std::string(10000, 'a'));
  EXPECT_EQ(ReadVersion(**file, 2), std::string(9000, 'b'));
}

TEST_F(EmbeddedStoreTest, AnOpenThatKeepsNothingLeavesNoTrace) {
  ASSERT_TRUE(Take().ok());
  EXPECT_TRUE(Names().empty());
  {
    auto store = Open();
    Writer writer(FileOf(*store), SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, "uncut").ok());
    ASSERT_TRUE(writer.End().ok());
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(EmbeddedStoreTest, ASecondWriterIsToldWhoTheFirstIs) {
  auto first = Take();
  ASSERT_TRUE(first.ok());
  const absl::Status second = Take().status();
  EXPECT_TRUE(absl::IsUnavailable(second));
  EXPECT_THAT(second.message(), HasSubstr("in use by test (pid " + std::to_string(getpid())));
  first->reset();
  EXPECT_TRUE(Take().ok());
}

TEST_F(EmbeddedStoreTest, ReadersShareTheHistoryAndKeepWritersOut) {
  Commit("one");
  auto a = OpenToRead(), b = OpenToRead();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_THAT(Take().status().message(), HasSubstr("by a reader of its versions"));
  EXPECT_EQ(ReadVersion(**a, 1), "one");
  a->reset();
  b->reset();
  EXPECT_TRUE(Take().ok());
}

TEST_F(EmbeddedStoreTest, AChildThatLetsGoLeavesTheLeaseToItsParent) {
  auto lease = Take();
  ASSERT_TRUE(lease.ok());
  const pid_t child = fork();
  if (child == 0) {
    (*lease)->LeaveToParent();
    const bool refused =
        !EmbeddedLease::Take(Env::Posix(), head_, LockKind::kExclusive, "", {}).ok();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(EmbeddedStoreTest, APlainFileBecomesTheFirstVersion) {
  std::ofstream(head_) << "plain";
  {
    auto store = Open();
    auto file = FileOf(*store);
    Writer writer(file, SessionStart::kContinue, "plain");
    ASSERT_TRUE(writer.Write(1, "L").ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    EXPECT_EQ(file->GetVersion(1)->provenance.comment, "found");
    ASSERT_TRUE(store->Close(absl::Seconds(30)).ok());
  }
  auto file = OpenToRead();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ReadVersion(**file, 1), "plain");
  EXPECT_EQ(Head(), "pLain");
}

TEST_F(EmbeddedStoreTest, AFileOfAServerIsRefused) {
  std::filesystem::create_directories(root_ / ".h5mirror");
  std::ofstream(root_ / ".h5mirror/format") << "h5mirror store 1\n";
  EXPECT_TRUE(absl::IsFailedPrecondition(Take().status()));
  EXPECT_THAT(Take().status().message(), HasSubstr("the root of an h5mirrord"));
  std::filesystem::remove_all(root_ / ".h5mirror");
  std::filesystem::create_directories(root_ / "x.h5.h5m");
  for (const char* record : {"client.json", "client-0123abcd.json"}) {
    std::ofstream(root_ / "x.h5.h5m" / record) << "{}";
    EXPECT_THAT(Take().status().message(), HasSubstr("is mirrored to a server")) << record;
    std::filesystem::remove(root_ / "x.h5.h5m" / record);
  }
}

TEST_F(EmbeddedStoreTest, AnOutsideChangeBecomesAVersionAndIsTold) {
  Commit(std::string(10000, 'a'));
  std::fstream(head_, std::ios::in | std::ios::out) << "outside";
  auto file = OpenToRead();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(notice_, HasSubstr("what it left is version 2"));
  EXPECT_EQ(ReadVersion(**file, 2), "outside" + std::string(9993, 'a'));
  auto old = (*file)->OpenVersion(1);
  std::string bytes(100, '\0');
  EXPECT_TRUE(absl::IsDataLoss((*old)->Read(0, absl::MakeSpan(bytes))));
}

// Leaves a journal of a cut from "before" to "after!". The head holds nothing of the cut yet.
void LeaveJournal(const std::filesystem::path& head) {
  auto tree = *Env::Posix().OpenTree(head.parent_path());
  ASSERT_TRUE(tree->MakeDirectory("x.h5.h5m", 0700).ok());
  ASSERT_TRUE(WriteAt(**tree->Open("x.h5", OpenKind::kCreate, 0600), 0, "before").ok());
  auto unwritable = *tree->Open("x.h5", OpenKind::kRead, 0);
  JournalCut cut;
  cut.inode = unwritable->Stat()->inode;
  cut.size_before = cut.size_after = 6;
  cut.pages.push_back({0, "before", "after!"});
  CutJournal journal(*tree, "x.h5", JournalSync::kProcess);
  EXPECT_FALSE(journal.Commit(*unwritable, cut).ok());
  ASSERT_TRUE(ReadJournal(*tree, "x.h5")->is_committed);
}

TEST_F(EmbeddedStoreTest, AnEditThatCannotBeFinishedYetIsNotForgotten) {
  LeaveJournal(head_);
  auto tree = *Env::Posix().OpenTree(root_);
  {
    const auto reader = tree->Lock("x.h5", LockKind::kShared);
    ASSERT_TRUE(reader.ok());
    for (int i = 0; i < 2; ++i) {
      const auto lease = Take(LockKind::kExclusive, absl::Milliseconds(50));
      EXPECT_TRUE(absl::IsUnavailable(lease.status())) << lease.status();
      EXPECT_THAT(std::string(lease.status().message()), HasSubstr("another program has it open"));
    }
    EXPECT_TRUE(*tree->Exists("x.h5.h5m/open"));
    EXPECT_TRUE(*tree->Exists("x.h5.h5m/journal"));
  }
  ASSERT_TRUE(Take().ok());
  EXPECT_EQ(Head(), "after!");
  EXPECT_THAT(Names(), testing::ElementsAre("x.h5"));
}

TEST_F(EmbeddedStoreTest, AHeadThatACrashLeftBehindIsHealed) {
  Commit(std::string(10000, 'a'));
  const pid_t child = fork();
  if (child == 0) {  // It dies with its cut durable, perhaps not applied.
    auto store = Open();
    Writer writer(FileOf(*store), SessionStart::kContinue, std::string(10000, 'a'));
    const bool ok = writer.Write(5, "new").ok() && writer.CutDurably(BarrierKind::kCommit).ok();
    (void)writer.Write(0, "uncut").ok();
    kill(getpid(), ok ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(*Take()->get()->IsUnclean());
  ASSERT_TRUE(HealEmbedded(Env::Posix(), head_, "test", {}, absl::Seconds(30), &notice_).ok());
  EXPECT_EQ(Head(), "aaaaanew" + std::string(9992, 'a'));
  EXPECT_FALSE(*Take()->get()->IsUnclean());
  EXPECT_EQ(notice_, "");
}

TEST_F(EmbeddedStoreTest, AHistoryMovesUnderARootAndBack) {
  Commit("one");
  {
    auto lease = Take();
    EXPECT_TRUE(absl::IsUnavailable(OpenStore(Env::Posix(), root_)->OpenFile("x.h5").status()));
  }
  std::filesystem::remove_all(root_ / ".h5mirror");
  {
    auto server = OpenStore(Env::Posix(), root_);
    auto file = server->OpenFile("x.h5");
    ASSERT_TRUE(file.ok()) << file.status();
    Writer writer(*file, SessionStart::kContinue, "one");
    ASSERT_TRUE(writer.Write(0, "two").ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(server->Close(absl::Seconds(30)).ok());
  }
  std::filesystem::remove_all(root_ / ".h5mirror");
  auto file = OpenToRead();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(notice_, "");
  EXPECT_EQ(ReadVersion(**file, 1), "one");
  EXPECT_EQ(ReadVersion(**file, 2), "two");
}

TEST_F(EmbeddedStoreTest, OnlyItsOwnNameIsServed) {
  auto store = Open();
  EXPECT_TRUE(absl::IsNotFound(store->OpenOrCreateFile("y.h5", 0).status()));
  EXPECT_TRUE(absl::IsUnimplemented(store->Move("x.h5", "y.h5")));
  EXPECT_THAT(store->Remove("x.h5", {}, {}).status().message(), HasSubstr("rm -r"));
  EXPECT_TRUE(store->List("", "", 10)->empty());
}

TEST_F(EmbeddedStoreTest, AForkWaitsUntilTheBackgroundIsStill) {
  auto store = Open();
  auto file = FileOf(*store);
  Writer writer(file, SessionStart::kContinue);
  ASSERT_TRUE(writer.Write(0, std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  ASSERT_TRUE(store->PrepareFork(absl::Seconds(30)));
  store->ParentAfterFork();
  ASSERT_TRUE(file->WaitApplied(absl::Seconds(30)).ok());
  EXPECT_EQ(file->Info()->applied_cut, file->Info()->last_cut);
  ASSERT_TRUE(writer.End().ok());
}

}  // namespace
}  // namespace h5mirror::store
