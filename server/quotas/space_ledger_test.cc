// The ledger of the [[quota]] tables, without a store.
#include "server/quotas/space_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/quotas/space_quotas.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

QuotaRule Rule(std::string directory, uint64_t head_mib, uint64_t history_mib = 0,
               uint64_t files = 0) {
  return {std::move(directory), head_mib * kMiB, history_mib * kMiB, files, "/etc/c.toml:3"};
}

class SpaceLedgerTest : public testing::Test {
 protected:
  void Start(std::vector<QuotaRule> rules) {
    ledger_.SetRules(std::move(rules));
    ledger_.FinishCount(ledger_.rules_number());
  }
  void Measure(const std::string& name, uint64_t head_mib, uint64_t history_mib = 0) {
    ledger_.BeginMeasure(name);
    ledger_.Measured(name, SpaceSizes{head_mib * kMiB, history_mib * kMiB});
  }
  absl::Status Grow(const std::string& name, uint64_t mib, uint64_t end_mib = 0) {
    return ledger_.Grow(name, mib * kMiB, end_mib * kMiB);
  }
  uint64_t HeadMib(const std::string& name) {
    const auto use = ledger_.AccountOf(name);
    return use ? use->sizes.head_bytes / kMiB : 0;
  }

  SpaceLedger ledger_{{}};
};

TEST(QuotaRuleTest, AnAccountIsTheDirectoryOfATableOrOfAUser) {
  EXPECT_EQ(Rule("", 1).AccountOf("a.h5"), "");
  EXPECT_EQ(Rule("runs", 1).AccountOf("runs/1/a.h5"), "runs");
  EXPECT_EQ(Rule("runs", 1).AccountOf("runs2/a.h5"), std::nullopt);
  EXPECT_EQ(Rule("runs", 1).AccountOf("runs"), std::nullopt) << "a file of that name";
  EXPECT_EQ(Rule("home/${user}", 1).AccountOf("home/anna/x/a.h5"), "home/anna");
  EXPECT_EQ(Rule("home/${user}", 1).AccountOf("home/a.h5"), std::nullopt);
  EXPECT_EQ(Rule("${user}/raw", 1).AccountOf("anna/raw/a.h5"), "anna/raw");
  EXPECT_EQ(Rule("${user}/raw", 1).AccountOf("anna/cooked/a.h5"), std::nullopt);
}

TEST_F(SpaceLedgerTest, WithoutTablesAllMayBe) {
  EXPECT_FALSE(ledger_.is_on());
  EXPECT_TRUE(Grow("a.h5", 1 << 20).ok());
  EXPECT_TRUE(ledger_.AddFile("a.h5").ok());
  EXPECT_THAT(ledger_.List("", 10), IsEmpty());
  EXPECT_EQ(ledger_.IsOverShare("a.h5"), std::nullopt);
}

TEST_F(SpaceLedgerTest, HeadsGrowUpToTheLimitOfTheirAccountOnly) {
  Start({Rule("home/${user}", 10)});
  EXPECT_TRUE(Grow("home/anna/a.h5", 6).ok());
  EXPECT_TRUE(Grow("home/anna/b.h5", 4).ok());
  const absl::Status refused = Grow("home/anna/b.h5", 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  for (const char* part :
       {"home/anna", "10 MiB of head_bytes = 10 MiB", "c.toml:3", "home/anna/b.h5", "1 MiB more"}) {
    EXPECT_THAT(ToStd(refused.message()), HasSubstr(part));
  }
  EXPECT_EQ(HeadMib("home/anna/b.h5"), 10u) << "what was refused does not count";
  EXPECT_TRUE(Grow("home/bob/a.h5", 10).ok()) << "a neighbour";
  EXPECT_TRUE(Grow("other/a.h5", 100).ok()) << "no table is for it";
}

TEST_F(SpaceLedgerTest, TheFirstTableThatAFileLiesBelowCounts) {
  Start({Rule("home/big", 100), Rule("home/${user}", 1)});
  EXPECT_TRUE(Grow("home/big/a.h5", 50).ok());
  EXPECT_FALSE(Grow("home/anna/a.h5", 2).ok());
}

TEST_F(SpaceLedgerTest, NoLimitHoldsUntilAllIsCounted) {
  ledger_.SetRules({Rule("runs", 1, 1, 1)});
  EXPECT_TRUE(Grow("runs/a.h5", 5).ok());
  EXPECT_TRUE(ledger_.AddFile("runs/b.h5").ok());
  EXPECT_EQ(ledger_.HistoryOf("runs/a.h5"), std::nullopt);
  const uint64_t before = ledger_.rules_number();
  ledger_.SetRules({Rule("runs", 2)});
  ledger_.FinishCount(before);
  EXPECT_FALSE(ledger_.is_counted()) << "that count was by other tables";
  ledger_.FinishCount(ledger_.rules_number());
  EXPECT_TRUE(Grow("runs/a.h5", 2).ok());
  EXPECT_FALSE(Grow("runs/a.h5", 1).ok());
}

// A server of a cluster gets a cell, or gives one away.
TEST_F(SpaceLedgerTest, WhatWasCountedIsForgottenForOtherFiles) {
  Start({Rule("runs", 4)});
  Measure("runs/a.h5", 4);
  EXPECT_FALSE(Grow("runs/a.h5", 1).ok());
  const uint64_t before = ledger_.rules_number();
  ledger_.CountAgain("");
  EXPECT_TRUE(ledger_.is_on());
  EXPECT_NE(ledger_.rules_number(), before) << "a count that has begun is void";
  EXPECT_FALSE(ledger_.is_counted());
  EXPECT_THAT(ledger_.List("", 10), IsEmpty());
  EXPECT_TRUE(Grow("runs/a.h5", 1).ok());
  Measure("runs/b.h5", 4);
  ledger_.FinishCount(ledger_.rules_number());
  EXPECT_FALSE(Grow("runs/b.h5", 1).ok());
}

TEST_F(SpaceLedgerTest, LimitsInOtherCellsHoldWhileOneIsCountedAgain) {
  Start({Rule("runs/a", 4), Rule("runs/b", 4)});
  for (const char* name : {"runs/a/f.h5", "runs/b/f.h5", "else/f.h5"}) Measure(name, 4);
  ledger_.Removed({"1", "runs/a/old.h5", absl::UnixEpoch(), 5});
  ledger_.Removed({"2", "runs/b/old.h5", absl::UnixEpoch(), 5});
  for (const char* cell : {"runs/b", "runs/b/c", "runs"}) {
    SCOPED_TRACE(cell);
    const bool is_all = cell == std::string_view("runs");
    const uint64_t before = ledger_.rules_number();
    ledger_.CountAgain(cell);
    EXPECT_NE(ledger_.rules_number(), before) << "a count that has begun is void";
    EXPECT_FALSE(ledger_.is_counted());
    EXPECT_TRUE(Grow("runs/b/f.h5", 9).ok()) << "other files may be there now";
    EXPECT_EQ(Grow("runs/a/f.h5", 1).ok(), is_all);
    EXPECT_EQ(ledger_.HeadOf("else/f.h5"), 0u) << "it may lie there";
    EXPECT_EQ(ledger_.IsOverShare("runs/a/f.h5"), std::nullopt);
    EXPECT_EQ(ledger_.RemovedIds().size(), is_all ? 0u : 1u) << "the other cell's stays";
    for (const char* name : {"runs/a/f.h5", "runs/b/f.h5"}) Measure(name, 4);
    ledger_.FinishCount(ledger_.rules_number());
    EXPECT_TRUE(ledger_.is_counted());
    for (const char* name : {"runs/a/f.h5", "runs/b/f.h5"}) EXPECT_FALSE(Grow(name, 1).ok());
  }
  EXPECT_THAT(ledger_.RemovedIds(), IsEmpty());
}

TEST_F(SpaceLedgerTest, AMeasurementReplacesWhatWasCounted) {
  Start({Rule("runs", 10)});
  ASSERT_TRUE(Grow("runs/a.h5", 8).ok());
  Measure("runs/a.h5", 3);
  EXPECT_EQ(HeadMib("runs/a.h5"), 3u);
  ledger_.BeginMeasure("runs/a.h5");
  ASSERT_TRUE(Grow("runs/a.h5", 2).ok());
  ledger_.Measured("runs/a.h5", SpaceSizes{3 * kMiB, 0});
  EXPECT_EQ(HeadMib("runs/a.h5"), 5u) << "what grew meanwhile may not be in it";
  ledger_.Measured("runs/a.h5", std::nullopt);
  EXPECT_EQ(ledger_.AccountOf("runs/a.h5"), std::nullopt);
  EXPECT_TRUE(Grow("runs/b.h5", 10).ok());
}

TEST_F(SpaceLedgerTest, FilesCountFromTheirFirstOpenOn) {
  Start({Rule("runs", 0, 0, 2)});
  Measure("runs/a.h5", 1);
  EXPECT_TRUE(ledger_.AddFile("runs/b.h5").ok());
  EXPECT_TRUE(ledger_.AddFile("runs/a.h5").ok()) << "it counts already";
  const absl::Status refused = ledger_.AddFile("runs/c.h5");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(ToStd(refused.message()), HasSubstr("2 of max_files = 2"));
  ledger_.Measured("runs/b.h5", std::nullopt);  // It never got a cut.
  EXPECT_TRUE(ledger_.AddFile("runs/c.h5").ok());
}

TEST_F(SpaceLedgerTest, AWriterThatWasRefusedIsRefusedAtOnceUntilThereIsRoom) {
  Start({Rule("runs", 10)});
  Measure("runs/other.h5", 6);
  ASSERT_TRUE(Grow("runs/a.h5", 3, 3).ok());
  ASSERT_FALSE(Grow("runs/a.h5", 2, 5).ok());
  Measure("runs/a.h5", 0);  // The uncut bytes were dropped.
  EXPECT_FALSE(ledger_.MayBegin("runs/a.h5", 5 * kMiB).ok());
  EXPECT_TRUE(ledger_.MayBegin("runs/a.h5", 4 * kMiB).ok()) << "the local file was cut shorter";
  ASSERT_TRUE(Grow("runs/a.h5", 3, 3).ok());
  ASSERT_FALSE(Grow("runs/a.h5", 2, 5).ok());
  Measure("runs/a.h5", 0);
  Measure("runs/other.h5", 5);
  EXPECT_TRUE(ledger_.MayBegin("runs/a.h5", 5 * kMiB).ok());
}

TEST_F(SpaceLedgerTest, AMoveOrAnUndeleteCountsForTheAccountThatGetsTheFile) {
  Start({Rule("home/${user}", 10, 10, 3)});
  Measure("home/anna/a.h5", 8, 8);
  Measure("home/bob/b.h5", 4, 1);
  Measure("home/bob/c.h5", 1, 1);
  EXPECT_TRUE(ledger_.MayHold("home/anna/b.h5", {8 * kMiB, 8 * kMiB}, "home/anna/a.h5").ok())
      << "within one account";
  const absl::Status heads = ledger_.MayHold("home/anna/b.h5", {4 * kMiB, kMiB}, "home/bob/b.h5");
  EXPECT_THAT(ToStd(heads.message()), HasSubstr("head_bytes"));
  const absl::Status histories = ledger_.MayHold("home/bob/a.h5", {kMiB, 9 * kMiB}, "x/a.h5");
  EXPECT_THAT(ToStd(histories.message()), HasSubstr("history_bytes"));
  Measure("home/bob/d.h5", 1);
  const absl::Status files = ledger_.MayHold("home/bob/e.h5", {0, 0}, "");
  EXPECT_THAT(ToStd(files.message()), HasSubstr("max_files"));
  EXPECT_TRUE(ledger_.MayHold("home/bob/b.h5", {5 * kMiB, 0}, "").ok()) << "a rollback";
  EXPECT_FALSE(ledger_.MayHold("home/bob/b.h5", {9 * kMiB, 0}, "").ok());
}

TEST_F(SpaceLedgerTest, ARemovedFileCountsOnceAndRefusesNothing) {
  QuotaRule rule = Rule("runs", 10, 10, 1);
  rule.removed_bytes = 6 * kMiB;
  Start({rule});
  Measure("runs/a.h5", 4, 2);
  const RemovedSpace removed{"id-1", "runs/a.h5", absl::FromUnixSeconds(1), 6 * kMiB};
  ledger_.Removed(removed);
  ledger_.AddListed(removed);
  auto uses = ledger_.List("", 10);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].files, 0u);
  EXPECT_EQ(uses[0].removed_files, 1u);
  EXPECT_EQ(uses[0].removed_bytes, 6 * kMiB);
  EXPECT_EQ(uses[0].FullestPercent(), 0);
  EXPECT_TRUE(ledger_.MayHold("runs/c.h5", {9 * kMiB, 9 * kMiB}, "").ok());
  Measure("runs/b.h5", 9, 9);
  EXPECT_EQ(ledger_.OldestRemovedBeyondLimit(), std::nullopt) << "live files need no space of them";
  ledger_.AddListed({"id-2", "runs/b.h5", absl::FromUnixSeconds(2), 1 * kMiB});
  ASSERT_TRUE(ledger_.OldestRemovedBeyondLimit().has_value());
  EXPECT_EQ(ledger_.OldestRemovedBeyondLimit()->file.id, "id-1");
  ledger_.DropRemoved("id-1");
  EXPECT_EQ(ledger_.OldestRemovedBeyondLimit(), std::nullopt);
  ledger_.DropRemoved("id-1");
  EXPECT_EQ(ledger_.List("", 10)[0].removed_bytes, 1 * kMiB);
}

TEST_F(SpaceLedgerTest, AListThatIsOlderBringsNoRemovedFileBack) {
  Start({Rule("runs", 10)});
  const RemovedSpace removed{"id-1", "runs/a.h5", absl::FromUnixSeconds(1), 6 * kMiB};
  ledger_.AddListed(removed);
  ledger_.BeginListing();
  ledger_.DropRemoved("id-1");  // As by an undelete.
  ledger_.AddListed(removed);
  EXPECT_THAT(ledger_.RemovedIds(), IsEmpty());
  ledger_.EndListing();
  ledger_.AddListed(removed);
  EXPECT_THAT(ledger_.RemovedIds(), ElementsAre("id-1"));
}

TEST_F(SpaceLedgerTest, WhereOnlyBytesAreTooManyARemovedFileWithoutAnyStays) {
  QuotaRule rule = Rule("runs", 20, 0, 3);
  rule.removed_bytes = 10 * kMiB;
  Start({rule});
  ledger_.AddListed({"id-1", "runs/a.h5", absl::FromUnixSeconds(1), 0});
  ledger_.AddListed({"id-2", "runs/b.h5", absl::FromUnixSeconds(2), 6 * kMiB});
  ledger_.AddListed({"id-3", "runs/c.h5", absl::FromUnixSeconds(3), 6 * kMiB});
  ASSERT_TRUE(ledger_.OldestRemovedBeyondLimit().has_value());
  EXPECT_EQ(ledger_.OldestRemovedBeyondLimit()->file.id, "id-2");
  ledger_.AddListed({"id-4", "runs/d.h5", absl::FromUnixSeconds(4), 0});
  EXPECT_EQ(ledger_.OldestRemovedBeyondLimit()->file.id, "id-1") << "files are too many too";
}

TEST_F(SpaceLedgerTest, ATagMadeWhileTheFileIsMeasuredCounts) {
  QuotaRule rule = Rule("runs", 0);
  rule.max_tags = 3;
  Start({rule});
  Measure("runs/a.h5", 1);
  ledger_.BeginMeasure("runs/a.h5");
  ASSERT_TRUE(ledger_.AddTag("runs/a.h5").ok());
  ledger_.Measured("runs/a.h5", SpaceSizes{0, 0, 2});
  EXPECT_EQ(ledger_.AccountOf("runs/a.h5")->sizes.tags, 3u);
  EXPECT_TRUE(absl::IsResourceExhausted(ledger_.AddTag("runs/a.h5")));
  ledger_.DropTag("runs/a.h5");
  EXPECT_TRUE(ledger_.AddTag("runs/a.h5").ok());
  EXPECT_TRUE(ledger_.AddTag("else/a.h5").ok()) << "no table is for it";
}

TEST_F(SpaceLedgerTest, AnAccountIsNearItsLimitOnceUntilItHasFallen) {
  std::vector<std::string> told;
  ledger_.SetNearListener([&](const SpaceUse& use) {
    told.push_back(StrCat(use.directory, " ", use.FullestPercent()));
  });
  Start({Rule("runs", 100)});
  Measure("runs/a.h5", 89);
  EXPECT_THAT(told, IsEmpty());
  ASSERT_TRUE(Grow("runs/a.h5", 2).ok());
  ASSERT_TRUE(Grow("runs/a.h5", 2).ok());
  EXPECT_THAT(told, ElementsAre("runs 91"));
  Measure("runs/a.h5", 88);
  Measure("runs/a.h5", 92);
  EXPECT_EQ(told.size(), 1u);
  Measure("runs/a.h5", 50);
  Measure("runs/a.h5", 95);
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(SpaceLedgerTest, OverItsShareIsWhoHasMoreHistoryThanTheMean) {
  Start({Rule("home/${user}", 0, 100)});
  Measure("home/anna/a.h5", 1, 90);
  Measure("home/bob/a.h5", 1, 5);
  Measure("runs/a.h5", 1, 10);
  EXPECT_EQ(ledger_.IsOverShare("home/anna/a.h5"), true);
  EXPECT_EQ(ledger_.IsOverShare("home/bob/a.h5"), false);
  EXPECT_EQ(ledger_.IsOverShare("runs/a.h5"), false) << "all without a table are one account";
  Measure("home/anna/a.h5", 1, 5);
  Measure("runs/a.h5", 1, 5);
  EXPECT_EQ(ledger_.IsOverShare("home/bob/a.h5"), true) << "all have the same";
}

TEST_F(SpaceLedgerTest, AccountsAreListedInOrder) {
  Start({Rule("home/${user}", 10), Rule("runs", 10)});
  for (const char* name : {"runs/a.h5", "home/b/a.h5", "home/a/a.h5", "else/a.h5"}) {
    Measure(name, 1);
  }
  const auto first = ledger_.List("", 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].directory, "home/a");
  EXPECT_EQ(first[1].directory, "home/b");
  const auto rest = ledger_.List("home/b", 5);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].directory, "runs");
  EXPECT_EQ(rest[0].files, 1u);
}

TEST_F(SpaceLedgerTest, BeyondItsLimitNoMoreGoesToTheArchive) {
  QuotaRule rule = Rule("runs", 0);
  rule.archived_bytes = 10 * kMiB;
  EXPECT_TRUE(ledger_.MayArchive("runs/a.h5").ok()) << "there are no tables";
  ledger_.SetRules({rule});
  EXPECT_TRUE(absl::IsUnavailable(ledger_.MayArchive("runs/a.h5"))) << "it is not counted yet";
  ledger_.FinishCount(ledger_.rules_number());
  const auto measure = [&](const std::string& name, uint64_t mib) {
    ledger_.BeginMeasure(name);
    ledger_.Measured(name, SpaceSizes{.archived_bytes = mib * kMiB});
  };
  EXPECT_TRUE(ledger_.LimitsArchived("runs/a.h5"));
  EXPECT_FALSE(ledger_.LimitsArchived("else/a.h5"));
  measure("runs/a.h5", 9);
  EXPECT_TRUE(ledger_.MayArchive("runs/b.h5").ok());
  measure("runs/b.h5", 3);
  const absl::Status refused = ledger_.MayArchive("runs/a.h5");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("takes 12 MiB of archived_bytes = 10 MiB"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("stays on the disk"));
  EXPECT_TRUE(ledger_.MayArchive("else/a.h5").ok());
  EXPECT_EQ(ledger_.AccountOf("runs/a.h5")->FullestPercent(), 120);
  measure("runs/b.h5", 0);
  EXPECT_TRUE(ledger_.MayArchive("runs/a.h5").ok()) << "versions were dropped";
}

}  // namespace
}  // namespace h5mirror::server
