// Histories that the server archives by itself and by order, on disks in memory.
#include "server/history/archive_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "base/testing/fault_env.h"
#include "onion_store/testing/test_store.h"
#include "server/quotas/space_quotas.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using store::BarrierKind;
using store::SessionStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint32_t kPage = 512;
constexpr size_t kFilePages = 64;

void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

class ToldEvents final : public EventSink {
 public:
  void Notify(Event event) override {
    kinds.push_back(event.kind);
    text = event.text;
  }
  std::vector<EventKind> kinds;
  std::string text;  // of the last one
};

class ArchiveKeeperTest : public testing::Test {
 protected:
  ArchiveKeeperTest() {
    std::filesystem::create_directory(place());
    auto archive = archive::RootArchive::Open(
        Env::Posix(), {.url = "dir:" + place().string(),
                       .keep_owner = [](const std::string&) { return absl::OkStatus(); }});
    Must(archive.status());
    archive_ = *std::move(archive);
    store::StoreOptions options;
    options.page_size_bytes = kPage;
    options.archive = archive_;
    store_ = store::OpenStore(env_, "/", options);
    config_.archive_after = absl::Hours(24);
  }
  ~ArchiveKeeperTest() override { keeper_.reset(); }

  std::filesystem::path place() const { return directory_.path() / "arc"; }
  void TakeArchiveAway() { std::filesystem::rename(place(), directory_.path() / "away"); }
  void BringArchiveBack() { std::filesystem::rename(directory_.path() / "away", place()); }

  ArchiveKeeper& Keeper() {
    if (keeper_ == nullptr) {
      keeper_ = std::make_unique<ArchiveKeeper>(config_, *store_, archive_.get(), clock_, counter_,
                                                events_);
    }
    return *keeper_;
  }
  // Makes versions of a file that each change all of it. The clock then has the newest one's time.
  void Write(const std::string& name, int versions) {
    const auto file = *store_->OpenOrCreateFile(name, kPage);
    store::Writer writer(file, SessionStart::kNewGeneration);
    for (int i = 0; i < versions; ++i) {
      Must(writer.Write(0, std::string(kFilePages * kPage, static_cast<char>('a' + i))));
      Must(writer.CutDurably(BarrierKind::kCommit).status());
    }
    Must(writer.End());
    Must(file->WaitApplied(absl::Seconds(30)));
    clock_.SetNow(file->Info()->newest_version.server_time);
  }
  uint64_t HistoryBytes(const std::string& name) {
    return (*store_->OpenFile(name))->Info()->history_bytes;
  }
  // One round that looks at all files.
  void Pass() {
    Keeper();
    clock_.Advance(config_.archive_every);
    Keeper().Round();
  }
  void ExpectReads(const std::string& name, int version) {
    EXPECT_EQ(store::ReadVersion(**store_->OpenFile(name), version),
              std::string(kFilePages * kPage, static_cast<char>('a' + version - 1)));
  }

  FaultEnv env_;
  TestDirectory directory_;  // of the archive's disk
  FakeClock clock_;
  Config config_;
  std::shared_ptr<archive::RootArchive> archive_;
  std::unique_ptr<store::Store> store_;
  SpaceCounter* counter_ = nullptr;
  ToldEvents told_;
  EventSink* events_ = nullptr;
  std::unique_ptr<ArchiveKeeper> keeper_;
};

TEST_F(ArchiveKeeperTest, AFileAtRestIsArchivedWhole) {
  Write("a.h5", 4);
  Pass();
  EXPECT_GT(HistoryBytes("a.h5"), 0) << "it has had a version an hour ago";
  clock_.Advance(absl::Hours(24));
  Pass();
  EXPECT_EQ(HistoryBytes("a.h5"), 0);
  EXPECT_EQ(Keeper().Counts().segments_archived, 1);
  EXPECT_GT(Keeper().Counts().archived_bytes, 0);
  for (int version = 1; version <= 4; ++version) ExpectReads("a.h5", version);
}

TEST_F(ArchiveKeeperTest, WithAnAgeOfNothingAllGoesAtOnce) {
  config_.archive_after = absl::ZeroDuration();
  Write("a.h5", 3);
  Write("b.h5", 2);
  Pass();
  EXPECT_EQ(HistoryBytes("a.h5") + HistoryBytes("b.h5"), 0);
}

TEST_F(ArchiveKeeperTest, AnArchiveThatIsAwayIsAskedAgain) {
  config_.archive_after = absl::ZeroDuration();
  Write("a.h5", 3);
  Write("b.h5", 3);
  TakeArchiveAway();
  Pass();
  EXPECT_GT(HistoryBytes("a.h5"), 0);
  EXPECT_THAT(archive_->Standing().error, HasSubstr("is not there"));
  const uint64_t failed = archive_->Standing().failed_calls;
  Keeper().Round();
  EXPECT_EQ(archive_->Standing().failed_calls, failed) << "it is let alone for a while";
  ExpectReads("a.h5", 3);
  BringArchiveBack();
  clock_.Advance(absl::Minutes(15));
  Keeper().Round();
  EXPECT_EQ(HistoryBytes("a.h5") + HistoryBytes("b.h5"), 0);
  EXPECT_EQ(archive_->Standing().error, "");
}

TEST_F(ArchiveKeeperTest, OneFileThatFailsKeepsNoOtherFromItsTurn) {
  config_.archive_after = absl::ZeroDuration();
  Write("a.h5", 3);
  Write("b.h5", 3);
  Pass();  // Both are there, with the owner.
  Write("a.h5", 3);
  Write("b.h5", 3);
  env_.FailOpensOf("a.h5.h5m/pages", absl::InternalError("bad disk"));
  Pass();
  EXPECT_EQ(HistoryBytes("b.h5"), 0);
}

TEST_F(ArchiveKeeperTest, QuotasAreToldOfHistoryThatLeavesTheDisk) {
  config_.archive_after = absl::ZeroDuration();
  SpaceQuotas quotas({{"", 1 << 30, 0, 0, "/etc/c.toml:3"}}, *store_);
  counter_ = &quotas.counter;
  Write("a.h5", 4);
  quotas.counter.Round();
  const auto counted = [&] { return quotas.ledger.AccountOf("a.h5")->sizes.history_bytes; };
  const uint64_t before = counted();
  Pass();
  quotas.counter.Round();
  const uint64_t after = counted();
  EXPECT_NE(after, before);
  quotas.counter.Measure("a.h5");
  EXPECT_EQ(after, counted());
  keeper_.reset();
}

TEST_F(ArchiveKeeperTest, AnAccountThatHasEnoughInTheArchiveKeepsTheRestOnTheDisk) {
  config_.archive_after = absl::ZeroDuration();
  QuotaRule rule{.directory = "", .source = "/etc/c.toml:3"};
  rule.archived_bytes = 1;
  SpaceQuotas quotas({rule}, *store_);
  counter_ = &quotas.counter;
  Write("a.h5", 4);
  Write("b.h5", 4);
  Pass();
  EXPECT_GT(HistoryBytes("a.h5"), 0) << "it is not counted yet";
  quotas.counter.Round();
  Pass();
  EXPECT_EQ(HistoryBytes("a.h5"), 0);
  EXPECT_GT(HistoryBytes("b.h5"), 0) << "the account is full by then";
  EXPECT_GT(quotas.ledger.AccountOf("a.h5")->sizes.archived_bytes, 0);
  EXPECT_EQ(archive_->Standing().error, "");
  const auto order = Keeper().Order("b.h5", 0);
  Must(order.status());
  Keeper().Round();
  EXPECT_TRUE(absl::IsResourceExhausted((*order)->Look().status)) << (*order)->Look().status;
  // Room again.
  rule.archived_bytes = uint64_t{1} << 40;
  quotas.ledger.SetRules({rule});
  quotas.counter.Round();
  Pass();
  EXPECT_EQ(HistoryBytes("b.h5"), 0);
  keeper_.reset();
}

TEST_F(ArchiveKeeperTest, AnErrorThatIsOverStopsNoPass) {
  config_.archive_after = absl::ZeroDuration();
  Write("a.h5", 3);
  Write("b.h5", 3);
  Pass();
  Write("a.h5", 3);
  Write("b.h5", 3);
  // Of a call that nobody makes again.
  std::filesystem::create_symlink("/", place() / "loop");
  archive_->Delete("loop/x", absl::Seconds(10)).IgnoreError();
  ASSERT_NE(archive_->Standing().error, "");
  env_.FailOpensOf("a.h5.h5m/pages", absl::InternalError("bad disk"));
  Pass();
  EXPECT_EQ(HistoryBytes("b.h5"), 0);
  env_.FailOpensOf("a.h5.h5m/pages", absl::OkStatus());
  Pass();
  EXPECT_EQ(archive_->Standing().error, "");
}

TEST_F(ArchiveKeeperTest, ReceiversAreToldOnceOfAnOutageAndOnceOfItsEnd) {
  config_.archive_after = absl::ZeroDuration();
  events_ = &told_;
  Write("a.h5", 3);
  Keeper().Round();
  TakeArchiveAway();
  char byte = 0;
  archive_->Get("files/a", 0, absl::MakeSpan(&byte, 1), absl::Seconds(1)).IgnoreError();
  Keeper().Round();
  EXPECT_THAT(told_.kinds, ElementsAre()) << "one call that failed is no outage";
  Pass();
  EXPECT_THAT(told_.kinds, ElementsAre(EventKind::kArchiveFailed));
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Minutes(15));
    Keeper().Round();
  }
  EXPECT_THAT(told_.kinds, SizeIs(1));
  BringArchiveBack();
  clock_.Advance(absl::Minutes(15));
  Keeper().Round();
  EXPECT_THAT(told_.kinds, ElementsAre(EventKind::kArchiveFailed, EventKind::kArchiveWell));
  EXPECT_THAT(told_.text, HasSubstr("is well again"));
  Keeper().Round();
  EXPECT_THAT(told_.kinds, SizeIs(2));
}

TEST_F(ArchiveKeeperTest, AnOutageIsToldOfAlsoWhereAPartHasAFault) {
  config_.archive_after = absl::ZeroDuration();
  events_ = &told_;
  Write("a.h5", 3);
  auto failing = archive_->OpenFailingPart({.url = "", .part = "cells/x"},
                                           absl::FailedPreconditionError("no id"));
  Must(failing.status());
  Pass();
  EXPECT_EQ(HistoryBytes("a.h5"), 0);
  EXPECT_THAT(told_.kinds, ElementsAre(EventKind::kArchiveFailed));
  EXPECT_THAT(told_.text, HasSubstr("no id"));
  TakeArchiveAway();
  Pass();
  EXPECT_THAT(told_.kinds, SizeIs(2)) << "all of it fails now";
  EXPECT_THAT(told_.text, HasSubstr("is not there"));
  BringArchiveBack();
  clock_.Advance(absl::Minutes(15));
  Keeper().Round();
  EXPECT_THAT(told_.kinds, SizeIs(3)) << "the part fails still";
  EXPECT_THAT(told_.text, HasSubstr("no id"));
  failing->reset();
  Keeper().Round();
  EXPECT_THAT(told_.kinds, SizeIs(4));
  EXPECT_EQ(told_.kinds.back(), EventKind::kArchiveWell);
}

TEST_F(ArchiveKeeperTest, AnOrderIsFilledNow) {
  Write("a.h5", 4);
  const auto order = Keeper().Order("a.h5", 0);
  Must(order.status());
  EXPECT_FALSE((*order)->Look().done);
  Keeper().Round();
  const ArchiveOrder::State state = (*order)->Look();
  EXPECT_TRUE(state.done && state.started);
  Must(state.status);
  EXPECT_EQ(state.progress.segments_archived, 1);
  EXPECT_EQ(HistoryBytes("a.h5"), 0);
}

TEST_F(ArchiveKeeperTest, AnOrderMayLeaveHistoryOnTheDiskToo) {
  Write("a.h5", 4);
  const uint64_t before = HistoryBytes("a.h5");
  const auto order = Keeper().Order("a.h5", uint64_t{1} << 30);
  Keeper().Round();
  EXPECT_EQ((*order)->Look().progress.segments_archived, 1);
  EXPECT_EQ(HistoryBytes("a.h5"), before);
}

TEST_F(ArchiveKeeperTest, AnOrderThatFailsSaysWhy) {
  Write("a.h5", 4);
  const auto missing = Keeper().Order("no.h5", 0);
  const auto given_up = Keeper().Order("a.h5", 0);
  (*given_up)->GiveUp();
  TakeArchiveAway();
  const auto away = Keeper().Order("a.h5", 0);
  Keeper().Round();
  EXPECT_TRUE(absl::IsNotFound((*missing)->Look().status));
  EXPECT_TRUE(absl::IsCancelled((*given_up)->Look().status));
  EXPECT_TRUE(absl::IsUnavailable((*away)->Look().status)) << (*away)->Look().status;
}

TEST_F(ArchiveKeeperTest, AStopEndsOrdersAndTheThread) {
  Write("a.h5", 4);
  const auto order = Keeper().Order("a.h5", 0);
  Keeper().BeginStop();
  EXPECT_TRUE((*order)->Look().done);
  EXPECT_TRUE(absl::IsUnavailable((*order)->Look().status));
  EXPECT_TRUE(absl::IsUnavailable(Keeper().Order("a.h5", 0).status()));
  Keeper().Start();
  Must(Keeper().AwaitEnd(absl::Seconds(30)));
}

TEST_F(ArchiveKeeperTest, WithoutAnArchiveThereAreNoOrders) {
  ArchiveKeeper none(config_, *store_, nullptr, clock_, nullptr);
  none.Start();
  none.Round();
  EXPECT_TRUE(absl::IsFailedPrecondition(none.Order("a.h5", 0).status()));
}

}  // namespace
}  // namespace h5mirror::server
