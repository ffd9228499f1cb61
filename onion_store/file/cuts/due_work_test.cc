// When cuts become durable, and which become versions. As a table, without a disk.
#include "onion_store/file/cuts/due_work.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// One layer: its cut is its place, from 1.
struct Layer {
  int64_t due = 0;
  int64_t generation = 1;
  bool durable = false;
};
struct Case {
  std::string name;
  std::vector<Layer> layers;
  int64_t now = 0;
  std::vector<CutNumber> batch;
  bool is_due = false;
};

class DueWorkTest : public testing::Test {
 protected:
  DueWorkTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20) {}

  void SetLayers(const std::vector<Layer>& layers) {
    layers_.clear();
    std::map<int64_t, std::shared_ptr<Generation>> generations;
    for (const Layer& each : layers) {
      auto& generation = generations[each.generation];
      if (generation == nullptr) generation = std::make_shared<Generation>();
      auto layer = std::make_shared<CutLayer>(budget_, *tree_, "d");
      layer->cut = static_cast<CutNumber>(layers_.size()) + 1;
      layer->due = At(each.due);
      layer->durable = each.durable;
      layer->generation = generation;
      layers_.push_back(std::move(layer));
    }
  }
  CutNumber durable_cut() const {
    CutNumber newest = 0;
    for (const auto& layer : layers_) newest = layer->durable ? layer->cut : newest;
    return newest;
  }
  std::vector<CutNumber> Batch(int64_t now) {
    std::vector<CutNumber> cuts;
    for (const auto& layer : work_.NextBatch(layers_, durable_cut(), At(now))) {
      cuts.push_back(layer->cut);
    }
    return cuts;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  DueWork::Layers layers_;
  DueWork work_;
};

TEST_F(DueWorkTest, WhatIsDueTakesAllThatComeBeforeIt) {
  const Case cases[] = {
      {"nothing", {}, 9, {}, false},
      {"not yet", {{5}}, 4, {}, false},
      {"due", {{5}}, 5, {1}, true},
      {"all before a sync", {{8}, {9}, {2}, {7}}, 3, {1, 2, 3}, true},
      {"behind a durable one", {{0, 1, true}, {2}}, 3, {2}, true},
      {"all are durable", {{0, 1, true}}, 9, {}, false},
      {"one generation at a time", {{2, 1}, {2, 2}}, 3, {1}, true},
      {"the next generation's is due", {{9, 1}, {9, 1}, {2, 2}}, 3, {1, 2}, true},
      {"no further than that", {{9, 1}, {9, 2}, {2, 2}}, 3, {}, true},
      {"it waits for the old head", {{0, 1, true}, {2, 2}}, 3, {2}, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    SetLayers(each.layers);
    EXPECT_EQ(Batch(each.now), each.batch);
    EXPECT_EQ(work_.IsDue(layers_, durable_cut(), At(each.now)), each.is_due);
  }
}

TEST_F(DueWorkTest, TheNextTimeIsThatOfTheFirstThatIsDue) {
  EXPECT_EQ(work_.Next(layers_, 0), absl::InfiniteFuture());
  SetLayers({{1, 1, true}, {8}, {5}});
  EXPECT_EQ(work_.Next(layers_, 1), At(5));
  work_.AddFold(At(3), {});
  EXPECT_EQ(work_.Next(layers_, 1), At(3));
  work_.Hurry(layers_);
  EXPECT_EQ(work_.Next(layers_, 1), absl::InfinitePast());
  EXPECT_EQ(layers_[0]->due, At(1)) << "that one is durable";
  EXPECT_EQ(layers_[2]->due, absl::InfinitePast());
}

TEST_F(DueWorkTest, NothingFollowsALostCutUntilItIsAVersion) {
  SetLayers({{2}, {2}});
  Provenance lost;
  lost.comment = "writer lost";
  work_.AddLostCut(1, lost);
  EXPECT_THAT(Batch(3), ElementsAre(1));
  layers_[0]->durable = true;
  EXPECT_THAT(Batch(3), IsEmpty());
  EXPECT_EQ(work_.Next(layers_, 1), absl::InfinitePast());
  const auto version = work_.TakeVersion(1, At(3));
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->cut, 1);
  EXPECT_EQ(version->provenance.comment, "writer lost");
  EXPECT_FALSE(version->is_fold);
  EXPECT_TRUE(work_.has_lost_cut()) << "until it is made";
  work_.LostCutIsVersion(1);
  EXPECT_FALSE(work_.has_lost_cut());
  EXPECT_THAT(Batch(3), ElementsAre(2));
}

TEST_F(DueWorkTest, AnotherLostCutIsNotTakenForTheOneThatWasMade) {
  work_.AddLostCut(4, {});
  work_.LostCutIsVersion(3);
  EXPECT_TRUE(work_.has_lost_cut());
}

TEST_F(DueWorkTest, AFoldIsOfTheNewestDurableCutAtItsTime) {
  work_.AddFold(At(3), {});
  work_.AddFold(At(5), {});  // A later close.
  EXPECT_EQ(work_.TakeVersion(7, At(4)), std::nullopt);
  const auto version = work_.TakeVersion(7, At(5));
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->cut, 7);
  EXPECT_TRUE(version->is_fold);
  EXPECT_FALSE(work_.has_fold());
}

TEST_F(DueWorkTest, ALostCutComesBeforeAFold) {
  work_.AddFold(At(3), {});
  work_.AddLostCut(7, {});
  EXPECT_FALSE(work_.TakeVersion(7, At(5))->is_fold);
  EXPECT_TRUE(work_.has_fold());
  work_.DropFold();
  EXPECT_FALSE(work_.has_fold());
}

}  // namespace
}  // namespace h5mirror::store
