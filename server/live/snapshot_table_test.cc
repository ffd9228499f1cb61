#include "server/live/snapshot_table.h"
#include "base/testing/fake_clock.h"

#include <memory>
#include <string>

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::server {
namespace {

constexpr char kName[] = "x.h5";

class SnapshotTableTest : public testing::Test {
 protected:
  void SetUp() override {
    env_.SetTime([this] { return clock_.Now(); });
    store_ = store::OpenStore(env_, "/");
    store_->SetCutListener(
        [this](const std::string& name, store::CutNumber cut) { table_.OnCut(name, cut); });
    file_ = store_->OpenOrCreateFile(kName, 0).value();
    writer_ = std::make_unique<store::Writer>(file_, store::SessionStart::kContinue);
  }
  void TearDown() override { store_->SetCutListener(nullptr); }

  store::CutNumber Cut(char byte) {
    EXPECT_TRUE(writer_->Write(0, std::string(100, byte)).ok());
    return writer_->Cut(store::BarrierKind::kTick).value();
  }
  SnapshotTable::SnapshotPtr Open(const std::string& reader) {
    auto snapshot = table_.Open(*file_, reader);
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.ok() ? *std::move(snapshot) : nullptr;
  }
  bool Pinned(store::CutNumber cut) { return table_.Find(kName, cut, "", "").has_value(); }
  SnapshotTable::CallId Follow(const std::string& reader) {
    const SnapshotTable::CallId call = table_.NewCall();
    table_.PinInCall(*file_, *file_->PinNewestCut(), reader, call);
    return call;
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    table_.OnTimer();
  }

  FakeClock clock_;
  FaultEnv env_;
  SnapshotTable table_{clock_, absl::Seconds(60)};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::Writer> writer_;
};

TEST_F(SnapshotTableTest, ACutIsHeldUntilTheLastReaderHasGone) {
  const store::CutNumber cut = Cut('a');
  Open("one"), Open("two");
  table_.Close(kName, cut, "one");
  table_.Close(kName, cut, "one");  // again, as after an answer that was lost
  EXPECT_TRUE(Pinned(cut));
  table_.Close(kName, cut, "two");
  EXPECT_FALSE(Pinned(cut));
}

TEST_F(SnapshotTableTest, TheNewestCutDoesNotExpireAndAnOlderOneDoes) {
  const store::CutNumber cut = Cut('a');
  const auto snapshot = Open("one");
  Pass(absl::Hours(1));
  EXPECT_TRUE(Pinned(cut));
  Cut('b');
  Pass(absl::Seconds(59));
  Cut('c');  // Its time runs from the first cut that followed it.
  EXPECT_TRUE(Pinned(cut));
  Pass(absl::Seconds(2));
  EXPECT_FALSE(Pinned(cut));
  EXPECT_TRUE(snapshot->expired());
}

TEST_F(SnapshotTableTest, WhatIsAVersionNeedNotBeHeld) {
  ASSERT_TRUE(writer_->Write(0, "v").ok());
  auto durable = writer_->CutDurably(store::BarrierKind::kCommit);
  ASSERT_TRUE(durable.ok()) << durable.status();
  EXPECT_EQ(Open("one")->info().version, durable->version);
  EXPECT_FALSE(Pinned(durable->cut));
}

TEST_F(SnapshotTableTest, OpensTheCutThatWasTheNewestAtATime) {
  const store::CutNumber first = Cut('a');
  const absl::Time first_time = clock_.Now();
  Open("one");
  clock_.Advance(absl::Seconds(1));
  Cut('b');
  clock_.Advance(absl::Seconds(1));
  Cut('c');
  const store::FileId file_id = (*store_->OpenFile(kName))->file_id();
  EXPECT_FALSE(table_.OpenAt(kName, file_id, first_time - absl::Seconds(1), "three"));
  EXPECT_FALSE(table_.OpenAt("other.h5", file_id, clock_.Now(), "three"));
  EXPECT_FALSE(table_.OpenAt(kName, file_id, first_time + absl::Milliseconds(1500), "three"))
      << "then 'b' was the newest, which nobody has";
  const auto found = table_.OpenAt(kName, file_id, first_time + absl::Milliseconds(500), "three");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->snapshot->info().cut, first);
  EXPECT_FALSE(table_.OpenAt(kName, {}, first_time + absl::Milliseconds(500), "three"))
      << "another file has the name";
  table_.Close(kName, first, "one");
  EXPECT_TRUE(Pinned(first));
}

TEST_F(SnapshotTableTest, AHoldOfACallEndsSoonAfterIt) {
  const store::CutNumber cut = Cut('a');
  const SnapshotTable::CallId call = Follow("agent");
  Pass(absl::Hours(1));
  EXPECT_TRUE(Pinned(cut));
  table_.EndCall(kName, call);
  Pass(absl::Seconds(59));
  EXPECT_TRUE(Pinned(cut)) << "a reader that used the agent has time to come itself";
  Pass(absl::Seconds(2));
  EXPECT_FALSE(Pinned(cut));
}

TEST_F(SnapshotTableTest, AHoldOutlivesACallThatAnotherHasReplaced) {
  const store::CutNumber cut = Cut('a');
  const SnapshotTable::CallId broken = Follow("agent");
  const SnapshotTable::CallId call = Follow("agent");
  table_.EndCall(kName, broken);
  Pass(absl::Hours(1));
  EXPECT_TRUE(Pinned(cut));
  table_.EndCall(kName, call);
  Open("one");
  Pass(absl::Hours(1));
  EXPECT_TRUE(Pinned(cut)) << "another one has it open";
  table_.Close(kName, cut, "one");
  EXPECT_FALSE(Pinned(cut));
}

TEST_F(SnapshotTableTest, WhoReadsACutOfOthersHoldsItForAWhile) {
  const store::CutNumber cut = Cut('a');
  const auto snapshot = Open("agent");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(table_.Find(kName, cut, "", "one"));
    Pass(absl::Seconds(59));
  }
  table_.Close(kName, cut, "agent");
  EXPECT_TRUE(Pinned(cut));
  Pass(absl::Seconds(2));
  EXPECT_FALSE(Pinned(cut));
  EXPECT_FALSE(snapshot->expired()) << "nobody reads it, and nobody need be told";
}

TEST_F(SnapshotTableTest, EachReaderGoesAtHisOwnTime) {
  const store::CutNumber cut = Cut('a');
  const SnapshotTable::CallId first = Follow("first"), second = Follow("second");
  Follow("third");
  table_.EndCall(kName, first);
  Pass(absl::Seconds(30));
  table_.EndCall(kName, second);
  EXPECT_TRUE(table_.Find(kName, cut, "", "who reads"));
  Pass(absl::Seconds(31));
  EXPECT_EQ(table_.count().readers, 3) << "the first has gone";
  Pass(absl::Seconds(30));
  EXPECT_EQ(table_.count().readers, 1) << "the third's call goes on";
  EXPECT_TRUE(Pinned(cut));
}

TEST_F(SnapshotTableTest, TheEndOfACallLetsGoOfAllItsCuts) {
  const SnapshotTable::CallId call = table_.NewCall(), other = table_.NewCall();
  for (const char byte : {'a', 'b', 'c'}) {
    Cut(byte);
    table_.PinInCall(*file_, *file_->PinNewestCut(), "one", call);
    table_.PinInCall(*file_, *file_->PinNewestCut(), "other", other);
  }
  table_.Close(kName, 2, "one");
  table_.EndCall(kName, call);
  table_.EndCall(kName, call);  // again
  EXPECT_EQ(table_.count().readers, 5);
  Pass(absl::Seconds(61));
  EXPECT_EQ(table_.count().readers, 1) << "the newest cut, in the call that goes on";
}

TEST_F(SnapshotTableTest, ACutIsOfOneFile) {
  const store::CutNumber cut = Cut('a');
  Open("one");
  const store::FileId& id = file_->file_id();
  EXPECT_TRUE(table_.Find(kName, cut, std::string(id.begin(), id.end()), "one"));
  EXPECT_FALSE(table_.Find(kName, cut, std::string(16, 'x'), "one"));
}

TEST_F(SnapshotTableTest, ClearLetsGoOfAll) {
  Cut('a');
  Open("one"), Open("two");
  EXPECT_EQ(table_.count().readers, 2);
  table_.Clear();
  EXPECT_EQ(table_.count().cuts, 0);
}

}  // namespace
}  // namespace h5mirror::server
