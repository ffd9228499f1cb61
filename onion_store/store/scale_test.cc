// The cost of a long history and of a huge file, counted in bytes, calls and memory, not in time.
#include <algorithm>
#include <filesystem>
#include <random>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;
constexpr uint64_t kPages = 400;
constexpr int kPagesOfVersion = 5;

struct Cost {
  uint64_t bytes = 0;
  int syncs = 0;
};

class LongHistoryTest : public testing::Test {
 protected:
  LongHistoryTest() {
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(env_, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
    writer_ = std::make_unique<Writer>(file_, SessionStart::kContinue);
    EXPECT_TRUE(writer_->Write(0, Bytes(kPages * kPage)).ok());
    Commit();
  }
  ~LongHistoryTest() override {
    writer_.reset();
    file_.reset();
    store_.reset();
  }

  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  void Commit() {
    auto cut = writer_->CutDurably(BarrierKind::kCommit);
    ASSERT_TRUE(cut.ok()) << cut.status();
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
    newest_ = cut->version;
  }
  // Commits until there are `versions`. Returns the cost of one of them, its apply included.
  Cost CommitUntil(VersionNumber versions) {
    env_.counts().Clear();
    const VersionNumber before = newest_;
    while (newest_ < versions && !HasFatalFailure()) {
      for (int i = 0; i < kPagesOfVersion; ++i) {
        EXPECT_TRUE(writer_->Write(random_() % kPages * kPage, Bytes(kPage)).ok());
      }
      Commit();
    }
    const uint64_t count = static_cast<uint64_t>(newest_ - before);
    return {env_.counts().bytes / count, static_cast<int>(env_.counts().syncs / count)};
  }
  // The bytes for an open of `version` and the read of a page.
  uint64_t BytesToOpen(VersionNumber version) {
    env_.counts().Clear();
    auto reader = file_->OpenVersion(version);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::string page(kPage, '\0');
    EXPECT_TRUE((*reader)->Read(7 * kPage, absl::MakeSpan(page)).ok());
    return env_.counts().bytes;
  }

  FaultEnv disk_;
  CountingEnv env_{disk_};
  std::mt19937_64 random_{3};
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
  std::unique_ptr<Writer> writer_;
  VersionNumber newest_ = 0;
};

TEST_F(LongHistoryTest, ACommitAndAnOpenCostAtVersion2000WhatTheyCostAtTheBeginning) {
  CommitUntil(20);
  const Cost first = CommitUntil(120);
  const uint64_t open_bytes = BytesToOpen(60);
  CommitUntil(1900);
  const Cost last = CommitUntil(2000);
  EXPECT_EQ(last.syncs, first.syncs);
  // In a small index several rows share a page. At worst each row has a page of its own.
  EXPECT_LT(last.bytes, first.bytes * 3 / 2);
  for (VersionNumber version : {2, 1000, 1999, 2000}) {
    EXPECT_LT(BytesToOpen(version), open_bytes + (64 << 10)) << version;
  }
  RecordProperty("commit_bytes_at_100", static_cast<int>(first.bytes));
  RecordProperty("commit_bytes_at_2000", static_cast<int>(last.bytes));
}

TEST_F(LongHistoryTest, APruneTakesBoundedMemoryAndOneCopyOfWhatIsKept) {
  CommitUntil(1000);
  std::vector<VersionNumber> doomed;
  for (VersionNumber version = 1; version < 1000; ++version) {
    if (version % 10 != 0) doomed.push_back(version);
  }
  const uint64_t disk_before = disk_.used_bytes();
  const uint64_t memory_before = store_->memory_used_bytes();
  uint64_t disk_most = 0, memory_most = 0;
  auto job = file_->StartPrune(doomed);
  ASSERT_TRUE(job.ok()) << job.status();
  for (bool done = false; !done;) {
    auto progress = (*job)->Step();
    ASSERT_TRUE(progress.ok()) << progress.status();
    done = progress->done;
    disk_most = std::max(disk_most, disk_.used_bytes());
    memory_most = std::max(memory_most, store_->memory_used_bytes());
  }
  EXPECT_LT(memory_most, memory_before + (16 << 20));
  // The log of the index, and the records of retained versions.
  EXPECT_LT(disk_most, disk_before + (8 << 20));
  // Half of what this history took, 7,527,657 bytes, when the index and its log had pages of 4 KiB.
  EXPECT_LT(disk_.used_bytes(), 7'527'657 / 2);
  // So many of the records are still needed that their segments stay.
  EXPECT_LT(disk_.used_bytes(), disk_before * 4 / 5);
}

// Beside the operating system: FaultEnv has no holes.
TEST(HugeFileTest, ACommitCostsInTwentyGigabytesWhatItCostsInTenMegabytes) {
  std::string pattern = testing::TempDir() + "/scale_test.XXXXXX";
  const std::filesystem::path root = mkdtemp(pattern.data());
  CountingEnv env;
  auto store = OpenStore(env, root);
  std::vector<Cost> costs;
  for (uint64_t size : {uint64_t{10} << 20, uint64_t{20} << 30}) {
    auto file = *store->OpenOrCreateFile("x" + std::to_string(size), 4096);
    for (int version = 0; version < 4; ++version) {
      if (version == 3) env.counts().Clear();
      const Token token = *file->Acquire();
      ASSERT_TRUE(file->Begin(token, SessionStart::kContinue, Origin{}, {0640}).ok());
      const std::string bytes(100, static_cast<char>('a' + version));
      for (uint64_t i = 0; i < 20; ++i) {
        const Extent extent{size / 20 * i / 4096 * 4096, bytes.size()};
        const std::string_view piece = bytes;
        ASSERT_TRUE(file->Write(token, {&extent, 1}, {&piece, 1}).ok());
      }
      CutRequest request;
      request.kind = BarrierKind::kCommit;
      request.size_bytes = size;
      ASSERT_TRUE(file->Cut(token, request, nullptr).ok());
      ASSERT_TRUE(file->End(token, SessionEnd::kClean).ok());
      ASSERT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
    }
    costs.push_back({env.counts().bytes, env.counts().syncs});
  }
  EXPECT_EQ(costs[0].syncs, costs[1].syncs);
  EXPECT_LT(costs[1].bytes, costs[0].bytes * 13 / 10);
  store.reset();
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace h5mirror::store
