// Scenarios of forks and of promotions.
#include "base/strings.h"
#include "tests/crash/scenario_steps.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {
namespace {

void ChangeSome(Player& player, const std::string& file, uint64_t pages) {
  player.Begin(file);
  Overwrite(player, file, pages, 3);
  player.Commit(file);
  player.End(file);
}

// Of the newest version, of older ones, of an old generation, and of a fork.
void Forks(Player& player) {
  OneVersion(player, "x.h5", 7.5);
  ChangeSome(player, "x.h5", 7);
  player.Fork("x.h5", 1, "d/fork.h5");
  player.Fork("x.h5", 2, "fork-2.h5");
  OneVersion(player, "d/fork.h5", 3);
  OneVersion(player, "x.h5", 2, kNewGeneration);
  player.Fork("x.h5", 2, "d/e/fork-3.h5");
  player.Prune("x.h5", {1, 2});
  player.Close();
  player.Open();
  ChangeSome(player, "fork-2.h5", 7);
  player.Prune("fork-2.h5", {1});
  player.Fork("fork-2.h5", 2, "fork-4.h5");
}

// While the source is written, and its cuts are applied.
void ForksBesideCuts(Player& player) {
  OneVersion(player, "x.h5", 9);
  player.Begin("x.h5");
  for (int i = 0; i < 4; ++i) {
    Overwrite(player, "x.h5", 9, 3);
    player.CutAndGoOn("x.h5", i % 2 ? BarrierKind::kSync : BarrierKind::kCommit);
    player.Fork("x.h5", i % 2 ? 1 : 0, StrCat("fork-", i, ".h5"));
    if (i == 1) player.Truncate("x.h5", 4);
  }
  player.End("x.h5");
  player.Close(absl::ZeroDuration());
  player.Open();
  ChangeSome(player, "fork-0.h5", 9);
}

void Promotions(Player& player) {
  OneVersion(player, "x.h5", 8.5);
  player.Fork("x.h5", 1, "fork.h5");
  player.Begin("fork.h5");
  Overwrite(player, "fork.h5", 8, 4);
  player.Commit("fork.h5");
  player.Truncate("fork.h5", 5.3);
  player.Commit("fork.h5");
  player.End("fork.h5");
  player.Promote("fork.h5", "x.h5");
  OneVersion(player, "fork.h5", 9);
  player.Promote("fork.h5", "x.h5");
  player.Close();
  player.Open();
  ChangeSome(player, "fork.h5", 9);
  player.Prune("fork.h5", {1, 2, 3, 4});  // What was promoted last goes too.
  player.Promote("fork.h5", "x.h5");
  OneVersion(player, "fork.h5", 3, kNewGeneration);
  player.Promote("fork.h5", "x.h5");
  player.Prune("x.h5", {1, 2, 3});
  ChangeSome(player, "x.h5", 3);
}

// Upon each other, before the head holds any.
void PromotionsBeforeApplied(Player& player) {
  OneVersion(player, "x.h5", 10);
  player.Fork("x.h5", 1, "fork.h5");
  for (int i = 0; i < 3; ++i) {
    ChangeSome(player, "fork.h5", 10);
    player.Promote("fork.h5", "x.h5");
    player.BeginExport("x.h5", 0);
    ChangeSome(player, "fork.h5", 10);
    player.Promote("fork.h5", "x.h5");
    player.FinishExport();
    player.Close(absl::ZeroDuration());
    player.Open();
  }
  player.Rollback("x.h5", 2);
  player.WaitApplied("x.h5");
}

}  // namespace

std::vector<Scenario> ForkScenarios() {
  return {
      {"forks", Forks, {}},
      {"forks_of_small_pages", Forks, kSmallPages},
      {"forks_without_memory", Forks, kNoMemory},  // More files than indexes may be open.
      {"forks_beside_cuts", ForksBesideCuts, {}, Pace::kConcurrent},
      {"promotions", Promotions, {}},
      {"promotions_in_small_segments", Promotions, kSmallSegments},
      {"promotions_before_applied", PromotionsBeforeApplied, {}, Pace::kConcurrent},
  };
}

}  // namespace h5mirror::store
