#include "client_vfd/plugin/parallel/cut_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace h5mirror::vfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Bytes = NotedPages::Run;

constexpr uint64_t kPage = 4096;

RankNotes Raw(std::vector<Bytes> runs) {
  RankNotes notes;
  notes.raw = std::move(runs);
  return notes;
}

TEST(CutPartsTest, TheFirstRankOfEachHostSends) {
  EXPECT_THAT(SendersOf({"a", "b", "a", "c", "b"}), ElementsAre(0, 1, 0, 3, 1));
  EXPECT_THAT(SendersOf({"a", "a"}), ElementsAre(0, 0));
}

TEST(CutPartsTest, Rank0SendsForANodeWhoseSenderCannotReadTheFile) {
  std::vector<int> senders = SendersOf({"a", "b", "c", "b"});
  LeaveToRank0({false, false, true, true}, &senders);
  EXPECT_THAT(senders, ElementsAre(0, 0, 2, 0));
  const SplitCut split =
      SplitByNode({{}, Raw({{0, kPage}}), Raw({{kPage, 2 * kPage}}), Raw({{2 * kPage, 3 * kPage}})},
                  senders, 3 * kPage, kPage);
  EXPECT_THAT(split.own.raw, ElementsAre(Bytes{0, kPage}, Bytes{2 * kPage, 3 * kPage}));
  ASSERT_EQ(split.parts.size(), 1u);
  EXPECT_EQ(split.parts[0].rank, 2);
}

TEST(CutPartsTest, EachNodeSendsWhatItsRanksWrote) {
  const SplitCut split = SplitByNode(
      {Raw({{0, 4 * kPage}}), Raw({{4 * kPage, 8 * kPage}}), Raw({{8 * kPage, 12 * kPage}})},
      {0, 1, 1}, 12 * kPage, kPage);
  EXPECT_THAT(split.own.raw, ElementsAre(Bytes{0, 4 * kPage}));
  ASSERT_EQ(split.parts.size(), 1u);
  EXPECT_EQ(split.parts[0].rank, 1);
  EXPECT_THAT(split.parts[0].runs, ElementsAre(Bytes{4 * kPage, 12 * kPage}));
}

TEST(CutPartsTest, NoPageIsSentTwice) {
  RankNotes first = Raw({{0, 2 * kPage}});
  first.metadata = {{6 * kPage, 7 * kPage}};
  const SplitCut split = SplitByNode({first, Raw({{kPage, 8 * kPage}}), Raw({{kPage, 9 * kPage}})},
                                     {0, 1, 2}, 100 * kPage, 1);
  ASSERT_EQ(split.parts.size(), 2u);
  EXPECT_THAT(split.parts[0].runs,
              ElementsAre(Bytes{2 * kPage, 6 * kPage}, Bytes{7 * kPage, 8 * kPage}));
  EXPECT_THAT(split.parts[1].runs, ElementsAre(Bytes{8 * kPage, 9 * kPage}));
}

TEST(CutPartsTest, MetadataOfAnyRankIsTheFirstOnes) {
  RankNotes second;
  second.metadata = {{0, kPage}};
  const SplitCut split = SplitByNode({{}, second}, {0, 1}, kPage, 1);
  EXPECT_THAT(split.own.metadata, ElementsAre(Bytes{0, kPage}));
  EXPECT_THAT(split.parts, IsEmpty());
}

TEST(CutPartsTest, ASmallPartIsTheFirstRanks) {
  const SplitCut split =
      SplitByNode({{}, Raw({{0, kPage}, {3 * kPage, 4 * kPage}})}, {0, 1}, 9 * kPage, 3 * kPage);
  EXPECT_THAT(split.parts, IsEmpty());
  EXPECT_THAT(split.own.raw, ElementsAre(Bytes{0, kPage}, Bytes{3 * kPage, 4 * kPage}));
}

TEST(CutPartsTest, PartsEndWithTheFile) {
  const SplitCut split =
      SplitByNode({{}, Raw({{0, 4 * kPage}, {8 * kPage, 9 * kPage}})}, {0, 1}, kPage + 7, 1);
  ASSERT_EQ(split.parts.size(), 1u);
  EXPECT_THAT(split.parts[0].runs, ElementsAre(Bytes{0, kPage + 7}));
}

TEST(CutPartsTest, APlanArrivesAsItWas) {
  PartPlan plan;
  plan.ticket.session_id[3] = 9;
  plan.ticket.join_secret[15] = 7;
  plan.ticket.token = 12;
  plan.ticket.after_cuts = 3;
  plan.name = "dir/run.h5";
  plan.parts = {{2, {{0, 5}, {8, 9}}}, {4, {{100, 200}}}};
  const std::optional<PartPlan> read = PlanFromBytes(ToBytes(plan));
  ASSERT_TRUE(read);
  EXPECT_EQ(ToBytes(*read), ToBytes(plan));
  EXPECT_EQ(read->name, "dir/run.h5");
  EXPECT_EQ(read->ticket.after_cuts, 3u);
  EXPECT_EQ(read->parts[1].rank, 4);
  EXPECT_THAT(read->parts[0].runs, ElementsAre(Bytes{0, 5}, Bytes{8, 9}));
}

TEST(CutPartsTest, BytesThatAreNoPlanAreRefused) {
  PartPlan plan;
  plan.name = "x";
  plan.parts = {{1, {{0, 5}}}};
  const std::string bytes = ToBytes(plan);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(PlanFromBytes(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(PlanFromBytes(bytes + "x"));
  plan.parts = {{1, {{5, 5}}}};
  EXPECT_FALSE(PlanFromBytes(ToBytes(plan))) << "an empty run";
}

}  // namespace
}  // namespace h5mirror::vfd
