// Scenarios of the history: rollbacks, tags, readers, and sessions that follow each other.
#include "tests/crash/scenario_steps.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {
namespace {

void RollbackWithin(Player& player) {
  OneVersion(player, "x.h5", 12);
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 12, 4);
  player.Commit("x.h5");
  player.Truncate("x.h5", 7.5);
  Overwrite(player, "x.h5", 7, 2);
  player.Commit("x.h5");
  player.End("x.h5");
  player.Rollback("x.h5", 1);
  player.WaitApplied("x.h5");
  OneVersion(player, "x.h5", 2.5);
  player.Rollback("x.h5", 3);
  player.Rollback("x.h5", 2);  // Before the rollback above is applied, or after.
  player.WaitApplied("x.h5");
  OneVersion(player, "x.h5", 1);
}

void RollbackAcross(Player& player) {
  OneVersion(player, "x.h5", 9);
  OneVersion(player, "x.h5", 4);
  OneVersion(player, "x.h5", 7, kNewGeneration);
  player.Rollback("x.h5", 1);
  player.WaitApplied("x.h5");
  OneVersion(player, "x.h5", 2);
  player.Rollback("x.h5", 3);
  player.WaitApplied("x.h5");
  player.Rollback("x.h5", 2);
  player.WaitApplied("x.h5");
}

// A rollback upon another one, and both upon cuts that are not applied: their reverts name bytes of
// pre-images that an apply saves meanwhile.
void RollbackOfRollback(Player& player) {
  OneVersion(player, "x.h5", 12);
  for (int i = 0; i < 3; ++i) {
    player.Begin("x.h5");
    Overwrite(player, "x.h5", 12, 3);
    if (i == 1) player.Zeros("x.h5", 2, 4);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    player.End("x.h5");
    player.Rollback("x.h5", 1 + i);
    player.Rollback("x.h5", 2 + i);
    player.Close(absl::ZeroDuration());
    player.Open();
  }
  player.Rollback("x.h5", 1);
  player.WaitApplied("x.h5");
}

// Back over two generations, and on from there.
void RollbackOfGenerations(Player& player) {
  OneVersion(player, "x.h5", 6);
  OneVersion(player, "x.h5", 9.5, kNewGeneration);
  OneVersion(player, "x.h5", 2);
  OneVersion(player, "x.h5", 3, kNewGeneration);
  player.Rollback("x.h5", 2);
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 9, 3);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.End("x.h5");
  player.Rollback("x.h5", 1);
  player.Close(absl::ZeroDuration());
  player.Open();
  player.Rollback("x.h5", 6);
  player.Rollback("x.h5", 4);
  player.WaitApplied("x.h5");
}

void Tags(Player& player) {
  OneVersion(player, "x.h5", 5);
  player.Tag("x.h5", 1, "published");
  player.Tag("x.h5", 1, "first");
  OneVersion(player, "x.h5", 2);
  player.Tag("x.h5", 0, "published");
  player.Untag("x.h5", "first");
  OneVersion(player, "x.h5", 3, kNewGeneration);
  player.Tag("x.h5", 1, "first");
  player.Close();
  player.Open();
  player.Untag("x.h5", "published");
  player.Rollback("x.h5", 1);
  player.Tag("x.h5", 4, "published");
}

// Tags are given while cuts become durable and are applied.
void TagsBesideCuts(Player& player) {
  OneVersion(player, "x.h5", 8);
  player.Begin("x.h5");
  for (int i = 0; i < 6; ++i) {
    Overwrite(player, "x.h5", 8, 3);
    player.CutAndGoOn("x.h5", BarrierKind::kCommit);
    player.Tag("x.h5", i % 2 ? 0 : 1, "moving");
    if (i == 3) player.Untag("x.h5", "moving");
  }
  player.End("x.h5");
}

void Exports(Player& player) {
  OneVersion(player, "x.h5", 12);
  OneVersion(player, "x.h5", 3);
  player.BeginExport("x.h5", 1);
  player.BeginExport("x.h5", 2);
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 12, 4);
  player.Commit("x.h5");
  player.BeginExport("x.h5", 3);
  player.Truncate("x.h5", 4);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.Write("x.h5", 6, 5);
  player.Commit("x.h5");
  player.End("x.h5");
  OneVersion(player, "x.h5", 2, kNewGeneration);
  player.FinishExport();
  for (VersionNumber version = 1; version <= 6; ++version) player.BeginExport("x.h5", version);
  player.FinishExport();
}

// Old versions are read page by page, while cuts go on and are applied.
void ReadersBesideCuts(Player& player) {
  OneVersion(player, "x.h5", 10);
  player.BeginExport("x.h5", 1);
  player.Begin("x.h5");
  for (int i = 0; i < 5; ++i) {
    Overwrite(player, "x.h5", 10, 3);
    if (i == 3) player.Truncate("x.h5", 4);
    player.CutAndGoOn("x.h5", i % 2 ? BarrierKind::kTick : BarrierKind::kCommit);
    player.ReadOn();
    player.Sync("x.h5");
    player.BeginExport("x.h5", 0);
    player.ReadOn();
  }
  player.End("x.h5");
  player.Rollback("x.h5", 1);
  player.ReadOn();
  player.FinishExport();
}

// Sessions that take the file over from others; these leave ticks, uncut bytes and a new
// generation.
void Handovers(Player& player) {
  OneVersion(player, "x.h5", 8);
  player.Begin("x.h5");
  Overwrite(player, "x.h5", 8, 3);
  player.Tick("x.h5");
  player.Write("x.h5", 7, 4);  // Never cut.
  player.TakeOver("x.h5");
  Overwrite(player, "x.h5", 8, 2);
  player.CutAndGoOn("x.h5", BarrierKind::kCommit);
  player.TakeOver("x.h5");
  player.TakeOver("x.h5");
  player.Truncate("x.h5", 5);
  player.Sync("x.h5");
  player.End("x.h5");
  player.Begin("x.h5", kNewGeneration);
  player.Write("x.h5", 0, 3);
  player.TakeOver("x.h5");  // The generation never had a cut.
  Overwrite(player, "x.h5", 5, 2);
  player.Commit("x.h5");
  player.End("x.h5");
}

}  // namespace

std::vector<Scenario> HistoryScenarios() {
  return {
      {"rollback_within", RollbackWithin, {}},
      {"rollback_across", RollbackAcross, {}},
      {"rollback_of_rollback", RollbackOfRollback, {}, Pace::kConcurrent},
      {"rollback_of_generations", RollbackOfGenerations, {}, Pace::kConcurrent},
      {"tags", Tags, {}},
      {"tags_beside_cuts", TagsBesideCuts, {}, Pace::kConcurrent},
      {"exports", Exports, {}, Pace::kConcurrent},
      {"readers_beside_cuts", ReadersBesideCuts, {}, Pace::kConcurrent},
      {"handovers", Handovers, {}, Pace::kConcurrent},
  };
}

}  // namespace h5mirror::store
