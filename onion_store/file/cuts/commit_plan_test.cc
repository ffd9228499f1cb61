// Which cuts of a batch become versions, and what the index is told. As a table, without a disk.
#include "onion_store/file/cuts/commit_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;

constexpr std::array<uint8_t, 16> kRequest = {7};

// A layer of a batch, and whether it changes a byte of the one below.
struct Cut {
  BarrierKind kind = BarrierKind::kCommit;
  bool changes = true;
  bool always_version = false;
  bool begins_generation = false;
  bool is_writers_last = false;
};
struct Case {
  std::string name;
  std::vector<Cut> cuts;
  bool row_changed = false;  // since the newest version, which is 5
  bool is_stopped = false;
  std::string expected;  // of each cut: v version made, = unchanged, s stopped, - no commit
  bool changed_after = false;
};

class CommitPlanTest : public testing::Test {
 protected:
  CommitPlanTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20) {
    generation_->number = 3;
    basis_.row.generation = 3;
    basis_.row.durable_cut = 10;
    basis_.row.durable_size_bytes = 1000;
    basis_.newest.version = 5;
    basis_.next_cut = 20;
  }
  // The cut 11 and those that follow it, of 1001, 1002, ... bytes.
  void Add(const Cut& cut) {
    auto layer = std::make_shared<CutLayer>(budget_, *tree_, "d");
    const auto number = static_cast<int64_t>(layers_.size()) + 1;
    layer->generation = generation_;
    layer->cut = 10 + number;
    layer->size_bytes = layer->cut_bytes = 1000 + static_cast<uint64_t>(number);
    layer->sent_bytes = 7;
    layer->kind = cut.kind;
    layer->time = absl::FromUnixSeconds(number);
    layer->always_version = cut.always_version;
    layer->begins_generation = cut.begins_generation;
    layer->is_writers_last = cut.is_writers_last;
    layer->first_segment = 4;
    layer->stage_end = {6, 100};
    layers_.push_back(std::move(layer));
    changes_.push_back(cut.changes);
  }
  CommitPlan Plan() {
    const auto changes = [this](size_t i, uint64_t size_below) -> absl::StatusOr<bool> {
      EXPECT_EQ(size_below, 1000 + i);
      asked_.push_back(i);
      return changes_[i];
    };
    const auto is_stopped = [this] { return is_stopped_; };
    const auto is_known = [this](const std::array<uint8_t, 16>&) { return is_known_; };
    auto plan = PlanCommit(basis_, layers_, {changes, is_stopped, is_known});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : CommitPlan();
  }
  static std::string Drawn(const CommitPlan& plan) {
    std::string drawn;
    for (const PlannedCut& cut : plan.cuts) {
      drawn += cut.made != 0 ? 'v' : cut.is_unchanged ? '=' : cut.is_stopped ? 's' : '-';
    }
    return drawn;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  const std::shared_ptr<Generation> generation_ = std::make_shared<Generation>();
  CommitBasis basis_;
  std::vector<std::shared_ptr<CutLayer>> layers_;
  std::vector<bool> changes_;
  bool is_stopped_ = false, is_known_ = false;
  std::vector<size_t> asked_;  // the layers that were asked about
};

constexpr Cut kTick{.kind = BarrierKind::kTick};
constexpr Cut kSameTick{.kind = BarrierKind::kTick, .changes = false};
constexpr Cut kCommit{};
constexpr Cut kSameCommit{.changes = false};
constexpr Cut kRollback{.changes = false, .always_version = true};
constexpr Cut kNewGeneration{.changes = false, .begins_generation = true};
constexpr Cut kWritersLast{.is_writers_last = true};

TEST_F(CommitPlanTest, ACommitBecomesAVersionWhereSomethingChanged) {
  const Case cases[] = {
      {"a tick", {kTick}, false, false, "-", true},
      {"a tick without a change", {kSameTick}, false, false, "-", false},
      {"a sync", {{.kind = BarrierKind::kSync}}, false, false, "-", true},
      {"a commit", {kCommit}, false, false, "v", false},
      {"a commit without a change", {kSameCommit}, false, false, "=", false},
      {"of what a tick before changed", {kSameCommit}, true, false, "v", false},
      {"of what a tick of the batch changed", {kTick, kSameCommit}, false, false, "-v", false},
      {"two commits", {kCommit, kCommit}, false, false, "vv", false},
      {"the second without a change", {kCommit, kSameCommit}, false, false, "v=", false},
      {"and a tick behind it", {kCommit, kTick}, false, false, "v-", true},
      {"a rollback to the same bytes", {kRollback}, false, false, "v", false},
      {"a generation", {kNewGeneration}, false, false, "v", false},
      {"stopped", {kCommit}, false, true, "s", true},
      {"stopped, and nothing changed", {kSameCommit}, false, true, "=", false},
      {"stopped, twice", {kCommit, kSameCommit}, false, true, "ss", true},
      {"stopped, a rollback", {kRollback}, false, true, "v", false},
      {"stopped, a writer's last cut", {kWritersLast}, false, true, "v", false},
      {"stopped, a generation", {kNewGeneration}, false, true, "s", true},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    layers_.clear();
    changes_.clear();
    for (const Cut& cut : each.cuts) Add(cut);
    basis_.row.changed = each.row_changed;
    is_stopped_ = each.is_stopped;
    const CommitPlan plan = Plan();
    EXPECT_EQ(Drawn(plan), each.expected);
    EXPECT_EQ(plan.row.changed, each.changed_after);
    EXPECT_EQ(plan.newest.version, 5 + static_cast<int64_t>(plan.versions.size()));
  }
}

TEST_F(CommitPlanTest, ACutOfAGroupIsAVersionAlsoWithoutAChangeButOnlyOnce) {
  for (const uint64_t number : {1, 2, 2}) {
    Add(kSameCommit);
    layers_.back()->group = GroupCut{.id = {4}, .number = number, .members = {"m.h5"}};
  }
  Add(kSameCommit);
  const CommitPlan plan = Plan();
  EXPECT_EQ(Drawn(plan), "vv==");
  EXPECT_EQ(plan.versions[1].info.group, layers_[1]->group);
  EXPECT_EQ(plan.newest.group, layers_[1]->group);
}

TEST_F(CommitPlanTest, ACutOfAGroupIsNoVersionWhileTheHistoryIsStopped) {
  Add(kSameCommit);
  layers_.back()->group = GroupCut{.id = {4}, .number = 1, .members = {"m.h5"}};
  is_stopped_ = true;
  EXPECT_EQ(Drawn(Plan()), "s");
}

TEST_F(CommitPlanTest, BytesAreComparedOnlyWhereThatDecides) {
  for (const Cut& cut : {kSameTick, kTick, kCommit, kCommit, kRollback}) Add(cut);
  Plan();
  EXPECT_THAT(asked_, ElementsAre(0, 1, 3)) << "2 has changed with 1, and 4 is a rollback";
}

TEST_F(CommitPlanTest, TheRowIsThatOfTheNewestCut) {
  basis_.row.sent_bytes = 1;
  basis_.row.applied_size_bytes = 1000;
  for (const Cut& cut : {kTick, kTick}) Add(cut);
  const CommitPlan plan = Plan();
  EXPECT_EQ(plan.row.durable_cut, 12);
  EXPECT_EQ(plan.row.durable_size_bytes, 1002u);
  EXPECT_EQ(plan.row.sent_bytes, 1u + 2 * 7u);
  EXPECT_EQ(plan.row.applied_size_bytes, 1000u);
  EXPECT_EQ(plan.row.cut_reserved, 20 + 65536);
  EXPECT_FALSE(plan.begins);
}

TEST_F(CommitPlanTest, AVersionHoldsWhatWasSentSinceTheOneBefore) {
  basis_.row.sent_bytes = 1;
  basis_.row.server_time_ns = absl::ToUnixNanos(absl::FromUnixSeconds(2));
  for (const Cut& cut : {kTick, kCommit, kCommit}) Add(cut);
  const CommitPlan plan = Plan();
  ASSERT_EQ(plan.versions.size(), 2u);
  const VersionInfo& first = plan.versions[0].info;
  EXPECT_EQ(first.version, 6);
  EXPECT_EQ(first.cut, 12);
  EXPECT_EQ(first.size_bytes, 1002u);
  EXPECT_EQ(first.generation, 3);
  EXPECT_EQ(first.changed_bytes, 15u);
  EXPECT_EQ(plan.versions[1].info.changed_bytes, 7u);
  EXPECT_EQ(absl::ToUnixNanos(first.server_time), basis_.row.server_time_ns + 1) << "it rises";
  EXPECT_EQ(plan.versions[1].info.server_time, absl::FromUnixSeconds(3));
  EXPECT_EQ(plan.row.sent_bytes, 0u);
}

TEST_F(CommitPlanTest, AGenerationBeginsWithNothingInTheHead) {
  basis_.row.applied_size_bytes = 1000;
  generation_->number = 4;
  Add(kNewGeneration);
  layers_[0]->data.AddDirect({0, 2000});
  const CommitPlan plan = Plan();
  ASSERT_TRUE(plan.begins.has_value());
  EXPECT_EQ(plan.begins->generation, 4);
  EXPECT_EQ(plan.begins->first_cut, 11);
  EXPECT_EQ(plan.begins->direct_end_bytes, 1001u) << "no further than the cut";
  EXPECT_EQ(plan.row.generation, 4);
  EXPECT_EQ(plan.row.applied_size_bytes, 0u);
}

TEST_F(CommitPlanTest, TheStageStaysFromTheFirstSegmentThatTheHeadLacks) {
  Add(kTick);
  EXPECT_EQ(Plan().row.stage_first, 4u);
  EXPECT_EQ(Plan().row.stage_last, 6u);
  EXPECT_EQ(Plan().row.stage_end_bytes, 100u);
  basis_.unapplied_segment = 2;
  EXPECT_EQ(Plan().row.stage_first, 2u);
  basis_.unapplied_segment = 5;
  EXPECT_EQ(Plan().row.stage_first, 4u);
}

TEST_F(CommitPlanTest, ARequestThatIsRepeatedIsOfTheFirstVersion) {
  Add(kRollback);
  layers_[0]->request_id = kRequest;
  EXPECT_EQ(Plan().versions[0].request_id, kRequest);
  is_known_ = true;
  EXPECT_EQ(Plan().versions[0].request_id, std::nullopt);
}

TEST_F(CommitPlanTest, OnlyWhoAskedForAVersionIsToldOfIt) {
  const CutWaiter tick{11, {}, BarrierKind::kTick, nullptr};
  const CutWaiter commit{12, {}, BarrierKind::kCommit, nullptr};
  const PlannedCut unchanged{.newest = 5, .is_unchanged = true};
  EXPECT_EQ(AnswerTo(tick, unchanged).version, 0);
  EXPECT_FALSE(AnswerTo(tick, unchanged).unchanged);
  EXPECT_EQ(AnswerTo(commit, unchanged).cut, 12);
  EXPECT_EQ(AnswerTo(commit, unchanged).version, 5);
  EXPECT_TRUE(AnswerTo(commit, unchanged).unchanged);
  EXPECT_TRUE(AnswerTo(commit, {.newest = 5, .is_stopped = true}).stopped);
}

}  // namespace
}  // namespace h5mirror::store
