// Pinned cuts: their bytes stay while the file goes on, and a read says when the pin has expired.
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_ranges.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPage = 4096;

std::string ReadAll(const Snapshot& snapshot) {
  std::string bytes(snapshot.info().size_bytes, '?');
  const absl::Status read = snapshot.Read(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(read.ok()) << read;
  return bytes;
}

class SnapshotTest : public testing::Test {
 protected:
  void Open(StoreOptions options = {}) {
    store_ = OpenStore(env_, "/", options);
    auto file = store_->OpenOrCreateFile("x.h5", 0);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    writer_ = std::make_unique<Writer>(file_, SessionStart::kContinue);
    ASSERT_TRUE(writer_->begun().ok()) << writer_->begun();
  }
  void TearDown() override {
    if (writer_ != nullptr) writer_->End().IgnoreError();
  }
  std::shared_ptr<Snapshot> Pin() {
    auto snapshot = file_->PinNewestCut();
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.ok() ? *std::move(snapshot) : nullptr;
  }
  void Fill(char byte, size_t pages = 8) {
    ASSERT_TRUE(writer_->Write(0, std::string(pages * kPage, byte)).ok());
  }
  void Apply(BarrierKind kind) {
    ASSERT_TRUE(writer_->CutDurably(kind).ok());
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(20)).ok());
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(SnapshotTest, ThereIsNoneBeforeTheFirstCut) {
  Open();
  EXPECT_TRUE(absl::IsNotFound(file_->PinNewestCut().status()));
}

TEST_F(SnapshotTest, ATickIsThereAtOnceAndStaysWhatItWas) {
  Open();
  Fill('a');
  auto cut = writer_->Cut(BarrierKind::kTick);
  ASSERT_TRUE(cut.ok());
  const auto first = Pin();
  EXPECT_EQ(first->info().cut, *cut);
  Fill('b', 4);
  const std::string uncut = ReadAll(*first);
  EXPECT_EQ(uncut, std::string(8 * kPage, 'a'));
  ASSERT_TRUE(writer_->Cut(BarrierKind::kTick).ok());
  const auto second = Pin();
  ASSERT_TRUE(writer_->Truncate(100).ok());
  Apply(BarrierKind::kCommit);
  EXPECT_EQ(ReadAll(*first), std::string(8 * kPage, 'a'));
  EXPECT_EQ(ReadAll(*second), std::string(4 * kPage, 'b') + std::string(4 * kPage, 'a'));
  EXPECT_EQ(ReadAll(*Pin()), std::string(100, 'b'));
}

TEST_F(SnapshotTest, OfANewGenerationTheOldOneStays) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto old_one = Pin();
  ASSERT_TRUE(writer_->End().ok());
  writer_ = std::make_unique<Writer>(file_, SessionStart::kNewGeneration);
  Fill('z', 2);
  ASSERT_TRUE(writer_->Cut(BarrierKind::kTick).ok());
  const auto fresh = Pin();  // not durable: its head is hidden yet
  EXPECT_EQ(ReadAll(*fresh), std::string(2 * kPage, 'z'));
  Apply(BarrierKind::kCommit);
  EXPECT_EQ(ReadAll(*fresh), std::string(2 * kPage, 'z'));
  EXPECT_EQ(ReadAll(*old_one), std::string(8 * kPage, 'a'));
}

TEST_F(SnapshotTest, OverBudgetTheOldestExpires) {
  StoreOptions options;
  options.snapshot_max_bytes = 12 * kPage;
  Open(options);
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto oldest = Pin();
  Fill('b');
  Apply(BarrierKind::kCommit);  // 8 pages are saved.
  EXPECT_EQ(ReadAll(*oldest), std::string(8 * kPage, 'a'));
  const auto second = Pin();
  Fill('c');
  Apply(BarrierKind::kCommit);  // 16.
  std::string bytes(1, '?');
  const absl::Status expired = oldest->Read(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(absl::IsOutOfRange(expired)) << expired;
  EXPECT_NE(expired.message().find("snapshot expired, reopen: cut "), std::string::npos) << expired;
  EXPECT_EQ(ReadAll(*second), std::string(8 * kPage, 'b'));
}

TEST_F(SnapshotTest, ExpiresForAllWhoHoldItAndMayBePinnedAgain) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto one = Pin(), other = Pin();
  one->Expire();
  std::string bytes(1, '?');
  EXPECT_TRUE(absl::IsOutOfRange(one->Read(0, absl::MakeSpan(bytes))));
  EXPECT_TRUE(absl::IsOutOfRange(other->NextData(0).status()));
  EXPECT_EQ(ReadAll(*Pin()), std::string(8 * kPage, 'a'));
}

// If a page cannot be saved, the head must still move on.
TEST_F(SnapshotTest, AFullDiskExpiresItAndNothingElse) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto held = Pin();
  env_.FailOpensOf("/run-", absl::ResourceExhaustedError("No space left on device"));
  Fill('b');
  Apply(BarrierKind::kCommit);
  std::string bytes(1, '?');
  EXPECT_TRUE(absl::IsOutOfRange(held->Read(0, absl::MakeSpan(bytes))));
  EXPECT_EQ(ReadAll(*Pin()), std::string(8 * kPage, 'b'));
}

TEST_F(SnapshotTest, DamageOfTheHeadIsFoundBeforeAndAfterItsPageIsOverwritten) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto held = Pin();
  auto head = (*env_.OpenTree("/"))->Open("x.h5", OpenKind::kWrite, 0);
  ASSERT_TRUE(head.ok());
  ASSERT_TRUE(WriteAt(**head, kPage + 7, "!").ok());
  std::string page(kPage, '?');
  EXPECT_TRUE(absl::IsDataLoss(held->Read(kPage, absl::MakeSpan(page))));
  EXPECT_TRUE(held->Read(0, absl::MakeSpan(page)).ok());
  Fill('b');
  Apply(BarrierKind::kCommit);
  EXPECT_TRUE(absl::IsDataLoss(held->Read(kPage, absl::MakeSpan(page))));
  EXPECT_TRUE(held->Read(2 * kPage, absl::MakeSpan(page)).ok());
  EXPECT_EQ(page, std::string(kPage, 'a'));
}

// Some pages in the head, some saved, some staged; near each other and far apart.
TEST_F(SnapshotTest, ManyRangesAreWhatOneReadOfAllIs) {
  Open();
  std::string head(300 * kPage, '\0');
  for (size_t i = 0; i < head.size(); ++i) head[i] = static_cast<char>(i / kPage + i);
  ASSERT_TRUE(writer_->Write(0, head).ok());
  Apply(BarrierKind::kCommit);
  ASSERT_TRUE(writer_->Write(40 * kPage + 9, std::string(3 * kPage, 's')).ok());
  ASSERT_TRUE(writer_->Cut(BarrierKind::kTick).ok());
  const auto held = Pin();
  const std::string wanted = ReadAll(*held);
  ASSERT_TRUE(writer_->Write(80 * kPage, std::string(3 * kPage, 'n')).ok());
  Apply(BarrierKind::kCommit);
  absl::Status read;
  EXPECT_TRUE(ScatteredReadsMatch(*held, wanted, &read));
  EXPECT_TRUE(read.ok()) << read;

  const std::vector<Extent> apart = {
      {5, 1}, {6, 0}, {7, 2}, {kPage, 10 * kPage}, {41 * kPage + 3, 100}, {299 * kPage, 2 * kPage}};
  std::string expected;
  for (const Extent& range : apart) {
    std::string bytes(range.length, '?');
    ASSERT_TRUE(held->Read(range.offset, absl::MakeSpan(bytes)).ok());
    expected += bytes;
  }
  std::string bytes(expected.size(), '?');
  ASSERT_TRUE(held->ReadRanges(apart, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, expected);
  EXPECT_TRUE(held->ReadRanges({}, {}).ok());
}

TEST_F(SnapshotTest, DamageBetweenTwoRangesIsNeithersOfThem) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto held = Pin();
  auto head = (*env_.OpenTree("/"))->Open("x.h5", OpenKind::kWrite, 0);
  ASSERT_TRUE(head.ok());
  ASSERT_TRUE(WriteAt(**head, 2 * kPage + 7, "!").ok());
  std::string bytes(2 * kPage, '?');
  EXPECT_TRUE(held->ReadRanges({{kPage, kPage}, {3 * kPage, kPage}}, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(2 * kPage, 'a'));
  EXPECT_TRUE(absl::IsDataLoss(
      held->ReadRanges({{kPage, kPage}, {2 * kPage, kPage}}, absl::MakeSpan(bytes))));
}

TEST_F(SnapshotTest, WhatCannotBeReadTogetherIsReadOneByOne) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  const auto held = Pin();
  std::string bytes(2 * kPage, '?');
  env_.FailCall(0, absl::InternalError("Input/output error"));
  EXPECT_TRUE(held->ReadRanges({{kPage, kPage}, {3 * kPage, kPage}}, absl::MakeSpan(bytes)).ok());
  EXPECT_TRUE(env_.fault_met());
  EXPECT_EQ(bytes, std::string(2 * kPage, 'a'));
}

// While another reader has pinned it before.
TEST_F(SnapshotTest, ACutThatHasBecomeAVersionIsOneToWhoPinsItThen) {
  Open();
  Fill('a');
  ASSERT_TRUE(writer_->Cut(BarrierKind::kTick).ok());
  const auto before = Pin();
  ASSERT_TRUE(writer_->End(SessionEnd::kLost).ok());
  writer_ = nullptr;
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(20)).ok());
  const auto after = Pin();
  EXPECT_EQ(after->info().cut, before->info().cut);
  EXPECT_EQ(before->info().version, 0);
  EXPECT_EQ(after->info().version, 1);
}

TEST_F(SnapshotTest, ACutThatChangedNothingSinceAVersionIsThatVersion) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  Fill('a');
  Apply(BarrierKind::kSync);
  EXPECT_EQ(Pin()->info().version, 1);
  Fill('b');
  Apply(BarrierKind::kSync);
  EXPECT_EQ(Pin()->info().version, 0);
}

TEST_F(SnapshotTest, AMovedFileIsToBeOpenedAgain) {
  Open();
  Fill('a');
  Apply(BarrierKind::kCommit);
  ASSERT_TRUE(writer_->End().ok());
  writer_ = nullptr;
  const auto held = Pin();
  ASSERT_TRUE(store_->Move("x.h5", "y.h5").ok());
  std::string bytes(1, '?');
  EXPECT_TRUE(absl::IsUnavailable(held->Read(0, absl::MakeSpan(bytes))));
}

}  // namespace
}  // namespace h5mirror::store
