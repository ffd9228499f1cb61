// Dropping versions: retained versions read as before, readers of dropped ones get an error, space
// is freed.
#include <atomic>
#include <random>
#include <thread>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPage = 512;

class PruneTest : public testing::Test {
 protected:
  PruneTest() { Open(); }

  void Open() {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(env_, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  // Makes versions that each overwrite `pages` random pages of `size_pages`.
  void Write(int count, int pages, int size_pages) {
    auto start = golden_.empty() ? SessionStart::kNewGeneration : SessionStart::kContinue;
    Writer writer(file_, start, golden_.empty() ? "" : golden_.rbegin()->second);
    if (golden_.empty()) Must(writer.Write(0, Bytes(size_pages * kPage)));
    for (int i = 0; i < count; ++i) {
      for (int n = 0; n < pages; ++n) {
        Must(writer.Write(random_() % size_pages * kPage, Bytes(kPage)));
      }
      auto cut = writer.CutDurably(BarrierKind::kCommit);
      Must(cut.status());
      golden_[cut->version] = writer.content();
    }
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  PruneProgress Prune(std::vector<VersionNumber> versions) {
    auto job = file_->StartPrune(versions);
    Must(job.status());
    for (VersionNumber version : versions) golden_.erase(version);
    while (true) {
      auto progress = (*job)->Step();
      Must(progress.status());
      if (!progress.ok() || progress->done) return progress.value_or(PruneProgress());
    }
  }
  // All versions except every `step`-th and the newest.
  std::vector<VersionNumber> AllBut(int step) {
    std::vector<VersionNumber> versions;
    for (const auto& [version, bytes] : golden_) {
      if (version % step != 0 && version != golden_.rbegin()->first) versions.push_back(version);
    }
    return versions;
  }
  void CheckAll() {
    for (const auto& [version, bytes] : golden_) {
      EXPECT_TRUE(ReadVersion(*file_, version) == bytes) << "version " << version;
    }
    EXPECT_EQ(file_->ListVersions({}, 100'000)->size(), golden_.size());
  }
  uint64_t PagesBytes() { return PagesBytes(env_); }
  static uint64_t PagesBytes(FaultEnv& env) {
    auto tree = *env.OpenTree("/");
    auto entries = *tree->List("x.h5.h5m");
    uint64_t bytes = 0;
    for (const DirectoryEntry& entry : entries) {
      if (entry.name.rfind("pages-", 0) != 0) continue;
      bytes += tree->Stat("x.h5.h5m/" + entry.name)->size_bytes;
    }
    return bytes;
  }
  bool Exists(const std::string& name) { return *(*env_.OpenTree("/"))->Exists(name); }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  static void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  FaultEnv env_;
  std::mt19937_64 random_{11};
  std::map<VersionNumber, std::string> golden_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(PruneTest, WhatIsKeptReadsAsBeforeAndWhatIsNotIsSaidToBePruned) {
  Write(40, 5, 60);
  PruneProgress done = Prune(AllBut(7));
  EXPECT_EQ(done.versions_dropped, done.versions_to_drop);
  EXPECT_EQ(done.left, "");
  CheckAll();
  auto gone = file_->OpenVersion(3);
  EXPECT_TRUE(absl::IsOutOfRange(gone.status())) << gone.status();
  EXPECT_THAT(gone.status().message(), HasSubstr("x.h5@3 was pruned"));
  EXPECT_TRUE(absl::IsOutOfRange(file_->GetVersion(3).status()));
  Open();
  CheckAll();
  Write(3, 5, 60);
  EXPECT_EQ(golden_.rbegin()->first, 43) << "no number is given twice";
  CheckAll();
}

TEST_F(PruneTest, TheNewestIsNeverDroppedNorItsNumberGivenAgain) {
  Write(3, 5, 60);
  const std::string newest = golden_[3];
  Prune({1, 2, 3, 99});
  golden_[3] = newest;
  CheckAll();
  EXPECT_EQ(PagesBytes(), 0u);
}

TEST_F(PruneTest, GivesBackAllButAnEighthOfWhatIsDead) {
  Write(300, 10, 100);
  const uint64_t before = PagesBytes();
  PruneProgress done = Prune(AllBut(50));
  // Six versions are older than the newest. None can need more than all pages.
  const uint64_t ideal_max = 6 * 100 * (64 + 4 + kPage);
  EXPECT_LT(PagesBytes(), ideal_max * 8 / 7 + 1);
  EXPECT_LT(PagesBytes(), before / 4);
  EXPECT_EQ(done.freed_bytes, before - PagesBytes());
  EXPECT_EQ(file_->Info()->history_bytes, PagesBytes());
  CheckAll();
}

// As in CephFS without a ceph-mgr.
TEST_F(PruneTest, GivesBackAsMuchWhereFreeSpaceIsUnknown) {
  Write(30, 5, 60);
  env_.SetCountsSpace(false);
  const uint64_t before = PagesBytes();
  const auto estimate = file_->StartEstimate({AllBut(7)});
  Must(estimate.status());
  while (true) {
    const auto done = (*estimate)->Step();
    Must(done.status());
    if (!done.ok() || *done) break;
  }
  const PruneProgress done = Prune(AllBut(7));
  EXPECT_EQ(done.left, "");
  EXPECT_GT(done.freed_bytes, 0);
  EXPECT_EQ(done.freed_bytes, before - PagesBytes());
  CheckAll();
}

TEST_F(PruneTest, AVersionThatReachesFurtherKeepsWhatWasCutOffSince) {
  Writer writer(file_, SessionStart::kNewGeneration);
  auto commit = [&](std::string bytes) {
    Must(writer.Truncate(bytes.size()));
    if (!bytes.empty()) Must(writer.Write(0, bytes));
    auto cut = writer.CutDurably(BarrierKind::kCommit);
    golden_[cut->version] = bytes;
    Must(file_->WaitApplied(absl::Seconds(10)));
  };
  commit(Bytes(4 * kPage) + std::string(4 * kPage, '\0'));
  commit(Bytes(2 * kPage));
  commit(Bytes(2 * kPage));
  commit(Bytes(8 * kPage));  // Zeros in version 1 are saved only here, for version 3.
  commit(Bytes(8 * kPage));
  Prune({3});
  CheckAll();
  Prune({2});
  CheckAll();
  Must(writer.End());
}

TEST_F(PruneTest, AnOldGenerationGoesWithItsLastVersion) {
  Write(3, 5, 60);
  {
    Writer writer(file_, SessionStart::kNewGeneration);
    Must(writer.Write(0, Bytes(20 * kPage)));
    golden_[writer.CutDurably(BarrierKind::kCommit)->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(10)));
  }
  auto reader = *file_->OpenVersion(1);
  Prune({1, 3});
  EXPECT_TRUE(Exists("x.h5.h5m/head-1"));
  CheckAll();
  Prune({2});
  EXPECT_FALSE(Exists("x.h5.h5m/head-1"));
  EXPECT_FALSE(Exists("x.h5.h5m/sums-1"));
  CheckAll();
  std::string bytes(kPage, '\0');
  EXPECT_TRUE(absl::IsOutOfRange(reader->Read(0, absl::MakeSpan(bytes))));
  EXPECT_FALSE(Exists("x.h5.h5m/sums-1")) << "the reader made it again";
  Open();
  CheckAll();
}

TEST_F(PruneTest, TagsOfDroppedVersionsGo) {
  Write(3, 2, 60);
  Must(file_->Tag(1, "old", TagMode::kKeep).status());
  Must(file_->Tag(2, "kept", TagMode::kKeep).status());
  Prune({1});
  EXPECT_TRUE(absl::IsNotFound(file_->FindVersionTagged("old").status()));
  EXPECT_EQ(file_->FindVersionTagged("kept")->version, 2);
}

TEST_F(PruneTest, OneThatWasCutShortIsTakenUpByTheNext) {
  Write(60, 5, 60);
  const std::vector<VersionNumber> versions = AllBut(20);
  for (int steps = 0; steps < 12; ++steps) {
    auto env = env_.CopyNow();
    StoreOptions options;
    options.page_size_bytes = kPage;
    auto store = OpenStore(*env, "/", options);
    auto file = *store->OpenFile("x.h5");
    {
      auto job = file->StartPrune(versions);
      for (int i = 0; i < steps; ++i) Must((*job)->Step().status());
      auto second = file->StartPrune({});
      EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
    }
    auto job = file->StartPrune(versions);
    for (bool done = false; !done;) {
      auto progress = (*job)->Step();
      Must(progress.status());
      done = progress->done;
    }
    for (VersionNumber version : {20, 40, 60}) {
      EXPECT_TRUE(ReadVersion(*file, version) == golden_[version]) << steps << " " << version;
    }
    EXPECT_LT(PagesBytes(*env), 2 * 60 * (64 + 4 + kPage) * 8 / 7 + 1) << steps;
  }
}

TEST_F(PruneTest, BesideReadersAndAWriterNobodySeesWrongBytes) {
  Write(60, 10, 60);
  const std::map<VersionNumber, std::string> golden = golden_;
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      while (!stop) {
        const VersionNumber version = 1 + random() % 60;
        auto reader = file_->OpenVersion(version);
        if (absl::IsOutOfRange(reader.status())) continue;
        ASSERT_TRUE(reader.ok()) << reader.status();
        for (int i = 0; i < 4; ++i) {
          std::string bytes((*reader)->info().size_bytes, '\0');
          absl::Status read = (*reader)->Read(0, absl::MakeSpan(bytes));
          if (absl::IsOutOfRange(read)) break;
          ASSERT_TRUE(read.ok()) << read;
          const std::string& wanted = golden.at(version);
          std::string where;
          for (size_t p = 0; p * kPage < wanted.size(); ++p) {
            if (bytes.compare(p * kPage, kPage, wanted, p * kPage, kPage) == 0) continue;
            where += " page " + std::to_string(p) + " has";
            for (const auto& [v, b] : golden) {
              if (b.size() >= (p + 1) * kPage &&
                  b.compare(p * kPage, kPage, bytes, p * kPage, kPage) == 0) {
                where += " v" + std::to_string(v);
              }
            }
          }
          ASSERT_TRUE(bytes == wanted) << version << where << " read " << i;
          ++reads;
        }
      }
    });
  }
  threads.emplace_back([&] {
    Writer writer(file_, SessionStart::kContinue, golden.rbegin()->second);
    while (!stop) {
      Must(writer.Write(0, std::string(kPage, static_cast<char>(reads))));
      Must(writer.CutDurably(BarrierKind::kCommit).status());
    }
    Must(writer.End());
  });
  for (int step : {2, 5, 20}) {
    Prune(AllBut(step));
    absl::SleepFor(absl::Milliseconds(50));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reads, 10);
  for (const auto& [version, bytes] : golden_) {
    EXPECT_TRUE(ReadVersion(*file_, version) == bytes) << "version " << version;
  }
}

TEST_F(PruneTest, ADamagedRecordStaysWhereItIsAndIsReported) {
  Write(30, 10, 60);
  auto tree = *env_.OpenTree("/");
  auto segment = *tree->Open("x.h5.h5m/pages-000001", OpenKind::kWrite, 0);
  // In the last record. It is of the newest version but one, which stays.
  const uint64_t at = *segment->Size() - 5;
  std::string byte(1, '\0');
  Must(segment->ReadAt(at, absl::MakeSpan(byte)).status());
  byte[0] ^= 1;
  Must(WriteAt(*segment, at, byte));
  std::vector<VersionNumber> versions = AllBut(29);
  PruneProgress done = Prune(versions);
  EXPECT_THAT(done.left, HasSubstr("does not match"));
  std::string bytes(golden_[29].size(), '\0');
  EXPECT_TRUE(absl::IsDataLoss((*file_->OpenVersion(29))->Read(0, absl::MakeSpan(bytes))));
  golden_.erase(29);
  EXPECT_TRUE(ReadVersion(*file_, 30) == golden_[30]);
}

TEST_F(PruneTest, WithoutRoomForACopyNothingIsLostAndTheRestIsSaid) {
  Write(60, 10, 60);
  env_.SetCapacity(1);  // The index cannot grow either: the first transaction fails.
  auto job = file_->StartPrune(AllBut(7));
  auto step = (*job)->Step();
  while (step.ok() && !step->done) step = (*job)->Step();
  EXPECT_FALSE(step.ok());
  job->reset();
  env_.SetCapacity(UINT64_MAX);
  Open();
  CheckAll();
  Prune(AllBut(7));
  CheckAll();
}

}  // namespace
}  // namespace h5mirror::store
