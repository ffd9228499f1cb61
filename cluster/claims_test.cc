#include "cluster/claims.h"

#include <map>

#include "base/strings.h"
#include "cluster/testing/memory_registry.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

ClusterView ViewOf(const std::map<std::string, ServerRecord>& servers) {
  ClusterView view;
  view.servers = servers;
  return view;
}

ServerRecord Server(ServerState state, uint64_t epoch = 3) {
  return {epoch, state, "", "life", {}};
}

TEST(ClaimsTest, AFreeCellCanBeClaimed) { EXPECT_TRUE(IsClaimable(ViewOf({}), CellRecord())); }

TEST(ClaimsTest, ACellOfAServerThatIsOverCanBeClaimedInAnyState) {
  for (const CellState state : {CellState::kOpening, CellState::kServed, CellState::kDraining}) {
    const CellRecord cell = {state, "a", 3, 5, 9, false};
    for (const ServerState alive : {ServerState::kUp, ServerState::kDraining, ServerState::kDead}) {
      EXPECT_FALSE(IsClaimable(ViewOf({{"a", Server(alive)}}), cell));
    }
    for (const ServerState over : {ServerState::kGone, ServerState::kFenced}) {
      EXPECT_TRUE(IsClaimable(ViewOf({{"a", Server(over)}}), cell));
    }
  }
}

TEST(ClaimsTest, ACellOfAnEarlierLifeCanBeClaimed) {
  const CellRecord cell = {CellState::kServed, "a", 3, 5, 9, false};
  EXPECT_TRUE(IsClaimable(ViewOf({{"a", Server(ServerState::kUp, 4)}}), cell));
  EXPECT_FALSE(IsClaimable(ViewOf({{"a", Server(ServerState::kFenced, 2)}}), cell));
}

TEST(ClaimsTest, ACellOfAServerWithoutARecordIsLeftAlone) {
  EXPECT_FALSE(IsClaimable(ViewOf({}), {CellState::kServed, "a", 3, 5, 9, false}));
}

TEST(ClaimsTest, AClaimHasAnEpochOfItsOwn) {
  const CellRecord before = {CellState::kServed, "a", 3, 5, 9, true};
  EXPECT_EQ(Claimed(before, "b", 8), (CellRecord{CellState::kOpening, "b", 8, 6, 10, false}));
}

TEST(ClaimsTest, OnlyACellThatWasGivenAwayInOrderIsClean) {
  EXPECT_TRUE(Claimed({CellState::kFree, "a", 3, 5, 9, true}, "b", 8).is_clean);
  EXPECT_FALSE(Claimed({CellState::kFree, "a", 3, 5, 9, false}, "b", 8).is_clean);
  EXPECT_FALSE(Claimed({CellState::kOpening, "a", 3, 5, 9, true}, "b", 8).is_clean);
}

TEST(ClaimsTest, EachServerHasAPlaceAndOnlyOnesThatAreUpCount) {
  const ClusterView view = ViewOf({{"a", Server(ServerState::kUp)},
                                   {"b", Server(ServerState::kUp)},
                                   {"c", Server(ServerState::kUp)},
                                   {"d", Server(ServerState::kDraining)},
                                   {"e", Server(ServerState::kDead)}});
  for (const char* cell : {"", "x", "x/y"}) {
    size_t sum = 0;
    for (const char* id : {"a", "b", "c"}) sum += PlaceOf(cell, id, view);
    EXPECT_EQ(sum, 0u + 1u + 2u) << cell;
  }
}

// A server that goes moves its own cells only, and each server gets its share.
TEST(ClaimsTest, CellsAreSharedOut) {
  std::map<std::string, ServerRecord> servers;
  for (const char* id : {"a", "b", "c", "d"}) servers[id] = Server(ServerState::kUp);
  const ClusterView all = ViewOf(servers);
  servers.erase("d");
  const ClusterView fewer = ViewOf(servers);
  std::map<std::string, int> shares;
  for (int i = 0; i < 1000; ++i) {
    const std::string cell = StrCat("lab-", i);
    for (const char* id : {"a", "b", "c", "d"}) {
      if (PlaceOf(cell, id, all) != 0) continue;
      ++shares[id];
      if (id[0] == 'd') continue;
      EXPECT_EQ(PlaceOf(cell, id, fewer), 0u) << cell;
    }
  }
  for (const auto& [id, share] : shares) {
    EXPECT_GT(share, 180) << id;
    EXPECT_LT(share, 320) << id;
  }
}

// Servers of several releases must agree, or they wait for each other.
TEST(ClaimsTest, WeightsDependOnBothNames) {
  EXPECT_EQ(WeightOf("x", "a"), WeightOf("x", "a"));
  EXPECT_NE(WeightOf("x", "a"), WeightOf("x", "b"));
  EXPECT_NE(WeightOf("x", "a"), WeightOf("y", "a"));
  EXPECT_NE(WeightOf("ab", "c"), WeightOf("a", "bc"));
}

TEST(ClaimsTest, ACellIsMadeOnce) {
  MemoryRegistry registry;
  EXPECT_TRUE(CreateCell(registry, "x/y").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(CreateCell(registry, "x/y")));
  EXPECT_TRUE(absl::IsInvalidArgument(CreateCell(registry, "../y")));
  const auto view = DecodeView(*registry.ReadAll());
  ASSERT_NE(view->FindCell("x/y"), nullptr);
  EXPECT_EQ(*view->FindCell("x/y"), (CellRecord{CellState::kFree, "", 0, 0, 1, true}));
}

TEST(ClaimsTest, CellsDoNotLieInEachOther) {
  EXPECT_TRUE(Overlap("x", "x/y"));
  EXPECT_TRUE(Overlap("x/y", "x"));
  EXPECT_TRUE(Overlap("", "x"));
  EXPECT_FALSE(Overlap("x", "x-y"));
  EXPECT_FALSE(Overlap("x/y", "x/z"));
  MemoryRegistry registry;
  ASSERT_TRUE(CreateCell(registry, "x/y").ok());
  for (const char* cell : {"", "x", "x/y/z"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(CreateCell(registry, cell))) << cell;
  }
  EXPECT_TRUE(CreateCell(registry, "x/z").ok());
  const auto view = DecodeView(*registry.ReadAll());
  EXPECT_TRUE(CheckApart(*view, "x/y").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckApart(*view, "x")));
}

}  // namespace
}  // namespace h5mirror::cluster
