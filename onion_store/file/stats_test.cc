// The disk space of a history, the space that a prune would free, and stopped histories.
#include <numeric>
#include <random>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kPage = 512;

void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

class StatsTest : public testing::Test {
 protected:
  StatsTest() { Open(); }

  void Open() {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(env_, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  // Versions that overwrite runs of any length, shrink and grow the file, and clear parts of it.
  void Write(int count, SessionStart start = SessionStart::kContinue) {
    Writer writer(file_, newest_ == 0 ? SessionStart::kNewGeneration : start, content_);
    if (writer.content().empty()) Must(writer.Write(0, Bytes(600 * kPage)));
    for (int i = 0; i < count; ++i) {
      for (int n = 0; n < 6; ++n) {
        const uint64_t first = random_() % 600, pages = 1 + random_() % 40;
        const bool zeros = random_() % 8 == 0;
        Must(writer.Write(first * kPage,
                          zeros ? std::string(pages * kPage, '\0') : Bytes(pages * kPage)));
      }
      if (random_() % 6 == 0) Must(writer.Truncate((100 + random_() % 500) * kPage));
      newest_ = writer.CutDurably(BarrierKind::kCommit)->version;
    }
    content_ = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  std::vector<VersionNumber> Some(int of_ten) {
    std::vector<VersionNumber> versions;
    for (VersionNumber version = 1; version < newest_; ++version) {
      if (static_cast<int>(random_() % 10) < of_ten) versions.push_back(version);
    }
    return versions;
  }
  std::vector<uint64_t> Estimate(const std::vector<std::vector<VersionNumber>>& plans) {
    auto job = file_->StartEstimate(plans);
    Must(job.status());
    for (absl::StatusOr<bool> done = false; done.ok() && !*done;) {
      done = (*job)->Step();
      Must(done.status());
    }
    return (*job)->freed_bytes();
  }
  uint64_t Prune(const std::vector<VersionNumber>& versions) {
    auto job = file_->StartPrune(versions);
    Must(job.status());
    for (;;) {
      auto progress = (*job)->Step();
      Must(progress.status());
      if (!progress.ok() || progress->done) return progress.value_or(PruneProgress()).freed_bytes;
    }
  }
  VersionNumber Commit(std::string_view bytes, bool* stopped = nullptr) {
    Writer writer(file_, newest_ == 0 ? SessionStart::kNewGeneration : SessionStart::kContinue,
                  content_);
    Must(writer.Write(0, bytes));
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    if (stopped != nullptr) *stopped = cut->stopped;
    content_ = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
    return newest_ = cut->version;
  }

  FaultEnv env_;
  std::mt19937_64 random_{5};
  std::string content_;
  VersionNumber newest_ = 0;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

// No writer is active here, so the tolerance is 0: the estimate goes through the rows as the prune
// does.
TEST_F(StatsTest, AnEstimateIsWhatThePruneGivesBack) {
  Write(40);
  for (int round = 0; round < 5; ++round) {
    const std::vector<VersionNumber> versions = Some(2 + 2 * round);
    const uint64_t estimate = Estimate({versions})[0];
    EXPECT_EQ(estimate, Prune(versions)) << "round " << round;
    Write(6, round == 2 ? SessionStart::kNewGeneration : SessionStart::kContinue);
  }
  std::vector<VersionNumber> all(static_cast<size_t>(newest_));
  std::iota(all.begin(), all.end(), 1);
  const uint64_t estimate = Estimate({all})[0];
  EXPECT_EQ(estimate, Prune(all));
  EXPECT_EQ(Estimate({all}), std::vector<uint64_t>{0}) << "the newest is left out";
}

TEST_F(StatsTest, ManyPlansAreEstimatedAtOnce) {
  Write(30);
  Prune({3, 4, 9});
  const std::vector<std::vector<VersionNumber>> plans = {{}, {1}, {1, 2}, Some(5), Some(9)};
  const std::vector<uint64_t> together = Estimate(plans);
  ASSERT_EQ(together.size(), plans.size());
  for (size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(Estimate({plans[i]})[0], together[i]) << i;
  EXPECT_EQ(together[0], 0u) << "a prune leaves nothing for the next one";
  EXPECT_THAT(Estimate({}), IsEmpty());
}

TEST_F(StatsTest, WhatVersionsSavedAddsUpToTheSegments) {
  Write(20);
  uint64_t saved = 0;
  const auto versions = *file_->ListVersions({}, 100);
  for (const VersionInfo& version : versions) {
    saved += *file_->SavedBytes(version);
  }
  const auto sizes = store_->Measure("x.h5", WithHead::kYes);
  Must(sizes.status());
  EXPECT_EQ(saved, sizes->pages);
  EXPECT_EQ(sizes->pages, file_->Info()->history_bytes);
  EXPECT_GT(sizes->head, 0u);
  EXPECT_GT(sizes->index, 0u);
  EXPECT_EQ(sizes->old, 0u);
  EXPECT_EQ(store_->Measure("x.h5", WithHead::kNo)->head, 0u);
  EXPECT_TRUE(absl::IsNotFound(store_->Measure("y.h5", WithHead::kNo).status()));
}

TEST_F(StatsTest, AnOldGenerationCountsAsHistory) {
  Write(2);
  Write(1, SessionStart::kNewGeneration);
  const auto sizes = *store_->Measure("x.h5", WithHead::kNo);
  EXPECT_GE(sizes.old, 100 * kPage);
  EXPECT_EQ(sizes.history(), sizes.pages + sizes.index + sizes.old);
  const uint64_t estimate = Estimate({{1, 2}})[0];
  EXPECT_GE(estimate, sizes.old);
  EXPECT_EQ(estimate, Prune({1, 2}));
  EXPECT_EQ(store_->Measure("x.h5", WithHead::kNo)->old, 0u);
}

TEST_F(StatsTest, APruneThatWasCutShortIsKnown) {
  Write(20);
  EXPECT_THAT(*store_->UnfinishedPrunes(), IsEmpty());
  (*file_->StartPrune({1, 2, 3}))->Step().IgnoreError();
  EXPECT_THAT(*store_->UnfinishedPrunes(), ElementsAre("x.h5"));
  file_.reset();
  store_.reset();
  // As a power loss leaves it.
  auto crashed = env_.Crash(env_.change_count(), 1);
  auto store = OpenStore(*crashed, "/");
  EXPECT_THAT(*store->UnfinishedPrunes(), ElementsAre("x.h5"));
  auto job = *(*store->OpenFile("x.h5"))->StartPrune({});
  for (absl::StatusOr<PruneProgress> step = PruneProgress(); step.ok() && !step->done;) {
    step = job->Step();
  }
  EXPECT_THAT(*store->UnfinishedPrunes(), IsEmpty());
}

TEST_F(StatsTest, AMarkOfAFileThatIsGoneIsForgotten) {
  Write(5);
  (*file_->StartPrune({1}))->Step().IgnoreError();
  file_.reset();
  Must(store_->Move("x.h5", "y.h5"));
  EXPECT_THAT(*store_->UnfinishedPrunes(), IsEmpty());
}

TEST_F(StatsTest, AStoppedHistoryGetsNoVersionsAndTheHeadGoesOn) {
  EXPECT_EQ(Commit("one"), 1);
  store_->StopHistory("x.h5");
  bool stopped = false;
  EXPECT_EQ(Commit("two", &stopped), 1);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(file_->Info()->version_count, 1);
  EXPECT_EQ(file_->Info()->applied_cut, file_->Info()->last_cut);
  std::string head(3, '\0');
  Must((*(*env_.OpenTree("/"))->Open("x.h5", OpenKind::kRead, 0))
           ->ReadAt(0, absl::MakeSpan(head))
           .status());
  EXPECT_EQ(head, "two");
  EXPECT_EQ(ReadVersion(*file_, 0), "one") << "the newest version";
  store_->ResumeHistory("x.h5");
  EXPECT_EQ(Commit("two", &stopped), 2) << "what was written meanwhile becomes a version";
  EXPECT_FALSE(stopped);
  EXPECT_EQ(ReadVersion(*file_, 2), "two");
  EXPECT_EQ(ReadVersion(*file_, 1), "one");
}

TEST_F(StatsTest, AStopOutlivesTheFileAndSparesAFirstVersion) {
  store_->StopHistory("");
  EXPECT_EQ(Commit("one"), 1);
  file_.reset();
  file_ = *store_->OpenFile("x.h5");
  bool stopped = false;
  Commit("two", &stopped);
  EXPECT_TRUE(stopped);
  store_->ResumeHistory("x.h5");
  Commit("three", &stopped);
  EXPECT_TRUE(stopped) << "all files are stopped";
}

TEST_F(StatsTest, ACommitOnRequestIsRefusedWhileHistoryIsStopped) {
  Commit("one");
  store_->StopHistory("x.h5");
  EXPECT_TRUE(file_->MakeVersion({}, {1})->unchanged) << "there is nothing to keep";
  Commit("two");
  const auto refused = file_->MakeVersion({}, {2});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("h5mirror status"));
  store_->ResumeHistory("x.h5");
  EXPECT_EQ(file_->MakeVersion({}, {3})->version.version, 2);
}

TEST_F(StatsTest, ALostWritersCutIsAVersionAlsoWhileHistoryIsStopped) {
  Commit("one");
  store_->StopHistory("x.h5");
  Writer writer(file_, SessionStart::kContinue, content_);
  Must(writer.Write(0, "two"));
  Must(writer.CutDurably(BarrierKind::kSync).status());
  Must(writer.End(SessionEnd::kLost));
  Must(file_->WaitApplied(absl::Seconds(10)));
  EXPECT_EQ(file_->Info()->version_count, 2) << "recover needs it";
  Open();
  EXPECT_EQ(ReadVersion(*file_, 2), "two");
}

}  // namespace
}  // namespace h5mirror::store
