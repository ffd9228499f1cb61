#include "server/live/linked_files.h"
#include "base/testing/fake_clock.h"

#include <memory>
#include <string>

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::server {
namespace {

constexpr char kName[] = "x.h5";
constexpr char kRoot[] = "a root's id";

class LinkedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    env_.SetTime([this] { return clock_.Now(); });
    store_ = store::OpenStore(env_, "/");
    store_->SetCutListener([this](const std::string& name, store::CutNumber cut) {
      table_.OnCut(name, cut);
      linked_.OnCut(name);
    });
    file_ = store_->OpenOrCreateFile(kName, 0).value();
    writer_ = std::make_unique<store::Writer>(file_, store::SessionStart::kContinue);
  }
  void TearDown() override {
    store_->SetCutListener(nullptr);
    linked_.Stop();
    table_.Clear();
  }

  // Makes a cut, and waits until it is held where it is to be.
  store::CutNumber Cut(char byte) {
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(writer_->Write(0, std::string(100, byte)).ok());
    const store::CutNumber cut = writer_->Cut(store::BarrierKind::kTick).value();
    linked_.Settle();
    return cut;
  }
  bool Pinned(store::CutNumber cut) { return table_.Find(kName, cut, "", "").has_value(); }

  FakeClock clock_;
  FaultEnv env_;
  SnapshotTable table_{clock_, absl::Seconds(60)};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::Writer> writer_;
  LinkedFiles linked_{clock_, table_,
                      [this](const std::string& name) { return store_->OpenFile(name); }};
};

TEST_F(LinkedFilesTest, CutsOfAFileThatIsLedToStayHeldForTheirTime) {
  Cut('a');
  EXPECT_EQ(table_.count().cuts, 0u) << "nobody is led to it";
  linked_.Note(kName);
  linked_.Settle();
  const store::CutNumber first = Cut('b');
  const absl::Time then = clock_.Now();
  const store::FileId file_id = (*store_->OpenFile(kName))->file_id();
  Cut('c');
  Cut('d');
  const auto found = table_.OpenAt(kName, file_id, then, kRoot);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->snapshot->info().cut, first);
  clock_.Advance(absl::Seconds(61));
  table_.OnTimer();
  EXPECT_FALSE(Pinned(first));
  EXPECT_FALSE(table_.OpenAt(kName, file_id, then, kRoot).has_value());
}

TEST_F(LinkedFilesTest, AFastWriterHasTheNewestOfThemHeld) {
  Cut('a');
  linked_.Note(kName);
  linked_.Settle();
  for (size_t i = 0; i < LinkedFiles::kCutsMax + 20; ++i) {
    EXPECT_TRUE(writer_->Write(0, std::string(100, static_cast<char>(i))).ok());
    EXPECT_TRUE(writer_->Cut(store::BarrierKind::kTick).ok());
    linked_.Settle();
  }
  EXPECT_EQ(table_.count().cuts, LinkedFiles::kCutsMax);
  EXPECT_TRUE(Pinned(file_->NewestCut()));
}

TEST_F(LinkedFilesTest, WhatNobodyIsLedToAnyMoreIsLetGoOf) {
  Cut('a');
  linked_.Note(kName);
  linked_.Settle();
  const store::CutNumber cut = Cut('b');
  EXPECT_TRUE(Pinned(cut));
  clock_.Advance(LinkedFiles::kRemember);
  linked_.OnTimer();
  EXPECT_FALSE(Pinned(cut));
  EXPECT_FALSE(Pinned(Cut('c')));
}

TEST_F(LinkedFilesTest, AFileThatIsGoneIsNoError) {
  linked_.Note("gone.h5");
  linked_.Settle();
  linked_.OnCut("gone.h5");
  linked_.Settle();
  EXPECT_EQ(table_.count().cuts, 0u);
}

TEST_F(LinkedFilesTest, NothingIsHeldAfterItHasStopped) {
  Cut('a');
  linked_.Note(kName);
  linked_.Stop();
  table_.Clear();
  Cut('b');
  EXPECT_EQ(table_.count().cuts, 0u);
}

}  // namespace
}  // namespace h5mirror::server
