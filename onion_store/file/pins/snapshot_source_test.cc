// A snapshot over the parts of a file that it needs: a head, pins, and pinned pages.
#include "onion_store/file/pins/snapshot_source.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/file/pins/pins.h"
#include "onion_store/file/pins/snapshot.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPage = 512;

class FakeSource final : public SnapshotSource {
 public:
  explicit FakeSource(Pins& pins, PinnedPagesList& pages) : pins_(pins), pages_(pages) {}

  const std::string& name() const override { return name_; }
  uint32_t page_size_bytes() const override { return kPage; }
  absl::Status dead() override { return dead_status; }
  void Unpin(const std::shared_ptr<PinnedCut>& pin) override {
    if (pins_.Release(pin)) ExpirePin(pin);
  }
  void ExpirePin(const std::shared_ptr<PinnedCut>& pin) override {
    if (pins_.Has(pin)) pins_.Drop(pin->info.cut);
  }
  absl::Status ReadLayers(absl::FunctionRef<absl::Status()> read) override {
    ++layer_reads;
    return read();
  }
  SumsFile* SumsOf(const Generation& generation) override { return generation.sums.get(); }
  std::vector<std::shared_ptr<PinnedPages>> PinnedPagesSince(uint64_t first,
                                                             int64_t generation) override {
    return pages_.Since(first, generation);
  }

  absl::Status dead_status;
  int layer_reads = 0;

 private:
  Pins& pins_;
  PinnedPagesList& pages_;
  const std::string name_ = "x.h5";
};

class SnapshotSourceTest : public testing::Test {
 protected:
  SnapshotSourceTest()
      : tree_(*env_.OpenTree("/")), budget_(1 << 20), pages_(budget_, *tree_, "d") {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    generation_->number = 1;
    generation_->head = *tree_->Open("x.h5", OpenKind::kCreateFresh, 0600);
    Write("aabb");
  }
  // Makes the head of one page for each of `pages`.
  void Write(const std::string& pages) {
    for (size_t i = 0; i < pages.size(); ++i) {
      ASSERT_TRUE(WriteAt(*generation_->head, i * kPage, std::string(kPage, pages[i])).ok());
    }
  }
  std::unique_ptr<SnapshotImpl> Pin(CutNumber cut) {
    const auto pin = pins_.Pin({cut, 4 * kPage, 1, {}, 0, 0}, generation_, {}, kPage);
    return std::make_unique<SnapshotImpl>(source_, pin, pin->info);
  }
  // The first byte of each page; if a page cannot be read, the error.
  std::string ReadAll(const SnapshotImpl& snapshot) {
    std::string bytes(4 * kPage, '?'), firsts;
    const absl::Status read = snapshot.Read(0, absl::MakeSpan(bytes));
    if (!read.ok()) return read.ToString();
    for (size_t at = 0; at < bytes.size(); at += kPage) firsts += bytes[at];
    return firsts;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  PinnedPagesList pages_;
  Pins pins_{pages_};
  const std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(pins_, pages_);
  const std::shared_ptr<Generation> generation_ = std::make_shared<Generation>();
};

TEST_F(SnapshotSourceTest, WhatWasSavedLiesOverTheHead) {
  const auto snapshot = Pin(3);
  EXPECT_EQ(ReadAll(*snapshot), "aabb");
  auto saved = pins_.PagesBefore(4, 1, kPage).pages;
  ASSERT_TRUE(saved->Save(1, std::string(kPage, 'a')).ok());
  Write("acbb");
  EXPECT_EQ(ReadAll(*snapshot), "aabb");
  EXPECT_EQ(source_->layer_reads, 2) << "under the lock of the file's layers";
}

TEST_F(SnapshotSourceTest, APageThatWasLostIsNamed) {
  const auto snapshot = Pin(3);
  pins_.PagesBefore(4, 1, kPage).pages->SaveLoss(2);
  EXPECT_THAT(ReadAll(*snapshot), HasSubstr("read page 2 of x.h5 at cut 3: the head was changed"));
}

TEST_F(SnapshotSourceTest, AnExpiredCutSaysSoUnlessTheFileIsDead) {
  const auto snapshot = Pin(3);
  snapshot->Expire();
  EXPECT_TRUE(snapshot->expired());
  EXPECT_THAT(ReadAll(*snapshot), HasSubstr("snapshot expired, reopen: cut 3 of x.h5"));
  source_->dead_status = absl::UnavailableError("the store was closed");
  EXPECT_THAT(ReadAll(*snapshot), HasSubstr("the store was closed"));
}

TEST_F(SnapshotSourceTest, ThePinGoesWithTheSnapshot) {
  auto snapshot = Pin(3);
  EXPECT_TRUE(pins_.Has(CutNumber{3}));
  snapshot.reset();
  EXPECT_FALSE(pins_.Has(CutNumber{3}));
}

}  // namespace
}  // namespace h5mirror::store
