// A full disk stops writers, but no reader.
#include <algorithm>
#include <functional>
#include <string>

#include "base/testing/fault_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class FullDiskReadersTest : public testing::Test {
 protected:
  FullDiskReadersTest() {
    SetTimeOf(env_);
    store_ = OpenByHand(env_);
    file_ = *store_->OpenOrCreateFile("x.h5", 0);
    Writer first(file_, SessionStart::kNewGeneration);
    EXPECT_TRUE(first.Write(0, "bytes").ok());
    EXPECT_TRUE(first.Cut(BarrierKind::kCommit).ok());
    Run(*store_);
    EXPECT_TRUE(first.End().ok());
    Run(*store_);
  }

  void SetTimeOf(FaultEnv& env) {
    env.SetTime([this] { return now_; });
  }
  static std::unique_ptr<Store> OpenByHand(FaultEnv& env) {
    StoreOptions options;
    options.background_threads = 0;
    return OpenStore(env, "/", options);
  }
  // Runs all background work that is due now.
  static void Run(Store& store) {
    while (store.RunBackground()) continue;
  }
  static void Fill(FaultEnv& env) { env.SetCapacity(env.used_bytes()); }
  void MakeRoom(FaultEnv& env, Store& store) {
    env.SetCapacity(UINT64_MAX);
    now_ += absl::Seconds(10);
    Run(store);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(FullDiskReadersTest, ACommitWithoutRoomIsToldAndStopsNoReader) {
  const auto reader = *file_->OpenVersion(1);
  Writer writer(file_, SessionStart::kContinue, "bytes");
  ASSERT_TRUE(writer.Write(0, "other").ok());
  absl::Status told;
  ASSERT_TRUE(
      writer
          .Cut(BarrierKind::kCommit, [&](absl::StatusOr<DurableCut> made) { told = made.status(); })
          .ok());
  Fill(env_);
  Run(*store_);
  EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
  EXPECT_EQ(ReadAll(*reader), "bytes");
  EXPECT_EQ(ReadVersion(*file_, 1), "bytes");
  EXPECT_EQ(*store_->OpenFile("x.h5"), file_) << "it was opened again";
  EXPECT_TRUE(absl::IsResourceExhausted(file_->MakeVersion({}, {1}).status()));
  EXPECT_EQ(ReadAll(*reader), "bytes");
  MakeRoom(env_, *store_);
  EXPECT_EQ(ReadVersion(*file_, 2), "other");
  EXPECT_EQ(ReadAll(*reader), "bytes");
  EXPECT_TRUE(writer.End().ok());
}

TEST_F(FullDiskReadersTest, AfterACrashOldVersionsAreReadAndWritersWait) {
  Writer writer(file_, SessionStart::kContinue, "bytes");
  ASSERT_TRUE(writer.Write(0, "other").ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  Run(*store_);
  ASSERT_TRUE(writer.Write(0, "third").ok());
  const auto crashed = env_.CopyNow();
  EXPECT_TRUE(writer.End().ok());

  SetTimeOf(*crashed);
  const auto store = OpenByHand(*crashed);
  Fill(*crashed);
  const auto opened = store->OpenFile("x.h5");
  ASSERT_TRUE(opened.ok()) << opened.status();
  File& file = **opened;
  Run(*store);
  EXPECT_EQ(ReadVersion(file, 1), "bytes");
  EXPECT_EQ(ReadVersion(file, 2), "other");
  EXPECT_TRUE(absl::IsResourceExhausted(file.Tag(1, "a", TagMode::kKeep).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Writer(*opened, SessionStart::kContinue, "other").begun()));
  EXPECT_EQ(ReadVersion(file, 1), "bytes");

  MakeRoom(*crashed, *store);
  EXPECT_TRUE(file.Tag(1, "a", TagMode::kKeep).ok());
  Writer later(*opened, SessionStart::kContinue, "other");
  ASSERT_TRUE(later.begun().ok()) << later.begun();
  ASSERT_TRUE(later.Write(0, "fourth").ok());
  ASSERT_TRUE(later.Cut(BarrierKind::kCommit).ok());
  Run(*store);
  EXPECT_TRUE(later.End().ok());
  EXPECT_EQ(ReadVersion(file, 3), "fourth");
  const auto again = crashed->CopyNow();
  const auto third = OpenByHand(*again);
  EXPECT_EQ(ReadVersion(**third->OpenFile("x.h5"), 3), "fourth");
}

// The caller assumes that it was not made.
TEST_F(FullDiskReadersTest, ARollbackThatIsToldOfNoRoomIsNeverMade) {
  {
    Writer writer(file_, SessionStart::kContinue, "bytes");
    ASSERT_TRUE(writer.Write(0, "other").ok());
    ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
    Run(*store_);
    ASSERT_TRUE(writer.End().ok());
    Run(*store_);
  }
  int told_count = 0;
  for (uint64_t call = 0;; ++call) {
    const auto env = env_.CopyNow();
    SetTimeOf(*env);
    const auto store = OpenByHand(*env);
    const auto file = *store->OpenFile("x.h5");
    env->FailCall(call, absl::ResourceExhaustedError("No space left on device"));
    const auto told = file->Rollback(1, {}, {7}).status();
    const bool was_met = env->fault_met();
    MakeRoom(*env, *store);
    const auto again = store->OpenFile("x.h5");
    ASSERT_TRUE(again.ok()) << again.status();
    const VersionNumber newest = (*again)->Info()->newest_version.version;
    if (absl::IsResourceExhausted(told)) {
      EXPECT_EQ(newest, 2) << "call " << call << ": " << told;
      ++told_count;
    }
    if (HasFailure() || !was_met) break;
  }
  EXPECT_GT(told_count, 0);
}

// Else a folded close would become a version only with the next change.
TEST_F(FullDiskReadersTest, AVersionThatFoundNoRoomLosesNoFold) {
  {
    Writer writer(file_, SessionStart::kContinue, "bytes");
    ASSERT_TRUE(writer.Write(0, "other").ok());
    CutRequest request;
    request.kind = BarrierKind::kSync;
    request.size_bytes = 5;
    request.barrier.seq = 100;
    request.version_at = now_ + absl::Seconds(5);
    ASSERT_TRUE(file_->Cut(writer.token(), request, nullptr).ok());
    ASSERT_TRUE(writer.End().ok());
  }
  Run(*store_);
  Fill(env_);
  EXPECT_TRUE(absl::IsResourceExhausted(file_->MakeVersion({}, {1}).status()));
  EXPECT_EQ(file_->Info()->newest_version.version, 1);
  MakeRoom(env_, *store_);
  EXPECT_EQ(ReadVersion(*file_, 2), "other");
}

// The next try comes a pause after the end of the last try, so that other work gets its turn.
TEST_F(FullDiskReadersTest, TriesThatTakeLongAreNotOneLoop) {
  Writer writer(file_, SessionStart::kContinue, "bytes");
  ASSERT_TRUE(writer.Write(0, "other").ok());
  ASSERT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
  Fill(env_);
  // Each call takes a second. So many calls mean a loop.
  constexpr uint64_t kCallsMax = 10'000;
  const absl::Time began = now_;
  const uint64_t calls = env_.call_count();
  env_.SetTime(
      [=, this] { return began + absl::Seconds(std::min(env_.call_count() - calls, kCallsMax)); });
  Run(*store_);
  EXPECT_LT(env_.call_count() - calls, kCallsMax);
  SetTimeOf(env_);
  now_ = began + absl::Seconds(kCallsMax);
  MakeRoom(env_, *store_);
  EXPECT_EQ(ReadVersion(*file_, 2), "other");
  EXPECT_TRUE(writer.End().ok());
}

// A failed sync may have left the index's log in memory only. If the disk is too full to write it
// back, an open must not show a version that a power loss could take.
TEST_F(FullDiskReadersTest, WhatAnOpenTellsOfOutlivesThePower) {
  int seen_count = 0;
  for (uint64_t call = 0;; ++call) {
    FaultEnv env;
    SetTimeOf(env);
    bool was_met = false;
    {
      const auto store = OpenByHand(env);
      const auto file = *store->OpenOrCreateFile("x.h5", 0);
      for (const char* bytes : {"bytes", "other"}) {
        const bool is_first = bytes[0] == 'b';
        Writer writer(file, is_first ? SessionStart::kNewGeneration : SessionStart::kContinue,
                      is_first ? "" : "bytes");
        EXPECT_TRUE(writer.Write(0, bytes).ok());
        EXPECT_TRUE(writer.Cut(BarrierKind::kCommit).ok());
        if (!is_first) env.FailCall(call, absl::InternalError("Input/output error"));
        Run(*store);
        if (is_first) {
          EXPECT_TRUE(writer.End().ok());
        }
        Run(*store);
      }
      was_met = env.fault_met();
      env.FailCalls(0, 0, absl::OkStatus());
      Fill(env);
    }
    const auto store = OpenByHand(env);
    const auto opened = store->OpenFile("x.h5");
    const bool is_seen = opened.ok() && (*opened)->OpenVersion(2).ok();
    seen_count += is_seen ? 1 : 0;
    CrashPoint point;
    point.change_count = env.change_count();
    point.data = point.names = Unsynced::kDropped;
    const auto after = env.Crash(point);
    const auto later = OpenStore(*after, "/");
    const auto file = later->OpenFile("x.h5");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(ReadVersion(**file, 1), "bytes");
    if (is_seen) {
      EXPECT_EQ(ReadVersion(**file, 2), "other") << "call " << call;
    }
    if (HasFailure() || !was_met) break;
  }
  EXPECT_GT(seen_count, 0);
}

// The kind of a cut, as the index of its file sees it.
enum class Cuts : uint8_t { kFirst, kLater, kNewGeneration };

// Each call of a commit fails once for lack of room. Whatever is retried, a power loss that takes
// all unsynced bytes leaves every cut that was acked or read as a version.
class NoRoomOnceTest : public testing::TestWithParam<Cuts> {
 protected:
  // False: the commit has fewer calls.
  bool FailCall(uint64_t call) {
    absl::Time now = absl::FromUnixSeconds(1'700'000'000);
    bool acked = false;
    size_t changes_at_ack = 0;
    VersionNumber third = 0;  // that was acked; 0: none
    FaultEnv env;
    env.SetTime([&] { return now; });
    StoreOptions options;
    options.background_threads = 0;
    const auto store = OpenStore(env, "/", options);
    auto file = *store->OpenOrCreateFile("x.h5", 0);
    if (GetParam() != Cuts::kFirst) {
      Writer first(file, SessionStart::kNewGeneration);
      EXPECT_TRUE(first.Write(0, "bytes").ok());
      EXPECT_TRUE(first.Cut(BarrierKind::kCommit).ok());
      Run(*store);
      EXPECT_TRUE(first.End().ok());
      Run(*store);
    }
    {
      const bool is_later = GetParam() == Cuts::kLater;
      Writer writer(file, is_later ? SessionStart::kContinue : SessionStart::kNewGeneration,
                    is_later ? "bytes" : "");
      if (GetParam() == Cuts::kFirst) {
        // Later bytes are staged: the commit has more to sync than the head.
        EXPECT_TRUE(writer.Write(0, "bytes").ok());
        EXPECT_TRUE(writer.Cut(BarrierKind::kTick).ok());
      }
      EXPECT_TRUE(writer.Write(0, "other").ok());
      const auto on_durable = [&](const absl::StatusOr<DurableCut>& cut) {
        if (!cut.ok()) return;
        acked = true;
        changes_at_ack = env.change_count();
      };
      EXPECT_TRUE(writer.Cut(BarrierKind::kCommit, on_durable).ok());
      env.FailCall(call, absl::ResourceExhaustedError("No space left on device"));
      Run(*store);
      // A cut that comes before the next try of a commit that was put off.
      const auto on_third = [&](const absl::StatusOr<DurableCut>& cut) {
        if (cut.ok()) third = cut->version;
      };
      if (writer.Write(0, "third").ok()) {
        writer.Cut(BarrierKind::kCommit, on_third).status().IgnoreError();
      }
      // The version is made once its time has come.
      now += absl::Seconds(10);
      Run(*store);
    }
    const bool was_met = env.fault_met();
    env.FailCalls(0, 0, absl::OkStatus());
    bool is_version = acked;
    if (const auto again = store->OpenFile("x.h5"); again.ok()) {
      const VersionNumber wanted = GetParam() == Cuts::kFirst ? 1 : 2;
      is_version |= (*again)->OpenVersion(wanted).ok();
    }
    CrashPoint point;
    point.data = point.names = Unsynced::kDropped;
    point.change_count = env.change_count();
    ExpectThere(*env.Crash(point), is_version, third);
    point.change_count = changes_at_ack;  // before it is applied
    if (acked) ExpectThere(*env.Crash(point), true, 0);
    return was_met;
  }

  static void Run(Store& store) {
    while (store.RunBackground()) continue;
  }
  static void ExpectThere(FaultEnv& env, bool is_version, VersionNumber third) {
    const auto store = OpenStore(env, "/");
    const auto file = store->OpenFile("x.h5");
    if (!file.ok()) {
      EXPECT_TRUE(GetParam() == Cuts::kFirst && !is_version) << file.status();
      return;
    }
    if (GetParam() != Cuts::kFirst) {
      EXPECT_EQ(ReadVersion(**file, 1), "bytes");
    }
    if (is_version) {
      EXPECT_EQ(ReadVersion(**file, GetParam() == Cuts::kFirst ? 1 : 2), "other");
    }
    if (third != 0) {
      EXPECT_EQ(ReadVersion(**file, third), "third");
    }
  }
};

TEST_P(NoRoomOnceTest, NothingThatWasAckedIsLost) {
  uint64_t call = 0;
  while (FailCall(call)) {
    if (HasFailure()) FAIL() << "call " << call;
    ++call;
  }
  EXPECT_GT(call, 10u);
}

INSTANTIATE_TEST_SUITE_P(, NoRoomOnceTest,
                         testing::Values(Cuts::kFirst, Cuts::kLater, Cuts::kNewGeneration));

}  // namespace
}  // namespace h5mirror::store
