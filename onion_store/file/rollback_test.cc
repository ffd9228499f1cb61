#include <sys/stat.h>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_place.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPage = 4096;

// Rollbacks with pages saved plain, and with packed pages.
class RollbackTest : public testing::TestWithParam<PageCompression> {
 protected:
  RollbackTest() {
    options_.page_compression = GetParam();
    store_ = OpenStore(env_, place_->root(), options_);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }

  // One version: `fill` in the first byte of each of `pages`, in a file of `size` bytes.
  void Commit(SessionStart start, uint64_t size, const std::vector<uint64_t>& pages, char fill) {
    auto token = file_->Acquire();
    ASSERT_TRUE(file_->Begin(*token, start, Origin{}, {0640}).ok());
    for (uint64_t page : pages) {
      Extent extent{page * kPage, 1};
      std::string_view piece(&fill, 1);
      ASSERT_TRUE(file_->Write(*token, {&extent, 1}, {&piece, 1}).ok());
    }
    CutRequest request;
    request.kind = BarrierKind::kCommit;
    request.size_bytes = size;
    ASSERT_TRUE(file_->Cut(*token, request, nullptr).ok());
    ASSERT_TRUE(file_->End(*token, SessionEnd::kClean).ok());
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  }
  char ByteAt(VersionNumber version, uint64_t page) {
    char byte = '?';
    absl::Status read = (*file_->OpenVersion(version))->Read(page * kPage, {&byte, 1});
    EXPECT_TRUE(read.ok()) << read;
    return byte;
  }
  uint64_t DiskBytes(const std::string& name) {
    struct stat st {};
    EXPECT_EQ(stat((place_->root() / name).c_str(), &st), 0);
    return st.st_blocks * 512;
  }

  StoreOptions options_;
  std::unique_ptr<TestPlace> place_ = MakeTestPlace();
  CountingEnv env_{place_->env()};
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

INSTANTIATE_TEST_SUITE_P(Saved, RollbackTest,
                         testing::Values(PageCompression::kNone, PageCompression::kZstd),
                         [](const auto& info) {
                           return info.param == PageCompression::kNone ? "Plain" : "Packed";
                         });

std::vector<uint64_t> EveryNth(uint64_t n, uint64_t count) {
  std::vector<uint64_t> pages;
  for (uint64_t i = 0; i < count; ++i) pages.push_back(i * n);
  return pages;
}

TEST_P(RollbackTest, CostsWhatDiffersAndNotWhatTheFileHolds) {
  if (!place_->is_here()) GTEST_SKIP() << "CephFS tells no holes: design 048";
  const uint64_t size = uint64_t{1} << 40;
  const std::vector<uint64_t> pages = EveryNth(size / kPage / 100, 100);
  Commit(SessionStart::kContinue, size, pages, 'a');
  Commit(SessionStart::kContinue, size, pages, 'b');
  IoCounts::OfThisThread().Clear();
  absl::Time start = absl::Now();
  auto made = file_->Rollback(1, {}, {1});
  const uint64_t io_bytes = IoCounts::OfThisThread().bytes;
  const absl::Duration time = absl::Now() - start;
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_LT(io_bytes, 200 * kPage);
  EXPECT_LT(time, absl::Seconds(1));
  EXPECT_EQ(ByteAt(3, pages[7]), 'a') << "read from the stage";
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  for (uint64_t page : pages) EXPECT_EQ(ByteAt(3, page), 'a');
  EXPECT_EQ(ByteAt(2, pages[7]), 'b');
}

TEST_P(RollbackTest, CostsNothingForOlderVersions) {
  const uint64_t size = 800 * kPage;
  for (char fill : {'a', 'b', 'c'}) {
    Commit(SessionStart::kContinue, size, EveryNth(2, 400), fill);
  }
  Commit(SessionStart::kContinue, size, {6, 8}, 'd');
  IoCounts::OfThisThread().Clear();
  ASSERT_TRUE(file_->Rollback(3, {}, {1}).ok());
  EXPECT_LT(IoCounts::OfThisThread().bytes, 40 * kPage);
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_EQ(ByteAt(5, 6), 'c');
  ASSERT_TRUE(file_->Rollback(1, {}, {2}).ok());
  EXPECT_EQ(ByteAt(6, 6), 'a');
  EXPECT_EQ(ByteAt(6, 200), 'a');
}

TEST_P(RollbackTest, ToAnOlderGenerationKeepsItsHoles) {
  if (!place_->is_here()) GTEST_SKIP() << "CephFS tells no holes: design 048";
  const uint64_t size = uint64_t{1} << 30;
  Commit(SessionStart::kContinue, size, {0, 1000, 5000}, 'a');
  Commit(SessionStart::kContinue, size, {1000, 7000}, 'b');
  Commit(SessionStart::kNewGeneration, kPage, {0}, 'c');
  auto made = file_->Rollback(1, {}, {1});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->generation, 3);
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_EQ(place_->SizeOf("x.h5"), size);
  EXPECT_LT(DiskBytes("x.h5"), uint64_t{1} << 20);
  const std::vector<std::pair<uint64_t, char>> wanted{
      {0, 'a'}, {1000, 'a'}, {5000, 'a'}, {7000, '\0'}};
  for (auto [page, byte] : wanted) EXPECT_EQ(ByteAt(4, page), byte) << page;
  EXPECT_EQ(ByteAt(3, 0), 'c');
}

TEST_P(RollbackTest, ToADamagedVersionChangesNothing) {
  Commit(SessionStart::kContinue, 10 * kPage, EveryNth(1, 10), 'a');
  Commit(SessionStart::kContinue, 10 * kPage, {4}, 'b');
  place_->Write("x.h5.h5m/pages-000001", 70, "bit rot");
  auto made = file_->Rollback(1, {}, {1});
  EXPECT_TRUE(absl::IsDataLoss(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("read page 4 of x.h5@1"));
  EXPECT_EQ(file_->GetVersion(0)->version, 2);
  EXPECT_EQ(ByteAt(2, 4), 'b');
  EXPECT_TRUE(file_->Rollback(2, {}, {2}).ok()) << "the file goes on";
}

// Sharing blocks may fail halfway, with newer bytes where the version has holes.
TEST(FailingRollbackTest, ToAnOlderGenerationBringsTheVersionOrNothing) {
  for (const char* before : {"", "y.h5"}) {  // FaultEnv shares into every second file.
    uint64_t call = 0;
    for (bool met = true; met; ++call) {
      FaultEnv env;
      auto store = OpenStore(env, "/");
      if (*before != '\0') {
        auto tree = *env.OpenTree("/");
        ASSERT_TRUE(tree->Open(before, OpenKind::kCreateFresh, 0600).ok());
      }
      auto file = *store->OpenOrCreateFile("x.h5", 512);
      std::string wanted;
      for (SessionStart start : {SessionStart::kContinue, SessionStart::kNewGeneration}) {
        Writer writer(file, start);
        ASSERT_TRUE(writer.Write(5000, "end").ok());
        ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
        if (start == SessionStart::kContinue) wanted = writer.content();
        ASSERT_TRUE(writer.Write(700, std::string(3000, 'n')).ok());
        ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
        ASSERT_TRUE(writer.End().ok());
        ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
      }
      env.FailCall(call, absl::InternalError("EIO"));
      auto made = file->Rollback(1, {}, {1});
      met = env.fault_met();
      env.FailCalls(0, 0, absl::OkStatus());
      if (!made.ok()) continue;
      if (met || env.fault_met()) {  // The call may have been one of the background's.
        file.reset();
        store.reset();
        store = OpenStore(env, "/");
        file = *store->OpenFile("x.h5");
      }
      EXPECT_TRUE(ReadVersion(*file, made->version) == wanted) << "call " << call << before;
    }
    EXPECT_GT(call, 20);
  }
}

TEST_P(RollbackTest, SurvivesARestartBeforeItIsApplied) {
  Commit(SessionStart::kContinue, 100 * kPage, EveryNth(1, 100), 'a');
  Commit(SessionStart::kContinue, 100 * kPage, EveryNth(3, 30), 'b');
  ASSERT_TRUE(file_->Rollback(1, {}, {1}).ok());
  file_.reset();
  ASSERT_TRUE(store_->Close(absl::ZeroDuration()).ok());
  store_.reset();
  store_ = OpenStore(env_, place_->root(), options_);
  file_ = *store_->OpenFile("x.h5");
  for (uint64_t page = 0; page < 100; ++page) EXPECT_EQ(ByteAt(3, page), 'a');
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_EQ(ByteAt(3, 3), 'a');
  EXPECT_EQ(ByteAt(2, 3), 'b');
}

}  // namespace
}  // namespace h5mirror::store
