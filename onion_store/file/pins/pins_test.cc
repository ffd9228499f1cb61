// Pinned cuts by themselves: their holders, the pages saved for them, and their cost.
#include "onion_store/file/pins/pins.h"

#include <memory>
#include <string>
#include <utility>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;

class PinsTest : public testing::Test {
 protected:
  PinsTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20), pages_(budget_, *tree_, "d") {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }
  std::shared_ptr<PinnedCut> Pin(CutNumber cut, uint64_t size_bytes = 10 * kPage,
                                 int64_t generation = 1) {
    auto of = std::make_shared<Generation>();
    of->number = generation;
    return pins_.Pin({cut, size_bytes, generation, {}, 0, 0}, of, std::move(layers_), kPage);
  }
  // Saves a page as the apply of `next` does.
  void Save(CutNumber next, uint64_t page, char byte, int64_t generation = 1) {
    const PagesToPin to = pins_.PagesBefore(next, generation, kPage);
    ASSERT_NE(to.pages, nullptr);
    ASSERT_TRUE(to.pages->Save(page, std::string(kPage, byte)).ok());
  }
  // The first byte of `page` that a reader of `pin` finds; '-': the page is in the head, unchanged.
  char Find(const PinnedCut& pin, uint64_t page) {
    std::string bytes(kPage, '-');
    const auto content = pin.content();
    for (const auto& pages : pages_.Since(content->first_pages, content->generation->number)) {
      const auto found = pages->Read(page, absl::MakeSpan(bytes));
      if (found.ok() && *found == PinnedPages::Found::kYes) return bytes[0];
    }
    return '-';
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  PinnedPagesList pages_;
  Pins pins_{pages_};
  std::vector<std::shared_ptr<CutLayer>> layers_;  // of the next cut that is pinned
};

TEST_F(PinsTest, TheLastHolderReleasesTheCut) {
  EXPECT_EQ(pins_.Hold(3), nullptr);
  const auto pin = Pin(3);
  EXPECT_EQ(pins_.Hold(3), pin);
  EXPECT_FALSE(pins_.Release(pin));
  EXPECT_TRUE(pins_.Release(pin));
  EXPECT_NE(pins_.Drop(3), nullptr);
  EXPECT_FALSE(pins_.Has(3));
  EXPECT_EQ(pin->content(), nullptr);
}

TEST_F(PinsTest, AHolderOfAnExpiredPinDoesNotReleaseTheOneThatFollowedIt) {
  const auto expired = Pin(3);
  pins_.Drop(3);
  EXPECT_FALSE(pins_.Has(expired));
  const auto anew = Pin(3);
  EXPECT_FALSE(pins_.Release(expired));
  EXPECT_TRUE(pins_.Has(anew));
}

TEST_F(PinsTest, EachCutFindsThePagesAsItLeftThem) {
  const auto third = Pin(3);
  Save(4, 0, 'a');
  const auto seventh = Pin(7);
  Save(8, 0, 'b');
  Save(8, 1, 'c');
  EXPECT_EQ(Find(*third, 0), 'a');
  EXPECT_EQ(Find(*seventh, 0), 'b');
  EXPECT_EQ(Find(*third, 1), 'c') << "unchanged from cut 3 to 7";
  EXPECT_EQ(Find(*third, 2), '-');
}

TEST_F(PinsTest, PinsOfOneHeadShareTheirPages) {
  const auto third = Pin(3);
  const auto fourth = Pin(4);  // Nothing was applied in between.
  EXPECT_EQ(third->content()->first_pages, fourth->content()->first_pages);
  Save(5, 0, 'a');
  EXPECT_EQ(Find(*third, 0), 'a');
  EXPECT_EQ(Find(*fourth, 0), 'a');
}

TEST_F(PinsTest, PagesAreSavedForOlderCutsOfTheGenerationOnly) {
  EXPECT_EQ(pins_.PagesBefore(9, 1, kPage).pages, nullptr);
  Pin(3, 10 * kPage + 1);
  Pin(5, 4 * kPage, 2);
  EXPECT_EQ(pins_.PagesBefore(3, 1, kPage).pages, nullptr) << "the cut itself";
  EXPECT_EQ(pins_.PagesBefore(4, 1, kPage).limit_pages, 11u);
  EXPECT_EQ(pins_.PagesBefore(6, 2, kPage).limit_pages, 4u);
  EXPECT_EQ(pins_.PagesBefore(6, 1, kPage).pages->generation(), 1);
  EXPECT_EQ(pins_.PagesBefore(6, 3, kPage).pages, nullptr);
}

TEST_F(PinsTest, PagesGoWithTheOldestCutThatNeedsThem) {
  Pin(3);
  Save(4, 0, 'a');
  const auto seventh = Pin(7);
  Save(8, 0, 'b');
  EXPECT_EQ(pins_.DiskBytes({}), 2u * kPage);
  EXPECT_EQ(pins_.oldest(), 3);
  pins_.Drop(3);
  EXPECT_EQ(pins_.DiskBytes({}), 1u * kPage);
  EXPECT_EQ(Find(*seventh, 0), 'b');
  pins_.Drop(7);
  EXPECT_EQ(pins_.DiskBytes({}), 0u);
  EXPECT_EQ(pins_.oldest(), std::nullopt);
}

TEST_F(PinsTest, ASegmentCountsOnceTheStageNeedsItNoMore) {
  auto segment = std::make_shared<StageSegment>();
  segment->file = *tree_->Open("d/stage", OpenKind::kCreateFresh, 0600);
  ASSERT_TRUE(segment->file->Truncate(1000).ok());
  auto layer = std::make_shared<CutLayer>(budget_, *tree_, "d");
  layer->segments = {segment};
  for (const CutNumber cut : {3, 4}) {
    layers_ = {layer};
    Pin(cut);
  }
  EXPECT_EQ(segment->reader_count, 2);
  EXPECT_EQ(pins_.DiskBytes({segment}), 0u);
  EXPECT_EQ(pins_.DiskBytes({}), 1000u) << "two cuts hold it, once";
  pins_.Drop(3);
  pins_.Drop(4);
  EXPECT_EQ(segment->reader_count, 0);
}

}  // namespace
}  // namespace h5mirror::store
