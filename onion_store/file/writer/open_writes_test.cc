// The place of a write, and the end of writes that got into no cut.
#include "onion_store/file/writer/open_writes.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kPage = 512;

class OpenWritesTest : public testing::Test {
 protected:
  OpenWritesTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20), stage_(*tree_, "d", FileId{1}) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    generation_->number = 1;
    generation_->head = *tree_->Open("gen-1", OpenKind::kCreateFresh, 0600);
  }
  std::shared_ptr<CutLayer> NewLayer() {
    auto layer = std::make_shared<CutLayer>(budget_, *tree_, "d");
    layer->generation = generation_;
    layer->begins_generation = !generation_->has_cut;
    return layer;
  }
  // The head has a cut of `size_bytes`, all of them 'h'.
  void OpenOverCut(uint64_t size_bytes) {
    ASSERT_TRUE(WriteAt(*generation_->head, 0, std::string(size_bytes, 'h')).ok());
    generation_->has_cut = true;
    generation_->cut_bytes = size_bytes;
    open_.Open({}, NewLayer(), size_bytes, kPage);
  }
  void OpenFresh() { open_.Open({}, NewLayer(), 0, kPage); }
  void Write(uint64_t offset, const std::string& bytes) {
    const Extent extent{offset, bytes.size()};
    const std::string_view piece = bytes;
    ASSERT_TRUE(open_.Write(stage_, 1, {&extent, 1}, {&piece, 1}).ok());
  }
  absl::Status Drop(uint64_t head_bytes) {
    return open_.Drop(*tree_, stage_, StageEnd{1, 0}, head_bytes, "gen-1");
  }
  std::vector<Extent> Staged() {
    std::vector<Extent> found;
    for (uint64_t at = 0;;) {
      const auto next = open_.layer()->data.NextStaged(at);
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok() || !next->has_value()) return found;
      found.push_back(**next);
      at = (*next)->end();
    }
  }
  std::vector<Extent> Direct() { return open_.layer()->data.direct().ToVector(); }
  std::string Head() {
    std::string bytes(*generation_->head->Size(), '\0');
    EXPECT_EQ(*generation_->head->ReadAt(0, absl::MakeSpan(bytes)), bytes.size());
    return bytes;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  StageLog stage_;
  std::shared_ptr<Generation> generation_ = std::make_shared<Generation>();
  OpenWrites open_;
};

TEST_F(OpenWritesTest, AWriteBelowTheFloorIsStagedAndLeavesTheHead) {
  OpenOverCut(kPage);
  Write(10, "zzz");
  EXPECT_THAT(Staged(), ElementsAre(Extent{10, 3}));
  EXPECT_THAT(Direct(), IsEmpty());
  EXPECT_EQ(Head(), std::string(kPage, 'h'));
}

TEST_F(OpenWritesTest, AWriteOverTheFloorIsSplitThere) {
  OpenOverCut(kPage - 1);  // the floor is the page's end
  Write(kPage - 2, "zzzz");
  EXPECT_THAT(Staged(), ElementsAre(Extent{kPage - 2, 2}));
  EXPECT_THAT(Direct(), ElementsAre(Extent{kPage, 2}));
  EXPECT_EQ(open_.size_bytes(), kPage + 2);
  EXPECT_EQ(open_.layer()->sent_bytes, 4u);
  EXPECT_TRUE(generation_->dirty);
}

TEST_F(OpenWritesTest, AGenerationWithoutACutIsDirectAsAWhole) {
  OpenFresh();
  Write(kPage, "zz");
  EXPECT_THAT(Staged(), IsEmpty());
  EXPECT_THAT(Direct(), ElementsAre(Extent{0, kPage + 2}));
}

TEST_F(OpenWritesTest, TruncateNeverShortensTheHeadBelowTheFloor) {
  OpenOverCut(kPage);
  Write(kPage, std::string(100, 'z'));
  ASSERT_TRUE(open_.Truncate(stage_, 1, 5).ok());
  EXPECT_EQ(open_.size_bytes(), 5u);
  EXPECT_EQ(Head(), std::string(kPage, 'h'));
  EXPECT_GT(stage_.end().bytes, 0u) << "the cut needs its record";
}

TEST_F(OpenWritesTest, DropCutsDirectBytesOffAndEmptiesTheStage) {
  OpenOverCut(kPage);
  Write(0, "z");
  Write(kPage, "zz");
  ASSERT_TRUE(Drop(kPage).ok());
  EXPECT_FALSE(open_.is_open());
  EXPECT_EQ(Head(), std::string(kPage, 'h'));
  EXPECT_EQ(stage_.end().bytes, 0u);
}

TEST_F(OpenWritesTest, DropRemovesTheHeadOfAGenerationWithoutACut) {
  OpenFresh();
  Write(0, "z");
  ASSERT_TRUE(Drop(0).ok());
  EXPECT_FALSE(*tree_->Exists("gen-1"));
}

TEST_F(OpenWritesTest, EachCutHasTheFactsOfItsWriter) {
  WriterFacts facts;
  facts.origin.path = "/data/x.h5";
  facts.mode_bits = 0640;
  open_.Open(facts, NewLayer(), 0, kPage);
  for (CutNumber cut : {5, 6}) {
    CutRequest request;
    request.size_bytes = static_cast<uint64_t>(cut);
    ASSERT_TRUE(open_.TakeCut(stage_, cut, request).ok());
    EXPECT_EQ(open_.layer()->cut, cut);
    EXPECT_EQ(open_.layer()->size_bytes, static_cast<uint64_t>(cut));
    EXPECT_EQ(open_.layer()->origin.path, "/data/x.h5");
    EXPECT_EQ(open_.layer()->mode_bits, 0640u);
    generation_->has_cut = true;
    open_.Continue(NewLayer());
  }
  EXPECT_EQ(open_.layer()->cut, 0);
}

TEST_F(OpenWritesTest, OnlyAGenerationsFirstCutNeedsNoRecord) {
  OpenFresh();
  ASSERT_TRUE(open_.TakeCut(stage_, 5, CutRequest()).ok());
  EXPECT_EQ(stage_.end().bytes, 0u);
  generation_->has_cut = true;
  open_.Continue(NewLayer());
  ASSERT_TRUE(open_.TakeCut(stage_, 6, CutRequest()).ok());
  EXPECT_GT(stage_.end().bytes, 0u);
}

TEST_F(OpenWritesTest, ACopyIsNotedBeforeAndMarkedBehindIt) {
  OpenFresh();
  open_.BeginCopy(700);
  EXPECT_THAT(Direct(), ElementsAre(Extent{0, 700}));
  EXPECT_FALSE(generation_->dirty);
  open_.EndCopy(300);
  EXPECT_TRUE(generation_->dirty);
  EXPECT_EQ(open_.layer()->sent_bytes, 300u);
}

}  // namespace
}  // namespace h5mirror::store
