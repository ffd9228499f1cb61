#include "onion_store/stage/staged_layer.h"

#include <map>
#include <random>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kSize = 20'000;

class StagedLayerTest : public testing::Test {
 protected:
  explicit StagedLayerTest(uint64_t memory_max_bytes = 1 << 20)
      : tree_(*env_.OpenTree("/")), budget_(memory_max_bytes) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }
  std::unique_ptr<StagedLayer> Layer() {
    return std::make_unique<StagedLayer>(budget_, *tree_, "d");
  }
  // The place of the byte at `offset`: its location; 'z' zeros, 'h' the head, 'b' the layer below.
  static std::string What(const StagedLayer& layer, uint64_t offset) {
    std::vector<Extent> wanted{{offset, 1}};
    std::vector<Piece> found;
    absl::Status status = layer.Resolve(&wanted, &found);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(wanted.size() + found.size(), 1u);
    if (found.empty()) return "b";
    if (found[0].source == Piece::Source::kZeros) return "z";
    if (found[0].source == Piece::Source::kHead) return "h";
    return std::to_string(found[0].location);
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
};

TEST_F(StagedLayerTest, TheLaterWriteWins) {
  auto layer = Layer();
  ASSERT_TRUE(layer->Put({100, 50}, 1000).ok());
  ASSERT_TRUE(layer->Put({120, 10}, 5000).ok());
  EXPECT_EQ(What(*layer, 119), "1019");
  EXPECT_EQ(What(*layer, 120), "5000");
  EXPECT_EQ(What(*layer, 130), "1030") << "behind the hole its place goes on";
  EXPECT_EQ(What(*layer, 150), "b");
  EXPECT_EQ(layer->staged_bytes(), 50u);
}

TEST_F(StagedLayerTest, WhatGoesOnInFileAndStageIsOneEntry) {
  auto layer = Layer();
  ASSERT_TRUE(layer->Put({100, 50}, 1000).ok());
  ASSERT_TRUE(layer->Put({150, 50}, 1050).ok());
  std::vector<Extent> wanted{{0, 1000}};
  std::vector<Piece> found;
  ASSERT_TRUE(layer->Resolve(&wanted, &found).ok());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].extent, (Extent{100, 100}));
  EXPECT_THAT(wanted, testing::ElementsAre(Extent{0, 100}, Extent{200, 800}));
}

TEST_F(StagedLayerTest, WhatIsCutOffReadsAsZerosAndNotAsTheLayerBelow) {
  auto layer = Layer();
  ASSERT_TRUE(layer->Put({100, 50}, 1000).ok());
  ASSERT_TRUE(layer->Truncate(120).ok());
  ASSERT_TRUE(layer->Truncate(500).ok());  // The smallest size counts.
  ASSERT_TRUE(layer->Put({300, 10}, 7000).ok());
  EXPECT_EQ(layer->truncated_to(), 120u);
  EXPECT_EQ(What(*layer, 119), "1019");
  EXPECT_EQ(What(*layer, 120), "z");
  EXPECT_EQ(What(*layer, 305), "7005");
  EXPECT_EQ(What(*layer, 99), "b");
}

TEST_F(StagedLayerTest, DirectBytesAreTheHeadsAndStagedOnesLieOverThem) {
  auto layer = Layer();
  layer->AddDirect({1000, 100});
  ASSERT_TRUE(layer->Put({1050, 10}, 1).ok());
  EXPECT_EQ(What(*layer, 1000), "h");
  EXPECT_EQ(What(*layer, 1055), "6");
  ASSERT_TRUE(layer->Truncate(1020).ok());
  EXPECT_EQ(What(*layer, 1030), "z");
  EXPECT_EQ(layer->direct().end(), 1020u);
  EXPECT_EQ(layer->direct_end_max(), 1100u) << "the head still has them";
}

TEST_F(StagedLayerTest, TheNextStagedRangeIsClipped) {
  auto layer = Layer();
  ASSERT_TRUE(layer->Put({100, 50}, 1000).ok());
  ASSERT_TRUE(layer->Put({300, 50}, 2000).ok());
  EXPECT_EQ(**layer->NextStaged(0), (Extent{100, 50}));
  EXPECT_EQ(**layer->NextStaged(120), (Extent{120, 30}));
  EXPECT_EQ(**layer->NextStaged(150), (Extent{300, 50}));
  EXPECT_FALSE((*layer->NextStaged(350)).has_value());
}

TEST_F(StagedLayerTest, ANewerLayerIsPutOverAnOlderOne) {
  auto layer = Layer(), newer = Layer();
  ASSERT_TRUE(layer->Put({0, 100}, 1000).ok());
  ASSERT_TRUE(newer->Truncate(60).ok());
  ASSERT_TRUE(newer->Put({10, 10}, 5000).ok());
  ASSERT_TRUE(layer->Absorb(*newer).ok());
  EXPECT_EQ(What(*layer, 9), "1009");
  EXPECT_EQ(What(*layer, 10), "5000");
  EXPECT_EQ(What(*layer, 60), "z");
}

// With next to no memory the entries go to run files, over and over.
class SpilledLayerTest : public StagedLayerTest {
 protected:
  SpilledLayerTest() : StagedLayerTest(1) {}

  // Writes at random into `layer` and `model`. The model has the place of each byte; 0: the layer
  // below.
  void WriteRandomly(StagedLayer& layer, int count, std::map<uint64_t, uint64_t>& model) {
    for (int i = 0; i < count; ++i) {
      Extent extent{random_() % kSize, 1 + random_() % 3};
      const StageLocation at = next_location_;
      next_location_ += 10;
      ASSERT_TRUE(layer.Put(extent, at).ok());
      for (uint64_t n = 0; n < extent.length; ++n) model[extent.offset + n] = at + n;
    }
  }
  static void Expect(const StagedLayer& layer, const std::map<uint64_t, uint64_t>& model) {
    std::vector<Extent> wanted{{0, 2 * kSize}};
    std::vector<Piece> found;
    ASSERT_TRUE(layer.Resolve(&wanted, &found).ok());
    std::map<uint64_t, uint64_t> places;
    for (const Piece& piece : found) {
      if (piece.source != Piece::Source::kStage) continue;
      for (uint64_t n = 0; n < piece.extent.length; ++n) {
        EXPECT_TRUE(places.emplace(piece.extent.offset + n, piece.location + n).second);
      }
    }
    EXPECT_TRUE(places == model);
  }

  std::mt19937_64 random_{11};
  StageLocation next_location_ = 1;
};

TEST_F(SpilledLayerTest, HoldsWhatOneInMemoryHolds) {
  auto layer = Layer();
  std::map<uint64_t, uint64_t> model;
  WriteRandomly(*layer, 40'000, model);  // More runs than are kept: they are merged.
  Expect(*layer, model);
  EXPECT_LT(budget_.used_bytes(), 200'000u) << "40,000 entries would be 1.2 MB";
}

TEST_F(SpilledLayerTest, IsCutOffToo) {
  auto layer = Layer();
  std::map<uint64_t, uint64_t> model;
  WriteRandomly(*layer, 5000, model);
  ASSERT_TRUE(layer->Truncate(7000).ok());
  model.erase(model.lower_bound(7000), model.end());
  Expect(*layer, model);
  WriteRandomly(*layer, 5000, model);
  Expect(*layer, model);
}

TEST_F(SpilledLayerTest, TakesInANewerOneThatSpilledToo) {
  auto layer = Layer(), newer = Layer();
  std::map<uint64_t, uint64_t> model;
  WriteRandomly(*layer, 5000, model);
  WriteRandomly(*newer, 5000, model);
  ASSERT_TRUE(layer->Absorb(*newer).ok());
  Expect(*layer, model);
}

TEST_F(SpilledLayerTest, GivesItsMemoryBack) {
  auto layer = Layer();
  std::map<uint64_t, uint64_t> model;
  WriteRandomly(*layer, 5000, model);
  EXPECT_GT(budget_.used_bytes(), 0u);
  layer.reset();
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

}  // namespace
}  // namespace h5mirror::store
