// Forks of versions, and promotions of forks.
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPage = 512;

class ForkTest : public testing::Test {
 protected:
  // run.h5 has two versions: "a", and "a" with a change.
  ForkTest() : store_(OpenStore(env_, "/")), run_(*store_->OpenOrCreateFile("run.h5", kPage)) {
    old_ = Commit(run_, 0, std::string(20 * kPage, 'a'));
    newest_ = Commit(run_, 3 * kPage + 5, std::string(kPage, 'b'));
  }

  // Makes one more version, and returns all of its bytes.
  std::string Commit(const std::shared_ptr<File>& file, uint64_t offset, const std::string& bytes,
                     SessionStart start = SessionStart::kContinue, uint64_t size_bytes = 0) {
    const auto before = file->GetVersion(0);
    Writer writer(file, start, before.ok() ? ReadVersion(*file, 0) : "");
    EXPECT_TRUE(writer.begun().ok()) << writer.begun();
    EXPECT_TRUE(writer.Write(offset, bytes).ok());
    if (size_bytes != 0) {
      EXPECT_TRUE(writer.Truncate(size_bytes).ok());
    }
    EXPECT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    EXPECT_TRUE(writer.End().ok());
    EXPECT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
    return writer.content();
  }
  absl::StatusOr<VersionInfo> Fork(VersionNumber version, const std::string& name,
                                   uint8_t request = 1) {
    ForkRequest how;
    how.provenance.claimed_user = "anna";
    how.request_id = {request};
    how.access.owner = "unix:anna";
    return store_->Fork(*run_, version, name, how);
  }
  std::shared_ptr<File> ForkOf(VersionNumber version) {
    const auto made = Fork(version, "trial.h5");
    EXPECT_TRUE(made.ok()) << made.status();
    return *store_->OpenFile("trial.h5");
  }
  absl::StatusOr<Promotion> Promote(File& fork, uint8_t request, VersionNumber version = 0,
                                    PromoteMode mode = PromoteMode::kMake) {
    PromoteRequest how;
    how.version = version;
    how.request_id = {request};
    how.mode = mode;
    return run_->Promote(fork, how);
  }
  // Expects that the newest version of run.h5 has these bytes, both in the stage and in the head.
  void ExpectNewest(const std::string& bytes) {
    EXPECT_TRUE(ReadVersion(*run_, 0) == bytes);
    ASSERT_TRUE(run_->WaitApplied(absl::Seconds(60)).ok());
    EXPECT_TRUE(ReadVersion(*run_, 0) == bytes);
  }
  void Prune(File& file, std::vector<VersionNumber> versions) {
    auto job = file.StartPrune(std::move(versions));
    ASSERT_TRUE(job.ok()) << job.status();
    for (bool done = false; !done;) {
      const auto step = (*job)->Step();
      ASSERT_TRUE(step.ok()) << step.status();
      done = step->done;
    }
  }
  void Reopen() {
    run_.reset();
    ASSERT_TRUE(store_->Close(absl::Seconds(60)).ok());
    store_ = OpenStore(env_, "/");
    run_ = *store_->OpenFile("run.h5");
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> run_;
  std::string old_, newest_;
};

TEST_F(ForkTest, BeginsWithTheVersionAndTellsOfIt) {
  // FaultEnv shares blocks into every second file.
  for (const char* name : {"d/one.h5", "d/two.h5"}) {
    for (const VersionNumber version : {1, 2}) {
      const std::string forked = std::string(name) + std::to_string(version) + ".h5";
      const auto made = Fork(version, forked);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(made->version, 1);
      EXPECT_EQ(made->generation, 1);
      EXPECT_EQ(made->provenance.comment, "fork of run.h5@" + std::to_string(version));
      ASSERT_TRUE(made->source.has_value());
      EXPECT_EQ(made->source->kind, SourceKind::kFork);
      EXPECT_EQ(made->source->file_id, run_->file_id());
      EXPECT_EQ(made->source->version, version);
      EXPECT_EQ(made->source->cut, run_->GetVersion(version)->cut);
      EXPECT_EQ(made->source->claimed_user, "anna");
      const auto fork = *store_->OpenFile(forked);
      EXPECT_NE(fork->file_id(), run_->file_id());
      EXPECT_TRUE(ReadVersion(*fork, 1) == (version == 1 ? old_ : newest_));
      EXPECT_EQ(fork->Info()->origin, Origin());
      EXPECT_EQ(fork->Info()->page_size_bytes, kPage);
      EXPECT_EQ(store_->OwnerOf(forked)->owner, "unix:anna");
    }
  }
}

TEST_F(ForkTest, SharesNothingThatEitherChanges) {
  const auto fork = ForkOf(2);
  const std::string there = Commit(fork, 0, "the fork");
  const std::string here = Commit(run_, 0, "the file");
  EXPECT_TRUE(ReadVersion(*run_, 2) == newest_);
  EXPECT_TRUE(ReadVersion(*run_, 3) == here);
  EXPECT_TRUE(ReadVersion(*fork, 1) == newest_);
  EXPECT_TRUE(ReadVersion(*fork, 2) == there);
}

TEST_F(ForkTest, OutlivesItsSourceAndItsFirstVersion) {
  const auto source = Fork(1, "trial.h5")->source;
  {
    const auto fork = *store_->OpenFile("trial.h5");
    Commit(fork, 0, "more");
    Prune(*run_, {1});
    EXPECT_TRUE(ReadVersion(*fork, 1) == old_);
    Prune(*fork, {1});
  }
  run_.reset();
  ASSERT_TRUE(store_->Remove("run.h5", {}, absl::ZeroDuration()).ok());
  ASSERT_TRUE(store_->Close(absl::Seconds(60)).ok());
  store_ = OpenStore(env_, "/");
  const auto fork = *store_->OpenFile("trial.h5");
  EXPECT_TRUE(absl::IsOutOfRange(fork->GetVersion(1).status()));
  EXPECT_EQ(fork->Info()->forked_from, source);
  EXPECT_EQ(*fork->ForkedFrom(), source);
}

TEST_F(ForkTest, ARepeatedRequestGetsTheSameFork) {
  const auto made = Fork(1, "trial.h5", 7);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto again = Fork(1, "trial.h5", 7);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cut, made->cut);
  EXPECT_EQ(again->source, made->source);
  EXPECT_TRUE(absl::IsAlreadyExists(Fork(1, "trial.h5", 8).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(Fork(1, "run.h5", 8).status()));
}

TEST_F(ForkTest, DoesNotTakeAPlainFilesPlace) {
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("plain.h5", OpenKind::kCreate, 0600), 0, "plain").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Fork(1, "plain.h5").status()));
  EXPECT_FALSE(*tree->Exists("plain.h5.h5m"));
  EXPECT_TRUE(absl::IsInvalidArgument(Fork(1, "../x.h5").status()));
  EXPECT_TRUE(absl::IsNotFound(Fork(9, "x.h5").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile("x.h5").status()));
}

TEST_F(ForkTest, OfADamagedVersionLeavesNothing) {
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("run.h5", OpenKind::kWrite, 0), 7 * kPage, "rot").ok());
  const absl::Status refused = Fork(2, "trial.h5").status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("read page 7 of run.h5@2"));
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile("trial.h5").status()));
  EXPECT_FALSE(store_->OwnerOf("trial.h5")->is_there);
  EXPECT_FALSE(*tree->Exists("trial.h5"));
  EXPECT_FALSE(*tree->Exists("trial.h5.h5m"));
}

// An error names the operating system's reason and the path, of the source and of the fork.
TEST_F(ForkTest, ARefusalOfTheSystemIsToldWithItsPath) {
  const auto expect_refused = [](const absl::Status& refused, const std::string& path) {
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(path));
  };
  // From now on version 2 is in an old head that is not open.
  Commit(run_, 0, "anew", SessionStart::kNewGeneration);
  Reopen();
  for (const std::string path : {"run.h5.h5m/head-1", "trial.h5.h5m/gen-1", "trial.h5.h5m/index"}) {
    env_.FailOpensOf(path, ErrnoToStatus(EPERM, "open " + path));
    expect_refused(Fork(2, "trial.h5").status(), path);
    env_.FailOpensOf("", absl::OkStatus());
  }
  EXPECT_TRUE(Fork(2, "trial.h5").ok()) << "with the right it can be done";
  for (const std::string path : {"run.h5", "run.h5.h5m/index"}) {
    run_.reset();
    ASSERT_TRUE(store_->Close(absl::Seconds(60)).ok());
    env_.FailOpensOf(path, ErrnoToStatus(EPERM, "open " + path));
    store_ = OpenStore(env_, "/");
    expect_refused(store_->OpenFile("run.h5").status(), path);
    env_.FailOpensOf("", absl::OkStatus());
  }
}

TEST_F(ForkTest, ACallerThatGoesEndsItWithoutATrace) {
  ForkRequest fork;
  fork.is_cancelled = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(store_->Fork(*run_, 2, "trial.h5", fork).status()));
  EXPECT_FALSE(*(*env_.OpenTree("/"))->Exists("trial.h5.h5m"));
  const auto trial = ForkOf(2);
  Commit(trial, 0, "changed");
  for (const PromoteMode mode : {PromoteMode::kMake, PromoteMode::kTry}) {
    PromoteRequest promote;
    promote.mode = mode;
    promote.is_cancelled = [] { return true; };
    EXPECT_TRUE(absl::IsCancelled(run_->Promote(*trial, promote).status()));
    ExpectNewest(newest_);
  }
  EXPECT_TRUE(Promote(*trial, 1).ok());
}

// A large version beside a nearly full disk.
class ForkOnAFullDiskTest : public ForkTest {
 protected:
  static constexpr uint64_t kBytes = 4 << 20;
  static constexpr uint64_t kFreeBytes = 1 << 20;  // enough for all but a copy
  ForkOnAFullDiskTest() {
    large_ = Commit(run_, 0, std::string(kBytes, 'c'));
    env_.SetCapacity(env_.used_bytes() + kFreeBytes);
  }
  std::string large_;
};

TEST_F(ForkOnAFullDiskTest, ACopyThatDoesNotFitIsRefusedBeforeAnythingIsMade) {
  env_.SetSharesBlocks(false);
  const absl::Status refused = Fork(3, "new/trial.h5").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_FALSE(*(*env_.OpenTree("/"))->Exists("new"));
  for (const std::string& part :
       {"new/trial.h5: a fork of run.h5@3 copies " + std::to_string(kBytes) + " bytes (4 MiB)",
        std::string("are free on the server's disk"), std::string("make room there")}) {
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->OpenFile("new/trial.h5").status()));
  env_.SetCapacity(UINT64_MAX);
  ASSERT_TRUE(Fork(3, "new/trial.h5").ok()) << "with room the name can be used";
  EXPECT_TRUE(ReadVersion(**store_->OpenFile("new/trial.h5"), 1) == large_);
}

TEST_F(ForkOnAFullDiskTest, SharedBlocksNeedNoRoom) {
  env_.SetSharesBlocks(true);
  const auto made = Fork(3, "trial.h5");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(ReadVersion(**store_->OpenFile("trial.h5"), 1) == large_);
}

TEST_F(ForkOnAFullDiskTest, HolesDoNotCount) {
  env_.SetCapacity(UINT64_MAX);
  Commit(run_, 0, std::string(kBytes / 2, 'd'), SessionStart::kNewGeneration, 2 * kBytes);
  env_.SetSharesBlocks(false);
  env_.SetCapacity(env_.used_bytes() + kFreeBytes);
  const absl::Status refused = Fork(4, "trial.h5").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("copies " + std::to_string(kBytes / 2) + " bytes (2 MiB)"));
}

TEST_F(ForkTest, ItsNameIsTakenWhileItIsMade) {
  const auto other = *store_->OpenOrCreateFile("other.h5", kPage);
  Commit(other, 0, "other");
  int calls = 0;
  ForkRequest fork;
  fork.request_id = {1};
  fork.is_cancelled = [&] {
    ++calls;
    EXPECT_TRUE(absl::IsAlreadyExists(Fork(1, "trial.h5", 2).status()));
    EXPECT_TRUE(absl::IsAlreadyExists(store_->Move("other.h5", "trial.h5")));
    return false;
  };
  EXPECT_TRUE(store_->Fork(*run_, 2, "trial.h5", fork).ok());
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(ReadVersion(**store_->OpenFile("trial.h5"), 1) == newest_);
  EXPECT_TRUE(store_->OpenFile("other.h5").ok());
}

TEST_F(ForkTest, DuringAWritersAppliesIsTheVersion) {
  Writer writer(run_, SessionStart::kContinue, newest_);
  ASSERT_TRUE(writer.Write(kPage, std::string(9 * kPage, 'w')).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kSync).ok());
  const auto fork = ForkOf(2);
  ASSERT_TRUE(writer.Write(11 * kPage, std::string(30 * kPage, 'x')).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  EXPECT_TRUE(ReadVersion(*fork, 1) == newest_);
  EXPECT_TRUE(Fork(3, "third.h5").ok()) << "of what may not be in the head yet";
  EXPECT_TRUE(ReadVersion(**store_->OpenFile("third.h5"), 1) == writer.content());
  ASSERT_TRUE(writer.End().ok());
}

TEST_F(ForkTest, PromotionsFollowEachOther) {
  const auto fork = ForkOf(2);
  const std::string first = Commit(fork, 10 * kPage, std::string(2 * kPage, 'f'));
  const auto made = Promote(*fork, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->version.version, 3);
  EXPECT_EQ(made->promoted, 2);
  EXPECT_FALSE(made->unchanged);
  EXPECT_EQ(made->differing_bytes, 2 * kPage);
  EXPECT_EQ(made->version.provenance.comment, "promotion of trial.h5@2");
  ASSERT_TRUE(made->version.source.has_value());
  EXPECT_EQ(made->version.source->kind, SourceKind::kPromotion);
  EXPECT_EQ(made->version.source->file_id, fork->file_id());
  ExpectNewest(first);
  EXPECT_TRUE(ReadVersion(*run_, 2) == newest_);
  const std::string second = Commit(fork, 0, "again");
  ASSERT_EQ(Promote(*fork, 2)->version.version, 4);
  ExpectNewest(second);
}

TEST_F(ForkTest, PromotionShortensAndLengthens) {
  const auto fork = ForkOf(2);
  const std::string shorter =
      Commit(fork, 0, "short", SessionStart::kContinue, /*size_bytes=*/5 * kPage + 3);
  ASSERT_TRUE(Promote(*fork, 1).ok());
  ExpectNewest(shorter);
  const std::string longer = Commit(fork, 90 * kPage + 7, std::string(3 * kPage, 'l'));
  ASSERT_TRUE(Promote(*fork, 2).ok());
  ExpectNewest(longer);
  ASSERT_TRUE(Promote(*fork, 3, 1).ok()) << "back to what was forked";
  ExpectNewest(newest_);
}

TEST_F(ForkTest, PromotionOfAForkThatBeganAnewComparesAll) {
  const auto fork = ForkOf(2);
  std::string anew = newest_;
  anew.replace(2 * kPage, 4, "anew");
  Commit(fork, 0, anew, SessionStart::kNewGeneration);
  const auto made = Promote(*fork, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->differing_bytes, kPage);
  ExpectNewest(anew);
}

TEST_F(ForkTest, PromotionOfAForkWithoutItsFirstVersionComparesAll) {
  const auto fork = ForkOf(2);
  const std::string changed = Commit(fork, 6 * kPage, "changed");
  Prune(*fork, {1});
  const auto made = Promote(*fork, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->differing_bytes, kPage);
  ExpectNewest(changed);
}

TEST_F(ForkTest, PromotionIsRefusedWhereTheFileHasMovedOn) {
  const auto fork = ForkOf(1);
  Commit(fork, 0, "changed");
  const absl::Status refused = Promote(*fork, 1).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("was forked from its version 1: the newest is version 2; compare: "
                        "h5mirror diff run.h5@1 run.h5@latest; or take one object over: "
                        "h5mirror restore trial.h5@latest:/PATH --into LOCAL --replace"));
  EXPECT_EQ(run_->GetVersion(0)->version, 2);
}

TEST_F(ForkTest, APromotionThatWasRolledBackCanBeMadeAgain) {
  const auto fork = ForkOf(2);
  const std::string first = Commit(fork, 0, "first");
  ASSERT_EQ(Promote(*fork, 1)->version.version, 3);
  ASSERT_TRUE(run_->Rollback(2, {}, {91}).ok());
  ExpectNewest(newest_);
  const std::string second = Commit(fork, 6 * kPage, "second");
  EXPECT_EQ(Promote(*fork, 2, 0, PromoteMode::kTry)->differing_bytes, 2 * kPage);
  const auto again = Promote(*fork, 2);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->version.version, 5);
  EXPECT_EQ(again->differing_bytes, 2 * kPage);
  ExpectNewest(second);
  // Only the last promotion is taken back: the file is then at the first promotion's version.
  ASSERT_TRUE(run_->Rollback(3, {}, {92}).ok());
  ExpectNewest(first);
  Reopen();
  const auto third = Promote(**store_->OpenFile("trial.h5"), 3);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->differing_bytes, kPage);
  ExpectNewest(second);
}

TEST_F(ForkTest, PromotionIsRefusedWhereARollbackLedElsewhere) {
  const auto fork = ForkOf(2);
  Commit(fork, 0, "changed");
  ASSERT_TRUE(Promote(*fork, 1).ok());
  ASSERT_TRUE(run_->Rollback(1, {}, {91}).ok());
  EXPECT_TRUE(absl::IsAborted(Promote(*fork, 2).status()));
  ExpectNewest(old_);
  // As long as that version; the bytes differ only where the fork was not changed.
  ASSERT_TRUE(run_->Rollback(2, {}, {92}).ok());
  Commit(run_, 15 * kPage, "other");
  EXPECT_TRUE(absl::IsAborted(Promote(*fork, 3).status()));
  Commit(run_, 15 * kPage, newest_.substr(15 * kPage, 5));
  EXPECT_TRUE(Promote(*fork, 4).ok()) << "its bytes are back";
}

TEST_F(ForkTest, AFileThatWasMadeAnewWithTheSameBytesCanBePromotedTo) {
  const auto fork = ForkOf(2);
  const std::string changed = Commit(fork, 0, "changed");
  Commit(run_, 0, newest_, SessionStart::kNewGeneration);
  ASSERT_TRUE(Promote(*fork, 1).ok());
  ExpectNewest(changed);
}

TEST_F(ForkTest, PromotionIsRefusedBehindALaterCut) {
  const auto fork = ForkOf(2);
  Commit(fork, 0, "changed");
  Writer writer(run_, SessionStart::kContinue, newest_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Promote(*fork, 1).status())) << "it is being written";
  ASSERT_TRUE(writer.Write(0, "later").ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kSync).ok());
  ASSERT_TRUE(writer.End().ok());
  const absl::Status refused = Promote(*fork, 1).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the newest is version 2 and later cuts"));
}

TEST_F(ForkTest, PromotionNeedsAForkOfThatFile) {
  const auto other = *store_->OpenOrCreateFile("other.h5", kPage);
  Commit(other, 0, "other");
  EXPECT_TRUE(absl::IsFailedPrecondition(Promote(*other, 1).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Promote(*run_, 1).status()));
  const auto fork = ForkOf(2);
  const absl::Status refused = other->Promote(*fork, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("of the one that was run.h5 then"));
}

TEST_F(ForkTest, ATriedPromotionMakesNothing) {
  const auto fork = ForkOf(2);
  Commit(fork, 6 * kPage, "changed");
  const auto tried = Promote(*fork, 1, 0, PromoteMode::kTry);
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_EQ(tried->differing_bytes, kPage);
  EXPECT_EQ(tried->version.version, 2);
  EXPECT_EQ(run_->GetVersion(0)->version, 2);
  EXPECT_TRUE(Promote(*fork, 1, 1)->unchanged) << "what was forked is there";
  EXPECT_EQ(run_->GetVersion(0)->version, 2);
}

TEST_F(ForkTest, ARepeatedPromotionGetsTheSameVersion) {
  const auto fork = ForkOf(2);
  Commit(fork, 0, "changed");
  const auto made = Promote(*fork, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto again = Promote(*fork, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->version.version, made->version.version);
  EXPECT_EQ(again->promoted, 2);
  EXPECT_TRUE(Promote(*fork, 2)->unchanged);
}

TEST_F(ForkTest, PromotionGoesOnAfterARestartAndAMove) {
  {
    const auto fork = ForkOf(2);
    Commit(fork, 0, "changed");
    ASSERT_TRUE(Promote(*fork, 1).ok());
    Commit(fork, 2 * kPage, "more");
  }
  Reopen();
  run_.reset();
  ASSERT_TRUE(store_->Move("run.h5", "d/moved.h5").ok());
  run_ = *store_->OpenFile("d/moved.h5");
  const auto fork = *store_->OpenFile("trial.h5");
  const auto made = Promote(*fork, 2);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->version.version, 4);
  EXPECT_EQ(made->differing_bytes, kPage);
  ExpectNewest(ReadVersion(*fork, 0));
}

TEST_F(ForkTest, OfTwoPromotionsAtOnceOneLoses) {
  for (const char* name : {"one.h5", "two.h5"}) {
    ASSERT_TRUE(Fork(2, name).ok());
    Commit(*store_->OpenFile(name), 0, name);
  }
  std::vector<absl::Status> ends(2);
  std::vector<std::thread> threads;
  for (const int i : {0, 1}) {
    threads.emplace_back([this, i, &ends] {
      const auto fork = *store_->OpenFile(i == 0 ? "one.h5" : "two.h5");
      ends[i] = Promote(*fork, static_cast<uint8_t>(i + 1)).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(ends[0].ok(), ends[1].ok()) << ends[0] << ", " << ends[1];
  EXPECT_TRUE(absl::IsAborted(ends[ends[0].ok() ? 1 : 0]));
  EXPECT_EQ(run_->GetVersion(0)->version, 3);
  ExpectNewest(ReadVersion(**store_->OpenFile(ends[0].ok() ? "one.h5" : "two.h5"), 2));
}

TEST_F(ForkTest, PromotionOfADamagedForkChangesNothing) {
  const auto fork = ForkOf(2);
  Commit(fork, 6 * kPage, std::string(kPage, 'c'));
  auto tree = *env_.OpenTree("/");
  ASSERT_TRUE(WriteAt(**tree->Open("trial.h5", OpenKind::kWrite, 0), 6 * kPage, "rot").ok());
  const absl::Status refused = Promote(*fork, 1).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_EQ(run_->GetVersion(0)->version, 2);
  ExpectNewest(newest_);
  Commit(run_, 0, "the file goes on");
}

// Each call of a fork fails once: then there is a whole fork or none, and the name can be used.
TEST(FailingForkTest, LeavesAWholeForkOrNone) {
  uint64_t call = 0;
  for (bool met = true; met; ++call) {
    FaultEnv env;
    auto store = OpenStore(env, "/");
    auto file = *store->OpenOrCreateFile("run.h5", kPage);
    Writer writer(file, SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, std::string(9 * kPage, 'a')).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
    ForkRequest request;
    request.request_id = {1};
    env.FailCall(call, absl::InternalError("EIO"));
    const auto made = store->Fork(*file, 1, "trial.h5", request);
    met = env.fault_met();
    env.FailCalls(0, 0, absl::OkStatus());
    file.reset();
    store.reset();  // The fault may have made the source's object unusable.
    store = OpenStore(env, "/");
    if (made.ok()) {
      EXPECT_TRUE(ReadVersion(**store->OpenFile("trial.h5"), 1) == writer.content()) << call;
    }
    file = *store->OpenFile("run.h5");
    const auto again = store->Fork(*file, 1, "trial.h5", request);
    ASSERT_TRUE(again.ok()) << again.status() << " after call " << call;
    EXPECT_EQ(again->source->file_id, file->file_id());
    EXPECT_TRUE(ReadVersion(**store->OpenFile("trial.h5"), 1) == writer.content()) << call;
  }
  EXPECT_GT(call, 15);
}

}  // namespace
}  // namespace h5mirror::store
