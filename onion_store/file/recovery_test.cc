// Cuts that were durable but not applied at a power loss, and a writer that continues over them.
#include <string>

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;

std::unique_ptr<Store> OpenByHand(Env& env) {
  StoreOptions options;
  options.background_threads = 0;
  options.page_size_bytes = kPage;
  return OpenStore(env, "/", options);
}

std::string HeadOf(FaultEnv& env, uint64_t size_bytes) {
  std::string head(size_bytes, '\0');
  const auto tree = env.OpenTree("/");
  EXPECT_TRUE((*(*tree)->Open("x.h5", OpenKind::kRead, 0))->ReadAt(0, absl::MakeSpan(head)).ok());
  return head;
}

// A cut of five pages became durable together with the next one, of two pages. No index has the
// first cut, and the apply of both clears all five pages. Bytes written beyond the two pages must
// survive that.
TEST(RecoveryTest, BytesBeyondATruncationThatIsNotAppliedAreKept) {
  for (const Unsynced unsynced : {Unsynced::kDropped, Unsynced::kKept}) {
    FaultEnv env;
    size_t at_durable = 0;
    {
      auto store = OpenByHand(env);
      Writer writer(*store->OpenOrCreateFile("x.h5", 0), SessionStart::kNewGeneration);
      ASSERT_TRUE(writer.Write(0, std::string(5 * kPage, 'a')).ok());
      ASSERT_TRUE(writer.Cut(BarrierKind::kTick).ok());
      ASSERT_TRUE(writer.Truncate(2 * kPage).ok());
      const auto cut = writer.Cut(BarrierKind::kSync, [&](const absl::StatusOr<DurableCut>& made) {
        EXPECT_TRUE(made.ok()) << made.status();
        at_durable = env.change_count();
      });
      ASSERT_TRUE(cut.ok()) << cut.status();
      while (store->RunBackground()) continue;
      ASSERT_NE(at_durable, 0u);
    }
    CrashPoint point;
    point.change_count = at_durable;
    point.data = point.names = unsynced;
    const auto crashed = env.Crash(point);
    auto store = OpenByHand(*crashed);
    Writer writer(*store->OpenFile("x.h5"), SessionStart::kContinue, std::string(2 * kPage, 'a'));
    ASSERT_TRUE(writer.begun().ok()) << writer.begun();
    ASSERT_TRUE(writer.Write(2 * kPage, std::string(4 * kPage, 'b')).ok());
    ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
    while (store->RunBackground()) continue;
    EXPECT_EQ(HeadOf(*crashed, 6 * kPage), writer.content());
    EXPECT_EQ(ReadVersion(writer.file(), 1), writer.content());
    ASSERT_TRUE(writer.End().ok());
  }
}

// Bytes that a killed server's writer left in a head before a new generation.
TEST(RecoveryTest, UncutBytesDoNotComeBackInAnOldHead) {
  FaultEnv env;
  std::unique_ptr<FaultEnv> killed;
  {
    auto store = OpenByHand(env);
    Writer writer(*store->OpenOrCreateFile("x.h5", 0), SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, std::string(kPage, 'a')).ok());
    ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
    while (store->RunBackground()) continue;
    ASSERT_TRUE(writer.Write(3 * kPage, std::string(kPage, 'b')).ok());
    killed = env.CopyNow();
  }
  {
    auto store = OpenByHand(*killed);
    Writer writer(*store->OpenFile("x.h5"), SessionStart::kNewGeneration);
    ASSERT_TRUE(writer.Write(0, std::string(kPage, 'c')).ok());
    ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
    while (store->RunBackground()) continue;
    ASSERT_TRUE(writer.End().ok());
  }
  CrashPoint point;
  point.change_count = killed->change_count();
  point.data = Unsynced::kDropped;
  const auto crashed = killed->Crash(point);
  auto store = OpenByHand(*crashed);
  const auto file = *store->OpenFile("x.h5");
  EXPECT_EQ(ReadVersion(*file, 1), std::string(kPage, 'a'));
  auto verify = *file->StartVerify({});
  for (bool is_done = false; !is_done;) {
    const auto progress = verify->Step();
    ASSERT_TRUE(progress.ok()) << progress.status();
    for (const Damage& damage : progress->found) ADD_FAILURE() << damage.file << damage.message;
    is_done = progress->done;
  }
}

// A lost writer left bytes that a sync has covered, and another writer makes a cut below them. The
// disk fails from the call numbered `call` on; 0: the first call that makes that cut durable.
// False: no call met the fault.
bool LoseWriterAndDisk(FaultEnv& env, uint64_t call) {
  auto store = OpenByHand(env);
  Writer lost(*store->OpenOrCreateFile("x.h5", 0), SessionStart::kNewGeneration);
  EXPECT_TRUE(lost.Write(0, std::string(kPage, 'a')).ok());
  EXPECT_TRUE(lost.Cut(BarrierKind::kCommit).ok());
  while (store->RunBackground()) continue;
  EXPECT_TRUE(lost.Write(kPage, std::string(kPage, 'a')).ok());
  EXPECT_TRUE(lost.Cut(BarrierKind::kCommit).ok());
  EXPECT_TRUE(lost.Write(3 * kPage, std::string(kPage, 'b')).ok());
  while (store->RunBackground()) continue;
  Writer writer(*store->OpenFile("x.h5"), SessionStart::kContinue, std::string(2 * kPage, 'a'));
  EXPECT_TRUE(writer.Write(0, std::string(kPage, 'c')).ok());
  EXPECT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  env.FailCalls(call, UINT64_MAX, absl::InternalError("EIO"));
  while (store->RunBackground()) continue;
  return env.fault_met();
}

std::string NewestOf(File& file) {
  const auto info = file.Info();
  EXPECT_TRUE(info.ok()) << info.status();
  return info.ok() ? ReadVersion(file, info->newest_version.version) : "";
}

// If the sync fails, memory shows the head without those bytes, but the disk still has them.
TEST(RecoveryTest, BytesThatAFailedSyncLeftOnTheDiskDoNotComeBackBetweenNewOnes) {
  bool has_failed = true;
  for (uint64_t call = 0; has_failed; ++call) {
    SCOPED_TRACE(call);
    FaultEnv env;
    has_failed = LoseWriterAndDisk(env, call);
    env.FailCalls(0, 0, absl::OkStatus());
    std::string content;
    {
      auto store = OpenByHand(env);
      const auto file = *store->OpenFile("x.h5");
      Writer writer(file, SessionStart::kContinue, NewestOf(*file));
      ASSERT_TRUE(writer.Write(6 * kPage, std::string(kPage, 'd')).ok());
      ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
      while (store->RunBackground()) continue;
      content = writer.content();
    }
    CrashPoint point;
    point.change_count = env.change_count();
    point.data = Unsynced::kDropped;
    const auto crashed = env.Crash(point);
    auto store = OpenByHand(*crashed);
    EXPECT_EQ(NewestOf(**store->OpenFile("x.h5")), content);
  }
}

}  // namespace
}  // namespace h5mirror::store
