// The cost of an open that makes no cut: nothing is written. Each sync takes milliseconds on a
// disk.
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/fault_env.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

std::unique_ptr<Store> OpenByHand(Env& env, const std::filesystem::path& root = "/") {
  StoreOptions options;
  options.background_threads = 0;
  return OpenStore(env, root, options);
}

void MakeVersion(Store& store, const std::string& bytes) {
  Writer writer(*store.OpenOrCreateFile("x.h5", 0), SessionStart::kNewGeneration);
  ASSERT_TRUE(writer.Write(0, bytes).ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  while (store.RunBackground()) continue;
  ASSERT_TRUE(writer.End().ok());
  while (store.RunBackground()) continue;
}

class OpenToReadTest : public testing::Test {
 protected:
  OpenToReadTest() {
    std::string pattern = testing::TempDir() + "/open_to_read_test.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~OpenToReadTest() override { std::filesystem::remove_all(root_); }

  CountingEnv env_;
  std::filesystem::path root_;
};

TEST_F(OpenToReadTest, OfAFileThatWasClosedTheSecondLifeSyncsNothing) {
  MakeVersion(*OpenByHand(env_, root_), "bytes");
  // The first open after the writer moves the index's log into its database.
  for (const int most : {2, 0, 0}) {
    const auto store = OpenByHand(env_, root_);
    env_.counts().Clear();
    const auto file = *store->OpenFile("x.h5");
    EXPECT_EQ(ReadVersion(*file, 1), "bytes");
    while (store->RunBackground()) continue;
    EXPECT_LE(env_.counts().syncs.load(), most);
  }
}

TEST_F(OpenToReadTest, AWriterThatComesLaterGoesOnWithTheOpenFile) {
  MakeVersion(*OpenByHand(env_, root_), "bytes");
  const auto store = OpenByHand(env_, root_);
  const auto file = *store->OpenFile("x.h5");
  Writer writer(file, SessionStart::kContinue, "bytes");
  ASSERT_TRUE(writer.begun().ok()) << writer.begun();
  ASSERT_TRUE(writer.Write(0, "other").ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  while (store->RunBackground()) continue;
  ASSERT_TRUE(writer.End().ok());
  EXPECT_EQ(ReadVersion(*file, 2), "other");
  EXPECT_TRUE(file->Rollback(1, {}, {1}).ok());
  EXPECT_EQ(ReadVersion(*file, 3), "bytes");
}

TEST_F(OpenToReadTest, ARollbackIsAllThatAnOpenFileNeedsNumbersFor) {
  MakeVersion(*OpenByHand(env_, root_), "bytes");
  const auto store = OpenByHand(env_, root_);
  const auto file = *store->OpenFile("x.h5");
  const auto made = file->Rollback(1, {}, {1});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(ReadVersion(*file, 2), "bytes");
}

TEST_F(OpenToReadTest, RangesThatLieApartAreAskedOfTheDiskAtOnce) {
  MakeVersion(*OpenByHand(env_, root_), std::string(1 << 20, 'x'));
  const auto store = OpenByHand(env_, root_);
  const auto file = *store->OpenFile("x.h5");
  const auto cut = *file->PinNewestCut();
  const auto version = *file->OpenVersion(1);
  const std::vector<Extent> ranges = {{0, 4096}, {100'000, 4096}, {500'000, 4096}};
  std::string bytes(3 * 4096, '?');
  for (const bool is_pinned : {true, false}) {
    env_.counts().Clear();
    const absl::Status read = is_pinned ? cut->ReadRanges(ranges, absl::MakeSpan(bytes))
                                        : version->ReadRanges(ranges, absl::MakeSpan(bytes));
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(bytes, std::string(bytes.size(), 'x'));
    EXPECT_GE(env_.counts().started_bytes.load(), bytes.size());
    EXPECT_LE(env_.counts().started_bytes.load(), 2 * bytes.size());
  }
  env_.counts().Clear();
  cut->StartReading({1 << 20, 4096});  // Beyond the end.
  version->StartReading({2 << 20, 4096});
  EXPECT_EQ(env_.counts().started_bytes.load(), 0);
}

// The cut numbers of two lives of a store. The first life ends in a power loss that drops all
// unsynced bytes. The time of day stands still, so it does not tell the lives apart.
struct Numbers {
  CutNumber before = 0, after = 0;
};
Numbers NumbersOfTwoLives(bool has_disk_that_lies) {
  const auto now = [] { return absl::FromUnixSeconds(1'700'000'000); };
  FaultEnv env;
  env.SetTime(now);
  MakeVersion(*OpenByHand(env), "bytes");
  Numbers numbers;
  std::unique_ptr<FaultEnv> crashed;
  {
    const auto store = OpenByHand(env);
    const auto file = *store->OpenFile("x.h5");
    if (has_disk_that_lies) {
      env.SetLie([](const FaultDisk& disk, const FaultChange& change) {
        return change.kind == FaultChange::Kind::kSync &&
               disk.NameOf(change.node).ends_with("/index-wal");
      });
    }
    Writer writer(file, SessionStart::kContinue, "bytes");
    EXPECT_TRUE(writer.begun().ok()) << writer.begun();
    env.SetLie(nullptr);
    EXPECT_TRUE(writer.Write(0, "other").ok());
    numbers.before = *writer.Cut(BarrierKind::kTick);
    CrashPoint point;
    point.change_count = env.change_count();
    point.data = point.names = Unsynced::kDropped;
    crashed = env.Crash(point);
    EXPECT_TRUE(writer.End().ok());
  }
  crashed->SetTime(now);
  const auto store = OpenByHand(*crashed);
  Writer writer(*store->OpenFile("x.h5"), SessionStart::kContinue, "bytes");
  EXPECT_TRUE(writer.Write(0, "third").ok());
  numbers.after = *writer.Cut(BarrierKind::kTick);
  EXPECT_TRUE(writer.End().ok());
  return numbers;
}

TEST(OpenToReadNumbersTest, ACutThatWasLostWithThePowerLeavesItsNumberUnused) {
  const Numbers numbers = NumbersOfTwoLives(/*has_disk_that_lies=*/false);
  EXPECT_GT(numbers.after, numbers.before);
}

TEST(OpenToReadNumbersTest, WithoutTheSyncThatReservesThemTheTestAboveWouldFail) {
  const Numbers numbers = NumbersOfTwoLives(/*has_disk_that_lies=*/true);
  EXPECT_LE(numbers.after, numbers.before);
}

}  // namespace
}  // namespace h5mirror::store
