// Histories that the server prunes, thins and stops by itself, on a disk in memory.
#include "server/history/history_pruner.h"
#include "base/testing/fake_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <sstream>

#include "archive/root_archive.h"
#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "onion_store/testing/fault_object_store.h"
#include "onion_store/testing/test_store.h"
#include "server/cluster/cluster_store.h"
#include "server/history/thinning.h"
#include "server/testing/fake_ownership.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using store::BarrierKind;
using store::SessionEnd;
using store::SessionStart;
using store::VersionNumber;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint32_t kPage = 512;
constexpr size_t kFilePages = 64;

void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

class HistoryPrunerTest : public testing::Test {
 protected:
  HistoryPrunerTest() {
    store::StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = store::OpenStore(env_, "/", options);
  }
  ~HistoryPrunerTest() override {
    pruner_.reset();
    quotas_.reset();
    files_.clear();
  }

  static RetentionRule Rule(const std::string& glob) {
    RetentionRule rule;
    rule.files = {glob};
    rule.source = "/etc/c.toml:7";
    return rule;
  }
  struct Told final : EventSink {
    void Notify(Event event) override {
      kinds.push_back(event.kind);
      files.push_back(event.file);
    }
    std::vector<EventKind> kinds;
    std::vector<std::string> files;
  };

  HistoryPruner& Pruner() {
    if (pruner_ == nullptr) {
      pruner_ = std::make_unique<HistoryPruner>(config_, *store_, clock_, metrics_, quotas_.get(),
                                                &told_);
    }
    return *pruner_;
  }
  store::File& file(const std::string& name) {
    auto& file = files_[name];
    if (file == nullptr) file = *store_->OpenOrCreateFile(name, kPage);
    return *file;
  }
  // One version that overwrites `pages` pages of the file.
  absl::Status Commit(const std::string& name, int pages) {
    file(name);
    std::string& content = contents_[name];
    const auto start = content.empty() ? SessionStart::kNewGeneration : SessionStart::kContinue;
    store::Writer writer(files_[name], start, content);
    if (content.empty()) pages = kFilePages;
    absl::Status status = writer.begun();
    for (int i = 0; i < pages && status.ok(); ++i) {
      const size_t page = content.empty() ? i : random_() % kFilePages;
      std::string bytes(kPage, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random_());
      status = writer.Write(page * kPage, bytes);
    }
    if (status.ok()) status = writer.CutDurably(BarrierKind::kCommit).status();
    if (status.ok()) content = writer.content();
    writer.End().IgnoreError();
    if (status.ok()) status = file(name).WaitApplied(absl::Seconds(3));
    return status;
  }
  void Commits(const std::string& name, int count, int pages = 8) {
    for (int i = 0; i < count; ++i) Must(Commit(name, pages));
  }
  std::vector<VersionNumber> Versions(const std::string& name) {
    std::vector<VersionNumber> numbers;
    const auto versions = *file(name).ListVersions({}, 10'000);
    for (const auto& version : versions) {
      numbers.insert(numbers.begin(), version.version);
    }
    return numbers;
  }
  uint64_t History(const std::string& name) {
    const auto sizes = store_->Measure(name, store::WithHead::kNo);
    return sizes.ok() ? sizes->history() : 0;
  }
  // Accounts by directory, counted.
  void SetQuotas(std::vector<QuotaRule> rules) {
    quotas_ = std::make_unique<SpaceQuotas>(std::move(rules), *store_);
    quotas_->counter.Round();
  }
  // What the two threads do within a second or two.
  void CountAndTend() {
    quotas_->counter.Round();
    Pruner().Round();
  }
  void Pass() {
    clock_.Advance(absl::Minutes(15));
    Pruner().Round();
  }
  // The newest version is what was written last.
  void CheckNewest(const std::string& name) {
    EXPECT_TRUE(store::ReadVersion(file(name), 0) == contents_[name]);
  }

  FaultEnv env_;
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  Metrics metrics_{1};
  Config config_;
  std::mt19937_64 random_{3};
  std::unique_ptr<store::Store> store_;
  std::map<std::string, std::shared_ptr<store::File>> files_;
  std::map<std::string, std::string> contents_;
  Told told_;
  std::unique_ptr<SpaceQuotas> quotas_;
  std::unique_ptr<HistoryPruner> pruner_;
};

TEST_F(HistoryPrunerTest, EachFileIsPrunedByTheFirstRuleThatMatches) {
  config_.retention = {Rule("runs/keep.h5"), Rule("runs/**")};
  config_.retention[0].keep_all = true;
  config_.retention[1].policy.keep_last = 2;
  for (const char* name : {"runs/a.h5", "runs/deep/b.h5", "runs/keep.h5", "other.h5"}) {
    Commits(name, 5);
  }
  Must(file("runs/a.h5").Tag(1, "first", store::TagMode::kKeep).status());
  Pruner().Round();
  EXPECT_EQ(Versions("runs/a.h5").size(), 5u) << "not before its time";
  Pass();
  EXPECT_THAT(Versions("runs/a.h5"), ElementsAre(4, 5)) << "the policy names no tag";
  EXPECT_THAT(Versions("runs/deep/b.h5"), ElementsAre(4, 5));
  EXPECT_EQ(Versions("runs/keep.h5").size(), 5u);
  EXPECT_EQ(Versions("other.h5").size(), 5u);
  CheckNewest("runs/a.h5");
  Commits("runs/a.h5", 2);
  Pass();
  EXPECT_EQ(Versions("runs/a.h5").size(), 4u) << "the next pass is a day later";
  clock_.Advance(absl::Hours(24));
  Pruner().Round();
  EXPECT_THAT(Versions("runs/a.h5"), ElementsAre(6, 7));
}

TEST_F(HistoryPrunerTest, ChecksOfAnEarlierLifeAreTold) {
  Commits("a.h5", 2);
  Commits("b.h5", 2);
  Must(file("a.h5").RecordCheck(2, 4096).status());
  Must(file("b.h5").RecordCheck(1, 0).status());
  Pruner().Round();
  metrics_.checks().Sample(env_.Now() + absl::Hours(3));
  EXPECT_EQ(metrics_.GaugeValue("h5mirror_server_check_differing_files"), 1);
  EXPECT_NEAR(metrics_.GaugeValue("h5mirror_server_check_oldest_equal_age_seconds"), 3 * 3600, 60);
}

TEST_F(HistoryPrunerTest, APruneThatWasCutShortIsFinished) {
  Commits("a.h5", 20);
  const uint64_t before = History("a.h5");
  auto job = *file("a.h5").StartPrune({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (int i = 0; i < 2; ++i) Must(job->Step().status());  // Dropped, nothing given back.
  job.reset();
  EXPECT_THAT(*store_->UnfinishedPrunes(), ElementsAre("a.h5"));
  Pruner().Round();
  EXPECT_THAT(*store_->UnfinishedPrunes(), IsEmpty());
  EXPECT_LT(History("a.h5"), before * 3 / 4);
  CheckNewest("a.h5");
}

TEST_F(HistoryPrunerTest, AHistoryOverItsLimitLosesItsOldestVersionsWithoutATag) {
  config_.retention = {Rule("**")};
  config_.retention[0].history_max_bytes = 200'000;
  Commits("a.h5", 3);
  Must(file("a.h5").Tag(2, "kept", store::TagMode::kKeep).status());
  VersionNumber newest = 3;
  for (; History("a.h5") <= 200'000; ++newest) Commits("a.h5", 1);
  Pruner().Grew("a.h5");
  Pruner().Round();
  EXPECT_LE(History("a.h5"), 200'000u);
  const auto versions = Versions("a.h5");
  EXPECT_EQ(versions.front(), 2) << "it has a tag";
  EXPECT_EQ(versions.back(), newest);
  EXPECT_GT(versions[1], 3) << "the oldest go first";
  EXPECT_EQ(versions[1] + static_cast<int64_t>(versions.size()) - 2, newest) << "and no others";
  EXPECT_GT(versions.size(), static_cast<size_t>(newest) / 2) << "no more than needed";
  EXPECT_THAT(Pruner().NoticeOf("a.h5"), HasSubstr("history_max_bytes"));
  EXPECT_EQ(Pruner().NoticeOf("b.h5"), "");
  clock_.Advance(absl::Hours(25));
  EXPECT_EQ(Pruner().NoticeOf("a.h5"), "") << "that was yesterday";
  CheckNewest("a.h5");
}

TEST_F(HistoryPrunerTest, WhereThinningDoesNotHelpHistoryStopsAndGoesOnByItself) {
  config_.retention = {Rule("**")};
  config_.retention[0].history_max_bytes = 150'000;
  std::vector<std::string> tags;
  while (History("a.h5") <= 160'000) {
    Commits("a.h5", 1);
    tags.push_back("t" + std::to_string(Versions("a.h5").back()) + "x");
    Must(file("a.h5").Tag(0, tags.back(), store::TagMode::kKeep).status());
  }
  const auto before = Versions("a.h5");
  Pruner().Grew("a.h5");
  Pruner().Round();
  EXPECT_EQ(Versions("a.h5"), before) << "nothing is dropped in vain";
  EXPECT_THAT(Pruner().NoticeOf("a.h5"), HasSubstr("stopped: new versions are not made"));
  EXPECT_THAT(told_.kinds, ElementsAre(EventKind::kHistoryStopped));
  EXPECT_THAT(told_.files, ElementsAre("a.h5"));
  Commits("a.h5", 2);
  EXPECT_EQ(Versions("a.h5"), before);
  for (const std::string& tag : tags) Must(file("a.h5").Untag(tag).status());
  clock_.Advance(absl::Minutes(2));
  Pruner().Round();
  EXPECT_LT(Versions("a.h5").size(), before.size());
  EXPECT_THAT(Pruner().NoticeOf("a.h5"), HasSubstr("dropped early"));
  Commits("a.h5", 1);
  EXPECT_EQ(Versions("a.h5").back(), before.back() + 1);
  CheckNewest("a.h5");
}

TEST_F(HistoryPrunerTest, WhatARuleDoesNotKeepGoesBeforeAnythingElse) {
  config_.retention = {Rule("**")};
  config_.retention[0].history_max_bytes = 150'000;
  config_.retention[0].policy.keep_last = 3;
  Commits("a.h5", 40);
  ASSERT_GT(History("a.h5"), 150'000u);
  Pruner().Grew("a.h5");
  Pruner().Round();
  EXPECT_THAT(Versions("a.h5"), ElementsAre(38, 39, 40));
  EXPECT_EQ(Pruner().NoticeOf("a.h5"), "") << "nothing went that the rule keeps";
}

TEST_F(HistoryPrunerTest, LittleSpaceThinsTheLargestHistoryFirst) {
  Commits("large.h5", 40, 20);
  Commits("small.h5", 10);
  Commits("spared.h5", 30, 20);
  config_.retention = {Rule("spared.h5")};
  config_.retention[0].keep_all = true;
  config_.min_free.bytes = 600'000;
  env_.SetCapacity(env_.used_bytes() + 550'000);
  Pruner().Round();
  EXPECT_GE(*store_->FreeDiskBytes(), 600'000u);
  EXPECT_LT(Versions("large.h5").size(), 40u);
  EXPECT_GT(Versions("large.h5").size(), 10u) << "no more than needed";
  EXPECT_EQ(Versions("small.h5").size(), 10u);
  EXPECT_EQ(Versions("spared.h5").size(), 30u);
  EXPECT_THAT(Pruner().NoticeOf("large.h5"), HasSubstr("min_free"));
  EXPECT_EQ(Pruner().NoticeOf("small.h5"), "");
  CheckNewest("large.h5");
}

TEST_F(HistoryPrunerTest, AnAccountOverItsHistoryLosesItsOwnVersionsOnly) {
  Commits("home/bob/a.h5", 30, 20);
  Commits("home/anna/a.h5", 30, 20);
  Commits("home/anna/b.h5", 5);
  SetQuotas({{"home/${user}", 0, 200'000, 0, "/etc/c.toml:5"}});
  Pruner().Grew("home/anna/b.h5");
  CountAndTend();
  EXPECT_LE(History("home/anna/a.h5") + History("home/anna/b.h5"), 200'000u);
  EXPECT_LT(Versions("home/anna/a.h5").size(), 30u) << "the largest of the account";
  EXPECT_EQ(Versions("home/anna/b.h5").size(), 5u);
  EXPECT_EQ(Versions("home/bob/a.h5").size(), 30u) << "its own turn comes when it grows";
  EXPECT_THAT(Pruner().NoticeOf("home/anna/a.h5"), HasSubstr("\"home/anna\", by [[quota]]"));
  CheckNewest("home/anna/a.h5");
}

TEST_F(HistoryPrunerTest, AnAccountWithNothingToDropMakesNoVersionsUntilItsTableIsGone) {
  std::vector<std::string> tags;
  while (History("runs/a.h5") <= 160'000) {
    Commits("runs/a.h5", 1);
    Must(file("runs/a.h5").Tag(0, StrCat("t", tags.size()), store::TagMode::kKeep).status());
    tags.push_back("");
  }
  Commits("runs/b.h5", 5);
  const auto before = Versions("runs/b.h5");
  SetQuotas({{"runs", 0, 80'000, 0, "/etc/c.toml:5"}});
  Pruner().Grew("runs/b.h5");
  CountAndTend();
  EXPECT_EQ(Versions("runs/b.h5"), before) << "nothing is dropped in vain";
  EXPECT_THAT(Pruner().NoticeOf("runs/b.h5"), HasSubstr("stopped: new versions are not made"));
  Commits("runs/b.h5", 1);
  EXPECT_EQ(Versions("runs/b.h5"), before);
  quotas_->ledger.SetRules({});
  clock_.Advance(absl::Minutes(2));
  CountAndTend();
  EXPECT_EQ(Pruner().NoticeOf("runs/b.h5"), "");
  Commits("runs/b.h5", 1);
  EXPECT_EQ(Versions("runs/b.h5").back(), before.back() + 1);
}

TEST_F(HistoryPrunerTest, LittleSpaceTakesNothingOfANeighbourWithinItsShare) {
  // The largest file of all is a neighbour's; the account with the most has many small ones.
  Commits("home/bob/large.h5", 12, 20);
  for (int i = 0; i < 4; ++i) Commits(StrCat("home/anna/", i, ".h5"), 10, 20);
  SetQuotas({{"home/${user}", 0, 1 << 30, 0, "/etc/c.toml:5"}});
  config_.min_free.bytes = 600'000;
  env_.SetCapacity(env_.used_bytes() + 550'000);
  CountAndTend();
  EXPECT_GE(*store_->FreeDiskBytes(), 600'000u);
  EXPECT_EQ(Versions("home/bob/large.h5").size(), 12u);
  size_t left = 0;
  for (int i = 0; i < 4; ++i) left += Versions(StrCat("home/anna/", i, ".h5")).size();
  EXPECT_LT(left, 40u);
}

TEST_F(HistoryPrunerTest, WithNothingLeftToDropAllHistoriesStopUntilThereIsRoom) {
  Commits("a.h5", 5);
  config_.min_free.bytes = 1'000'000;
  env_.SetCapacity(env_.used_bytes() + 800'000);
  for (int i = 0; i < 4; ++i) Pruner().Round();
  EXPECT_THAT(Versions("a.h5"), ElementsAre(5));
  EXPECT_THAT(Pruner().NoticeOf("a.h5"), HasSubstr("stopped"));
  EXPECT_THAT(Pruner().NoticeOf("any.h5"), HasSubstr("min_free"));
  EXPECT_THAT(told_.kinds, ElementsAre(EventKind::kDiskLow, EventKind::kHistoryStopped));
  EXPECT_THAT(told_.files, ElementsAre("", ""));
  Commits("a.h5", 2);
  EXPECT_THAT(Versions("a.h5"), ElementsAre(5));
  Commits("new.h5", 1);
  EXPECT_THAT(Versions("new.h5"), ElementsAre(1)) << "a first version is always made";
  env_.SetCapacity(env_.used_bytes() + 2'000'000);
  Pruner().Round();
  EXPECT_THAT(Pruner().NoticeOf("any.h5"), IsEmpty());
  Commits("a.h5", 1);
  EXPECT_THAT(Versions("a.h5"), ElementsAre(5, 6));
  CheckNewest("a.h5");
  EXPECT_EQ(told_.kinds.size(), 2u) << "once each";
  env_.SetCapacity(env_.used_bytes() + 900'000);
  clock_.Advance(absl::Minutes(2));
  Pruner().Round();
  EXPECT_EQ(told_.kinds.at(2), EventKind::kDiskLow) << "it is low again";
}

TEST_F(HistoryPrunerTest, StoppedHistoriesGoOnWhereSpaceComesBackThatIsJustEnough) {
  Commits("a.h5", 5);
  config_.min_free.bytes = 1'000'000;
  env_.SetCapacity(env_.used_bytes() + 400'000);
  for (int i = 0; i < 4; ++i) Pruner().Round();
  ASSERT_THAT(Pruner().NoticeOf("a.h5"), HasSubstr("stopped"));
  // More than min_free, and less than thinning would aim at: there is nothing to thin.
  env_.SetCapacity(env_.used_bytes() + 1'010'000);
  clock_.Advance(absl::Minutes(2));
  Pruner().Round();
  EXPECT_THAT(Pruner().NoticeOf("a.h5"), testing::Not(HasSubstr("stopped")));
  Commits("a.h5", 1);
  EXPECT_THAT(Versions("a.h5"), ElementsAre(5, 6));
}

TEST_F(HistoryPrunerTest, AWriterMeetsNoFullDiskForTheSakeOfHistory) {
  Commits("a.h5", 1);
  env_.SetCapacity(env_.used_bytes() + 1'000'000);
  {  // Without a limit the same writer does.
    const auto copy = env_.CopyNow();
    copy->SetCapacity(copy->used_bytes() + 1'000'000);
    store::StoreOptions options;
    auto store = store::OpenStore(*copy, "/", options);
    store::Writer writer(*store->OpenFile("a.h5"), SessionStart::kContinue, contents_["a.h5"]);
    absl::Status status;
    for (int i = 0; i < 200 && status.ok(); ++i) {
      std::string bytes(40 * kPage, static_cast<char>(i + 1));
      status = writer.Write(0, bytes);
      if (status.ok()) status = writer.CutDurably(BarrierKind::kCommit).status();
      if (status.ok()) status = writer.file().WaitApplied(absl::Milliseconds(200));
    }
    EXPECT_FALSE(status.ok());
  }
  config_.min_free.bytes = 400'000;
  for (int i = 0; i < 200; ++i) {
    const absl::Status committed = Commit("a.h5", 40);
    ASSERT_TRUE(committed.ok()) << i << ": " << committed << ", free " << *store_->FreeDiskBytes();
    Pruner().Round();
  }
  EXPECT_GT(Versions("a.h5").size(), 5u);
  EXPECT_EQ(Versions("a.h5").back(), 201);
  CheckNewest("a.h5");
}

TEST_F(HistoryPrunerTest, RemovedFilesWhoseTimeIsOverGoFirst) {
  Commits("a.h5", 10);
  Commits("old.h5", 20, 20);
  files_.clear();
  Must(store_->Remove("old.h5", {}, absl::ZeroDuration()).status());
  clock_.SetNow(env_.Now() + absl::Hours(1));
  config_.min_free.bytes = 100'000;
  env_.SetCapacity(env_.used_bytes() + 20'000);
  Pruner().Round();
  EXPECT_THAT(*store_->ListRemoved(), IsEmpty());
  EXPECT_EQ(Versions("a.h5").size(), 10u);
  EXPECT_GE(*store_->FreeDiskBytes(), 100'000u);
}

// An archive that does not answer would hold it up for each file.
TEST_F(HistoryPrunerTest, WhereTheDiskIsLowNoArchiveIsWaitedFor) {
  store_.reset();
  const auto objects = std::make_shared<store::FaultObjectStore>();
  store::StoreOptions options;
  options.page_size_bytes = kPage;
  options.archive = objects;
  store_ = store::OpenStore(env_, "/", options);
  Commits("old.h5", 20, 20);
  const auto job = *file("old.h5").StartArchive({store::SealSegment::kYes, 0});
  while (!job->Step()->done) {
  }
  files_.clear();
  Must(store_->Remove("old.h5", {}, absl::ZeroDuration()).status());
  clock_.SetNow(env_.Now() + absl::Hours(1));
  config_.min_free.bytes = 100'000;
  env_.SetCapacity(env_.used_bytes() + 20'000);
  std::vector<bool> fails_at_once;
  objects->SetOnCall(
      [&](const std::string&) { fails_at_once.push_back(archive::RootArchive::NoCalls::is_on()); });
  objects->FailCalls(1, absl::UnavailableError("no calls are made now"));
  Pruner().Round();
  EXPECT_THAT(fails_at_once, ElementsAre(true, false)) << "low on space, then its hourly work";
  EXPECT_THAT(objects->names(), IsEmpty());
}

TEST_F(HistoryPrunerTest, NothingGoesForItsAgeWhileTheClockIsInDoubt) {
  constexpr int64_t kYears = 10 * 366 * 86400;
  const auto machine_s = std::make_shared<std::atomic<int64_t>>(1'790'000'000);
  env_.SetTime([machine_s] { return absl::FromUnixSeconds(*machine_s); });
  env_.SetBootTime([] { return BootTime{"a", absl::Hours(1)}; });
  Must(Commit("old.h5", 1));
  files_.clear();
  Must(store_->Remove("old.h5", {}, absl::Hours(24)).status());
  *machine_s += kYears;
  clock_.SetNow(env_.Now());  // As a program that goes by the machine's clock would.
  Pruner().Round();
  EXPECT_EQ(store_->ListRemoved()->size(), 1u);
  *machine_s -= kYears;
  clock_.Advance(absl::Hours(1));
  Pruner().Round();
  EXPECT_THAT(*store_->ListRemoved(), IsEmpty());
}

// It has nothing to prune, and that is no failure.
TEST_F(HistoryPrunerTest, AServerOfAClusterLeavesOthersFilesToThem) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  FakeOwnership ownership;
  ownership.SetRoute("", {cluster::RouteKind::kRedirect, 9, "b", "node-b:7447"});
  store_ = std::make_unique<ClusterStore>(ownership);
  RetentionRule rule = Rule("**");
  rule.policy.keep_last = 1;
  config_.retention = {rule};
  config_.prune_every = absl::Seconds(1);
  Pruner().Round();
  clock_.Advance(absl::Hours(1));
  Pruner().Round();
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(), Not(HasSubstr("cannot be listed")));
  pruner_.reset();
  store_.reset();  // before the ownership
}

TEST(ThinningTest, VersionsAreNamedAsRanges) {
  EXPECT_EQ(DescribeVersions({}), "");
  EXPECT_EQ(DescribeVersions({3}), "3");
  EXPECT_EQ(DescribeVersions({1, 2, 3, 7, 9, 10}), "1-3, 7, 9-10");
}

}  // namespace
}  // namespace h5mirror::server
