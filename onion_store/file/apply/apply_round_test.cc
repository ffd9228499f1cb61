// A round of an apply by itself: the pages that it takes in, and the head after it.
#include "onion_store/file/apply/apply_round.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;

constexpr uint32_t kPage = 512;
constexpr uint64_t kAll = uint64_t{64} << 20;

class ApplyRoundTest : public testing::Test {
 protected:
  ApplyRoundTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20), stage_(*tree_, "d", FileId{1}) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    auto generation = std::make_shared<Generation>();
    generation->number = 1;
    generation->head = *tree_->Open("x.h5", OpenKind::kCreateFresh, 0600);
    generation->sums =
        std::make_unique<SumsFile>(*tree_->Open("d/sums-1", OpenKind::kCreateFresh, 0600), kPage);
    basis_.layer = std::make_shared<CutLayer>(budget_, *tree_, "d");
    basis_.layer->generation = std::move(generation);
    basis_.page_size_bytes = kPage;
  }
  // A head of one page for each of `pages`, and a cut of the same size.
  void SetHead(const std::string& pages) {
    for (size_t i = 0; i < pages.size(); ++i) {
      const std::string bytes(kPage, pages[i]);
      ASSERT_TRUE(WriteAt(head(), i * kPage, bytes).ok());
      const uint32_t sum = sums().SumOf(bytes);
      ASSERT_TRUE(sums().Write(i, {&sum, 1}).ok());
    }
    basis_.old_size_bytes = basis_.layer->size_bytes = pages.size() * kPage;
  }
  void Stage(uint64_t offset, const std::string& bytes) {
    const Extent extent{offset, bytes.size()};
    const std::string_view piece = bytes;
    const auto at = stage_.AppendWrite(1, 0, {&extent, 1}, {&piece, 1});
    ASSERT_TRUE(at.ok()) << at.status();
    ASSERT_TRUE(basis_.layer->data.Put(extent, *at).ok());
    basis_.layer->segments = stage_.segments();
  }
  void StagePage(uint64_t page) { Stage(page * kPage, std::string(kPage, 'z')); }
  // Brings all of the cut into the head.
  void Apply(ApplyRound& round) {
    for (uint64_t at = 0;;) {
      ASSERT_TRUE(round.Fill(kAll, &at).ok());
      if (round.empty()) return;
      round.PlaceRuns();
      std::vector<PageRun> runs;
      for (ApplyChunk& chunk : round.chunks()) {
        ASSERT_TRUE(round.Load(chunk).ok());
        ASSERT_TRUE(round.SavePreImages(chunk, &runs).ok());
      }
      EXPECT_TRUE(runs.empty()) << "no version needs them";
      ASSERT_TRUE(round.Write().ok());
    }
  }
  // The pages of each chunk as first+count, its runs in brackets.
  static std::vector<std::string> Drawn(ApplyRound& round) {
    std::vector<std::string> drawn;
    for (const ApplyChunk& chunk : round.chunks()) {
      std::string text = std::to_string(chunk.range.offset / kPage) + "+" +
                         std::to_string(chunk.range.length / kPage) + ":";
      for (const ApplyRun& run : chunk.runs) {
        text += " [" + std::to_string(run.first) + "+" + std::to_string(run.count) + "]";
      }
      drawn.push_back(std::move(text));
    }
    return drawn;
  }
  // The first and the last byte of a page of the head.
  std::string Ends(uint64_t page) {
    std::string bytes(kPage, '?');
    EXPECT_TRUE(ReadOrZeros(head(), page * kPage, absl::MakeSpan(bytes)).ok());
    return {bytes.front(), bytes.back()};
  }
  bool HasItsSum(uint64_t page) {
    std::string bytes(kPage, '?');
    EXPECT_TRUE(ReadOrZeros(head(), page * kPage, absl::MakeSpan(bytes)).ok());
    return sums().Read(page, 1)->front() == sums().SumOf(bytes);
  }
  EnvFile& head() { return *basis_.layer->generation->head; }
  SumsFile& sums() { return *basis_.layer->generation->sums; }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  StageLog stage_;
  ApplyBasis basis_;
};

TEST_F(ApplyRoundTest, PagesThatAreNearAreReadInOnePiece) {
  SetHead(std::string(256, 'a'));
  for (const uint64_t page : {1, 2, 4, 100, 200}) StagePage(page);
  ApplyRound round(basis_);
  uint64_t at = 0;
  ASSERT_TRUE(round.Fill(kAll, &at).ok());
  EXPECT_THAT(Drawn(round), ElementsAre("1+4: [0+2] [3+1]", "100+1: [0+1]", "200+1: [0+1]"));
  EXPECT_EQ(round.touched_bytes(), 5u * kPage) << "the gap is read, and not touched";
}

TEST_F(ApplyRoundTest, NoGapIsReadBeyondTheOldEnd) {
  SetHead("aaaa");
  basis_.layer->size_bytes = 20 * kPage;
  for (const uint64_t page : {1, 3, 5, 7}) StagePage(page);
  ApplyRound round(basis_);
  uint64_t at = 0;
  ASSERT_TRUE(round.Fill(kAll, &at).ok());
  EXPECT_THAT(Drawn(round), ElementsAre("1+3: [0+1] [2+1]", "5+1: [0+1]", "7+1: [0+1]"));
}

TEST_F(ApplyRoundTest, ARoundTakesAsMuchAsMemoryIsFor) {
  SetHead(std::string(16, 'a'));
  Stage(0, std::string(10 * kPage, 'z'));
  ApplyRound round(basis_);
  uint64_t at = 0;
  for (const uint64_t pages : {4, 4, 2, 0}) {
    ASSERT_TRUE(round.Fill(4 * kPage, &at).ok());
    EXPECT_EQ(round.touched_bytes(), pages * kPage);
  }
  EXPECT_TRUE(round.empty());
}

TEST_F(ApplyRoundTest, AnOverwrittenPartGetsASumOfTheWholePage) {
  SetHead("abc");
  Stage(kPage, "z");
  Stage(2 * kPage, std::string(kPage, 'c'));  // The same bytes as before.
  ApplyRound round(basis_);
  Apply(round);
  EXPECT_EQ(Ends(0), "aa");
  EXPECT_EQ(Ends(1), "zb");
  EXPECT_TRUE(HasItsSum(1));
  EXPECT_EQ(round.changed_pages(), 1u);
  EXPECT_EQ(round.TakeBad().count, 0u);
}

TEST_F(ApplyRoundTest, ADamagedPageThatIsOverwrittenInPartStaysBad) {
  SetHead("abc");
  ASSERT_TRUE(WriteAt(head(), kPage, std::string(kPage, '!')).ok());  // By another program.
  Stage(kPage, "z");
  ApplyRound round(basis_);
  Apply(round);
  EXPECT_EQ(Ends(1), "z!");
  EXPECT_FALSE(HasItsSum(1));
  const FoundPages bad = round.TakeBad();
  EXPECT_EQ(bad.count, 1u);
  EXPECT_EQ(bad.first, 1u);
  EXPECT_EQ(round.TakeBad().count, 0u);
}

TEST_F(ApplyRoundTest, WhatACutHasCutOffIsCleared) {
  SetHead("abcd");
  ASSERT_TRUE(basis_.layer->data.Truncate(2 * kPage + 10).ok());
  ApplyRound round(basis_);  // It has grown again since: the size is the same.
  Apply(round);
  EXPECT_EQ(Ends(1), "bb");
  EXPECT_EQ(Ends(2), std::string("c\0", 2));
  EXPECT_EQ(Ends(3), std::string("\0\0", 2));
  EXPECT_TRUE(HasItsSum(2));
  EXPECT_TRUE(HasItsSum(3));
}

TEST_F(ApplyRoundTest, APinnedCutGetsThePageThatChanges) {
  SetHead("abc");
  Stage(0, std::string(2 * kPage, 'b'));  // The second page is the same as before.
  PinnedPages pages(budget_, *tree_, "d", 1, kPage);
  ApplyRound round(basis_);
  uint64_t at = 0;
  ASSERT_TRUE(round.Fill(kAll, &at).ok());
  round.PlaceRuns();
  ASSERT_TRUE(round.Load(round.chunks().front()).ok());
  const PagesToPin to{std::shared_ptr<PinnedPages>(&pages, [](PinnedPages*) {}), 3};
  ASSERT_TRUE(round.SavePinned(round.chunks().front(), to).ok());
  EXPECT_TRUE(pages.Has(0));
  EXPECT_FALSE(pages.Has(1));
}

}  // namespace
}  // namespace h5mirror::store
